package wire

// Defaults are an organization's provisioning defaults, as both APIs show them
// (reference: organization#provisioning-defaults). It has the fields of org.Defaults.
type Defaults struct {
	AccessMonths             int  `json:"default_access_months"`
	GracePeriodDays          int  `json:"grace_period_days"`
	StarterTestsPerCourse    int  `json:"starter_tests_per_course"`
	VisibleTestsLimit        int  `json:"visible_tests_limit"`
	SendWelcomeEmail         bool `json:"send_welcome_email_default"`
	SetPasswordLinkValidDays int  `json:"set_password_link_valid_days"`
}
