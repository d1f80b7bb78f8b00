package pages

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/registrar-dev/registrar/api-server/internal/edge"
	"github.com/registrar-dev/registrar/api-server/internal/signin"
	"github.com/registrar-dev/registrar/internal/domain/catalog"
	"github.com/registrar-dev/registrar/internal/domain/plan"
	"github.com/registrar-dev/registrar/internal/domain/result"
	"github.com/registrar-dev/registrar/internal/flow/wire"
	"github.com/registrar-dev/registrar/internal/kit/decimal"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/lang"
)

// resultPage is where the result_url of the API and of mails leads. A session may have the
// same name in two organizations of one person.
type resultPage struct {
	Person  *signin.Person
	Staff   bool // of some organization, which has a console
	Results []resultView
}

// resultView is a result in words.
type resultView struct {
	Brand                    brand
	Student, Title           string
	What                     string // of what type, and why it was done
	State                    string
	Final, Held, Begun       bool
	Label, Percentage, Score string // of a final result alone
	Percent                  string // Percentage as a number
	Target                   string // a sentence; "": there is none, or it is no whole test
	Sections                 []sectionScore
	Earlier                  []resultLine // results of the same exam, the latest first
	Times                    []happened
}

// sectionScore is the score of a section; Min and Max are "" where no scale says them.
type sectionScore struct {
	Name, Score, Min, Max string
	Shown, Words          string // the score as it is read, alone and with its maximum
}

type happened struct{ What, When string }

// showResult shows a result to its student and to the staff of its organization. To others
// it does not exist.
func (s *Server) showResult(w http.ResponseWriter, r *http.Request) error {
	p := signin.SignedIn(r.Context())
	if p.MustChangePassword {
		http.Redirect(w, r, "/change-password/", http.StatusSeeOther)
		return nil
	}
	var staffOf []id.Organization
	for _, b := range p.StaffOf() {
		staffOf = append(staffOf, b.Organization)
	}
	found, err := result.Visible(r.Context(), s.DB, edge.Param(r, "ref"), p.ID, staffOf)
	if err != nil {
		return err
	}
	found = slices.DeleteFunc(found, func(f result.Found) bool { return !p.Opens(f.OrganizationID) })
	if len(found) == 0 && p.Elsewhere { // the same, whether there is such a result or not
		return show(w, r, http.StatusNotFound, "elsewhere.html", p)
	}
	if len(found) == 0 {
		return fault.New(fault.NotFound, "not_found", "there is no such page, or it is not yours to see")
	}
	page := resultPage{Person: p, Staff: len(staffOf) > 0}
	for i := range found {
		v := s.viewResult(textsOf(r), &found[i], s.zoneFor(r))
		if v.Brand, err = s.brandOf(r.Context(), found[i].OrganizationID); err != nil {
			return err
		}
		if v.Final && found[i].Section == "" {
			if err := s.compare(r, &found[i], &v); err != nil {
				return err
			}
		}
		page.Results = append(page.Results, v)
	}
	return show(w, r, http.StatusOK, "result.html", page)
}

// viewResult shows of work that is not final no score, as lists do not show it at all.
func (s *Server) viewResult(t *lang.Texts, f *result.Found, zone *time.Location) resultView {
	v := resultView{Student: strings.TrimSpace(f.FirstName + " " + f.LastName), Title: f.ItemTitle,
		Final: f.State.Final()}
	if v.Student == "" {
		v.Student = f.Email
	}
	what, why := t.Word(catalog.TypeLabel(f.Type)), say(t, attempts[f.Attempt])
	v.What = t.T("result.what", "Type", what, "Why", why)
	if f.Section != "" {
		v.What = t.T("result.what_section", "Type", what, "Why", why, "Section", t.Word(spaced(f.Section)))
	}
	for _, h := range []struct {
		what string
		at   *time.Time
	}{{"result.begun", f.StartedAt}, {"result.completed", f.CompletedAt}, {"result.released", f.ReleasedAt}} {
		if h.at != nil {
			v.Times = append(v.Times, happened{t.T(h.what), t.Moment(*h.at, zone)})
		}
	}
	switch f.State {
	case result.Started:
		v.State, v.Begun = t.T("result.not_finished"), true
	case result.Held:
		v.State, v.Held = t.T("result.under_review"), true
	case result.Finished, result.Released:
		v.State = t.T("result.final")
		l := wire.NewFinalResult(&f.Listed, s.PublicURL, zone)
		v.Percent = l.Percentage.String()
		v.Label, v.Percentage = t.Score(l.ScoreLabel), t.T("result.percent", "Percent", t.Digits(v.Percent))
		v.Score = t.T("result.of", "Score", t.Digits(l.Score.String()), "Most", t.Digits(l.MaxScore.String()))
		v.Sections = sectionScores(t, f.Type, l.Sections)
	}
	return v
}

// compared is how many of the student's latest results are searched for earlier ones of the same exam, and earlierShown
// how many of these are shown.
const compared, earlierShown = 50, 5

// compare says how far the target of the same exam is, and what came before.
func (s *Server) compare(r *http.Request, f *result.Found, v *resultView) error {
	if f.Score == nil || f.FinalAt == nil {
		return nil
	}
	t := textsOf(r)
	plans, err := plan.Lines(r.Context(), s.DB, f.OrganizationID, f.User, "", 0, compared)
	if err != nil {
		return err
	}
	if i := slices.IndexFunc(plans, func(l plan.Line) bool { return l.Exam == f.Type }); i >= 0 {
		switch target := plans[i].Target; {
		case *f.Score >= target:
			v.Target = t.T("result.reached", "Target", t.Digits(target.String()))
		default:
			v.Target = t.T("result.to_go", "Points", t.Digits((target - *f.Score).String()), "Target", t.Digits(target.String()))
		}
	}
	all, err := result.Latest(r.Context(), s.DB, f.OrganizationID, f.User, compared)
	if err != nil {
		return err
	}
	for i := range all {
		e := &all[i]
		if len(v.Earlier) < earlierShown && e.Type == f.Type && e.Section == "" && e.Ref != f.Ref && e.FinalAt != nil && e.FinalAt.Before(*f.FinalAt) {
			v.Earlier = append(v.Earlier, newResultLine(t, e, s.zoneFor(r)))
		}
	}
	return nil
}

// attempts are the keys of texts that say why work was done.
var attempts = map[result.Attempt]string{result.Practice: "result.practice", result.Assigned: "result.assigned",
	result.TestingCenter: "result.center", result.SectionPractice: "result.practice"}

// sectionScores are in the order of the type's scale.
func sectionScores(t *lang.Texts, typ string, object json.RawMessage) (scores []sectionScore) {
	var sections map[string]decimal.Number
	_ = json.Unmarshal(object, &sections) // finalizing wrote it
	scale, _ := catalog.ScaleOf(typ)      // work without a scale has no bars
	for _, name := range catalog.SectionNames(typ, sections) {
		one := sectionScore{Name: t.Word(spaced(name)), Score: sections[name].String()}
		one.Shown = t.Digits(one.Score)
		for _, section := range scale.Sections {
			if section.Name == name {
				one.Min, one.Max = section.Min.String(), section.Max.String()
				one.Words = t.T("result.section_of", "Section", one.Name, "Score", one.Shown, "Most", t.Digits(one.Max))
			}
		}
		scores = append(scores, one)
	}
	return scores
}

// spaced is reading_writing as reading writing.
func spaced(name string) string { return strings.ReplaceAll(name, "_", " ") }
