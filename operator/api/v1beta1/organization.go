package v1beta1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// OrganizationFinalizer keeps a resource until its organization is released or erased.
const OrganizationFinalizer = "registrar.dev/organization"

// StaffRole is what a member of the staff may do.
//
// +kubebuilder:validation:Enum=owner;admin;examiner;teacher
type StaffRole string

// OrganizationSpec is what should be true of an organization. A setting that is left out is not managed: its staff and
// the platform change it as they like.
type OrganizationSpec struct {
	// className says which operator manages the organization: the one with this class, or, when it is empty, the one
	// without a class. It cannot be changed later.
	//
	// +optional
	// +default=""
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="className: cannot be changed; delete this resource and create another"
	ClassName string `json:"className,omitempty"`

	// slug is what the platform calls the organization, also in its APIs. It cannot be changed later. An organization
	// that exists is taken over as it is.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([a-z0-9-]*[a-z0-9])?$')",message="slug: use lower-case letters, digits and hyphens, with a letter or digit at both ends"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="slug: an organization keeps its slug; delete this resource and create another"
	Slug string `json:"slug,omitempty"`

	// name is what students and staff read.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=200
	// +kubebuilder:validation:XValidation:rule="self.trim() == self",message="name: leave out the spaces around it"
	Name string `json:"name,omitempty"`

	// languageTestsEnabled says whether the organization may use language tests.
	//
	// +optional
	LanguageTestsEnabled *bool `json:"languageTestsEnabled,omitempty"`

	// language is that of students who chose none, on their pages and in mails: the code of one that the site has, such as
	// en, hi or ar.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=35
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z]{2,3}(-[A-Za-z0-9]+)*$')",message="language: use the code of a language, such as en"
	Language *string `json:"language,omitempty"`

	// provisioningDefaults hold where a call of the partner API says nothing else.
	//
	// +optional
	ProvisioningDefaults ProvisioningDefaults `json:"provisioningDefaults,omitzero"`

	// allowedNamespaces selects, by their labels, the namespaces that may register the organization's webhook URLs: {}
	// selects all of them. When it is left out, the label registrar.dev/organization of a namespace decides.
	//
	// +optional
	AllowedNamespaces *metav1.LabelSelector `json:"allowedNamespaces,omitempty"`

	// staff are people who are kept on the staff, each in the given role. Who is new gets a mail with an invitation; who
	// is taken from this list is deactivated. Staff who were never in it are not touched.
	//
	// +optional
	// +listType=map
	// +listMapKey=email
	// +kubebuilder:validation:MaxItems=200
	Staff []StaffMember `json:"staff,omitempty"`

	// sandbox says whether the organization has a sandbox. With false, one that exists is dropped with its data.
	//
	// +optional
	Sandbox *bool `json:"sandbox,omitempty"`

	// deletionPolicy says what becomes of the organization when this resource is deleted. Retain leaves it as it is.
	// Delete erases it with its students, their work and everything else, and cannot be undone.
	//
	// +optional
	// +default="Retain"
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`
}

// ProvisioningDefaults are those of the platform API.
type ProvisioningDefaults struct {
	// accessMonths is how long an enrollment lasts, unless the call, the course or its type has a length.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=120
	AccessMonths *int32 `json:"accessMonths,omitempty"`

	// gracePeriodDays is for how long a course can be used after its last day.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=365
	GracePeriodDays *int32 `json:"gracePeriodDays,omitempty"`

	// starterTestsPerCourse is how many tests a new enrollment gets.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	StarterTestsPerCourse *int32 `json:"starterTestsPerCourse,omitempty"`

	// visibleTestsLimit is how many tests of the catalog a new student sees.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	VisibleTestsLimit *int32 `json:"visibleTestsLimit,omitempty"`

	// sendWelcomeEmail says whether new students are mailed.
	//
	// +optional
	SendWelcomeEmail *bool `json:"sendWelcomeEmail,omitempty"`

	// setPasswordLinkValidDays is for how many days a link to set a password works.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=365
	SetPasswordLinkValidDays *int32 `json:"setPasswordLinkValidDays,omitempty"`
}

// StaffMember is a person on the staff.
type StaffMember struct {
	// email is the person's address.
	//
	// +required
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=254
	// +kubebuilder:validation:XValidation:rule="self.contains('@') && self.trim() == self",message="staff.email: not an email address"
	Email string `json:"email,omitempty"`

	// role is what the person may do: owners do everything, admins everything but staff, examiners and teachers look
	// students up.
	//
	// +required
	Role StaffRole `json:"role,omitempty"`

	// firstName is that of a person without an account.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=150
	FirstName string `json:"firstName,omitempty"`

	// lastName is that of a person without an account.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=150
	LastName string `json:"lastName,omitempty"`
}

// The reasons of an Organization's conditions, beside those that all kinds have. They are stable.
const (
	ReasonManaged        = "Managed"       // the organization is as spec says
	ReasonSlugInUse      = "SlugInUse"     // another resource keeps the organization
	ReasonLastOwner      = "LastOwner"     // the organization would have no owner
	ReasonNotConfigured  = "NotConfigured" // the operator has not what spec asks for
	ReasonSandboxPending = "SandboxPending"
)

// OrganizationStatus is what the operator last saw.
type OrganizationStatus struct {
	// conditions say whether the organization is as spec says (Ready) and, while it is not,
	// that it will be (Reconciling) or that somebody has to act (Stalled).
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// observedGeneration is the generation of the spec that the conditions speak of.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// organizationID is the organization's id in Registrar; absent while this resource does not manage one.
	//
	// +optional
	OrganizationID int64 `json:"organizationID,omitempty"`

	// sandboxCreationTime is when the sandbox was made; absent without one.
	//
	// +optional
	SandboxCreationTime *metav1.Time `json:"sandboxCreationTime,omitempty"`
}

// Organization is an institute on the platform: a tenant, to which everything else belongs.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=rorg,categories=registrar
// +kubebuilder:selectablefield:JSONPath=`.spec.slug`
// +kubebuilder:selectablefield:JSONPath=`.spec.className`
// +kubebuilder:printcolumn:name="Slug",type=string,JSONPath=`.spec.slug`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="ID",type=integer,JSONPath=`.status.organizationID`,priority=1
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,priority=1
type Organization struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is that of every resource.
	//
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what should be true of the organization.
	//
	// +required
	Spec OrganizationSpec `json:"spec,omitzero"`

	// status is what the operator last saw.
	//
	// +optional
	Status OrganizationStatus `json:"status,omitzero"`
}

// Observed gives what the status of every kind has: the conditions and the generation that they speak of.
func (o *Organization) Observed() (conditions *[]metav1.Condition, generation *int64) {
	return &o.Status.Conditions, &o.Status.ObservedGeneration
}

// OrganizationList is what a list request answers.
//
// +kubebuilder:object:root=true
type OrganizationList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Organization `json:"items"`
}
