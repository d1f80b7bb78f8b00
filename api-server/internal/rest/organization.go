package rest

import (
	"net/http"

	"github.com/registrar-dev/registrar/api-server/internal/edge"
	"github.com/registrar-dev/registrar/internal/domain/course"
	"github.com/registrar-dev/registrar/internal/flow/wire"
	"github.com/registrar-dev/registrar/internal/kit/clock"
)

type pingBody struct {
	Status           string `json:"status"`
	Organization     string `json:"organization"`
	OrganizationSlug string `json:"organization_slug"`
}

func (s *Server) ping(w http.ResponseWriter, r *http.Request) error {
	o := principal(r.Context()).Organization
	return edge.JSON(w, http.StatusOK, pingBody{"ok", o.Name, o.Slug})
}

type organizationBody struct {
	Status       string `json:"status"`
	Organization struct {
		Name                 string `json:"name"`
		Slug                 string `json:"slug"`
		LanguageTestsEnabled bool   `json:"language_tests_enabled"`
	} `json:"organization"`
	APIKey struct {
		Name      string           `json:"name"`
		Prefix    string           `json:"prefix"`
		CreatedAt *clock.Timestamp `json:"created_at"`
	} `json:"api_key"`
	Defaults wire.Defaults `json:"provisioning_defaults"`
	Counts   struct {
		Courses            int `json:"courses"`
		StudentsWithAccess int `json:"students_with_access"`
	} `json:"counts"`
	AsOf             clock.Date `json:"as_of"`
	TargetScorePlans struct {
		TestPlanCourseTypes      []string `json:"test_plan_course_types"`
		SafeExamBrowserAvailable bool     `json:"safe_exam_browser_available"`
	} `json:"target_score_plans"`
}

func (s *Server) showOrganization(w http.ResponseWriter, r *http.Request) error {
	q := readQuery(r)
	if err := q.Err(); err != nil {
		return err
	}
	ctx, p, today := r.Context(), principal(r.Context()), s.today()
	counts, err := course.Count(ctx, s.DB, p.Organization.ID, today)
	if err != nil {
		return err
	}
	types, err := course.Types(ctx, s.DB)
	if err != nil {
		return err
	}
	body := organizationBody{Status: "ok", AsOf: today}
	o := p.Organization
	body.Organization.Name, body.Organization.Slug, body.Organization.LanguageTestsEnabled = o.Name, o.Slug, o.LanguageTestsEnabled
	body.APIKey.Name, body.APIKey.Prefix, body.APIKey.CreatedAt = p.Key.Name, p.Key.Prefix, clock.Stamp(p.Key.CreatedAt, q.zone)
	body.Defaults = wire.Defaults(o.Defaults)
	body.Counts.Courses, body.Counts.StudentsWithAccess = counts.Courses, counts.StudentsWithAccess
	body.TargetScorePlans.TestPlanCourseTypes = planTypes(types)
	body.TargetScorePlans.SafeExamBrowserAvailable = s.SafeExamBrowser
	return edge.Tagged(w, r, body)
}

func planTypes(types []course.Type) []string {
	names := []string{}
	for _, t := range types {
		if t.Active && t.TestPlanAvailable {
			names = append(names, t.Name)
		}
	}
	return names
}
