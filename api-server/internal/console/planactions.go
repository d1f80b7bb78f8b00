package console

import (
	"context"
	"net/http"
	"strings"

	"github.com/registrar-dev/registrar/api-server/internal/edge"
	"github.com/registrar-dev/registrar/internal/domain/catalog"
	"github.com/registrar-dev/registrar/internal/domain/plan"
	"github.com/registrar-dev/registrar/internal/flow/testplan"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/decimal"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
)

// onPlan does what a form of a plan's page asks for, and shows the page again: with the note, or with what is wrong.
func (s *Server) onPlan(note string, do func(*http.Request, frame, plan.Stored) error) edge.Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		f, stored, err := s.plan(r)
		if err != nil {
			return err
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxForm)
		err = do(r, f, stored)
		if text, mine := refused(err); mine {
			f.Fault = text
			return s.onePlan(w, r, http.StatusBadRequest, f, stored)
		}
		if err != nil {
			return err
		}
		return s.back(w, r, f, "/plans/"+formatID(stored.ID)+"/", note)
	}
}

// steer gives a command of testplan.Service that needs nothing but the plan.
func (s *Server) steer(note string, command func(context.Context, audit.Actor, id.Plan) (testplan.Listed, error)) edge.Handler {
	return s.onPlan(note, func(r *http.Request, f frame, p plan.Stored) error {
		_, err := command(r.Context(), f.Person.Actor(), p.ID)
		return err
	})
}

func (s *Server) recordOfficial(r *http.Request, f frame, p plan.Stored) error {
	score, err := decimal.Parse(strings.TrimSpace(r.PostFormValue("score")))
	if err != nil {
		return fault.Field("score", "invalid", "Write the score as a number.")
	}
	on, err := clock.ParseDate(r.PostFormValue("on"))
	if err != nil {
		return fault.Field("on", "invalid", "Choose the day of the exam.")
	}
	result := plan.Official{Score: score, On: on}
	scale, _ := catalog.ScaleOf(p.Exam) // plans are for exams with a scale alone
	for _, section := range scale.Sections {
		text := strings.TrimSpace(r.PostFormValue("section_" + section.Name))
		if text == "" {
			continue
		}
		n, err := decimal.Parse(text)
		if err != nil {
			return fault.Field(section.Name, "invalid", "Write the scores of sections as numbers.")
		}
		if result.Sections == nil {
			result.Sections = map[string]decimal.Number{}
		}
		result.Sections[section.Name] = n
	}
	_, err = s.Plans.RecordOfficial(r.Context(), f.Person.Actor(), p.ID, result)
	return err
}

// addPaper puts a paper that the plan lacks into the organization's catalog.
func (s *Server) addPaper(r *http.Request, f frame, p plan.Stored) error {
	title, code, scope := strings.TrimSpace(r.PostFormValue("title")), strings.TrimSpace(r.PostFormValue("code")), r.PostFormValue("scope")
	_, _, err := s.Plans.PutItem(r.Context(), f.Person.Actor(), p.Organization, catalog.Key{Kind: catalog.Test, Code: code},
		catalog.Patch{New: true, Title: &title, Type: &p.Exam, Scope: &scope})
	return err
}
