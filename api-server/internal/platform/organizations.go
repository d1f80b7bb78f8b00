package platform

import (
	"net/http"
	"time"

	"github.com/registrar-dev/registrar/api-server/internal/edge"
	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/flow/wire"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/id"
)

type organizationBody struct {
	Status               string           `json:"status"`
	ID                   id.Organization  `json:"id"`
	Slug                 string           `json:"slug"`
	Name                 string           `json:"name"`
	LanguageTestsEnabled bool             `json:"language_tests_enabled"`
	Language             string           `json:"language"`
	Defaults             wire.Defaults    `json:"provisioning_defaults"`
	CreatedAt            *clock.Timestamp `json:"created_at"`
}

func (s *Server) putOrganization(w http.ResponseWriter, r *http.Request) error {
	patch, err := readOrganization(w, r)
	if err != nil {
		return err
	}
	o, created, err := org.Put(r.Context(), s.DB, audit.Platform, edge.Param(r, "slug"), patch, s.Clock())
	if err != nil {
		return err
	}
	s.Keys.Forget(o.ID)
	status := http.StatusOK
	if created {
		status = http.StatusCreated
	}
	return edge.JSON(w, status, organizationBody{Status: "ok", ID: o.ID, Slug: o.Slug, Name: o.Name,
		LanguageTestsEnabled: o.LanguageTestsEnabled, Language: o.Language, Defaults: wire.Defaults(o.Defaults), CreatedAt: clock.Stamp(o.CreatedAt, time.UTC)})
}

func readOrganization(w http.ResponseWriter, r *http.Request) (org.Patch, error) {
	b, err := edge.ReadBody(w, r)
	if err != nil {
		return org.Patch{}, err
	}
	p := org.Patch{Name: b.Text("name", 200), LanguageTestsEnabled: b.Bool("language_tests_enabled"), Language: b.Text("language", 35)}
	if d := b.Object("provisioning_defaults"); d != nil {
		p.AccessMonths = d.Int("default_access_months", 1, 120)
		p.GracePeriodDays = d.Int("grace_period_days", 0, 365)
		p.StarterTestsPerCourse = d.Int("starter_tests_per_course", 0, 1000)
		p.VisibleTestsLimit = d.Int("visible_tests_limit", 0, 10_000)
		p.SendWelcomeEmail = d.Bool("send_welcome_email_default")
		p.SetPasswordLinkValidDays = d.Int("set_password_link_valid_days", 1, 365)
	}
	return p, b.Err()
}
