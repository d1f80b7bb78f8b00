package wire

import (
	"encoding/json"
	"net/url"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/catalog"
	"github.com/registrar-dev/registrar/internal/domain/result"
	"github.com/registrar-dev/registrar/internal/domain/student"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/decimal"
	"github.com/registrar-dev/registrar/internal/kit/id"
)

// FinalResult is the data of result.final: the result without section_practiced (reference: webhooks#events).
type FinalResult struct {
	ID          string           `json:"id"`
	Kind        catalog.Kind     `json:"kind"`
	Student     Person           `json:"student"`
	Item        ResultItem       `json:"item"`
	Attempt     result.Attempt   `json:"attempt"`
	StartedAt   *clock.Timestamp `json:"started_at" doc:"Null where it is not known"`
	CompletedAt *clock.Timestamp `json:"completed_at" doc:"Null where it is not known"`
	ReleasedAt  *clock.Timestamp `json:"released_at" doc:"When a result that was held for review, or feedback, was released; null for others"`
	Score       decimal.Number   `json:"score"`
	MaxScore    decimal.Number   `json:"max_score"`
	Percentage  decimal.Number   `json:"percentage" doc:"Two decimals, half up"`
	ScoreLabel  string           `json:"score_label"`
	Sections    json.RawMessage  `json:"sections" doc:"Scores by section; empty where there are none"`
	ResultURL   string           `json:"result_url" doc:"Page that shows the result to its student and to the staff of the organization, once they are signed in"`
}

// Result is an element of results[] (reference: results#result-fields).
type Result struct {
	FinalResult
	SectionPracticed *string `json:"section_practiced" doc:"Null but for the attempt section_practice"`
}

// ResultItem is the work of a result.
type ResultItem struct {
	ID        id.Item `json:"id"`
	Title     string  `json:"title"`
	Type      string  `json:"type"`
	TypeLabel string  `json:"type_label"`
}

var noSections = json.RawMessage(`{}`)

// NewFinalResult shows a result that is final, with its timestamps in loc; publicURL is
// the base of its link.
func NewFinalResult(l *result.Listed, publicURL string, loc *time.Location) FinalResult {
	f := FinalResult{ID: l.Ref, Kind: catalog.Kind(l.Kind),
		Student: Person{UserID: l.User, Email: student.Email(l.Email), FirstName: l.FirstName, LastName: l.LastName},
		Item:    ResultItem{l.Item, l.ItemTitle, l.Type, catalog.TypeLabel(l.Type)}, Attempt: l.Attempt,
		StartedAt: clock.OptionalStamp(l.StartedAt, loc), CompletedAt: clock.OptionalStamp(l.CompletedAt, loc), ReleasedAt: clock.OptionalStamp(l.ReleasedAt, loc),
		Sections: l.Sections, ResultURL: ResultURL(publicURL, l.Ref)}
	if l.Score != nil && l.MaxScore != nil {
		f.Score, f.MaxScore = *l.Score, *l.MaxScore
	}
	f.Percentage, f.ScoreLabel = decimal.Percent(f.Score, f.MaxScore), catalog.Label(l.Type, f.Score, f.MaxScore)
	if f.Sections == nil {
		f.Sections = noSections
	}
	return f
}

// ResultURL is the address of a result's page, publicURL the base of every link. A ref may
// hold whatever an engine calls its sessions.
func ResultURL(publicURL, ref string) string { return publicURL + "/results/" + url.PathEscape(ref) }

// SignInURL is the address of the sign-in page that shows the organization's name and logo.
func SignInURL(publicURL, slug string) string {
	return publicURL + "/sign-in/?at=" + url.QueryEscape(slug)
}

// NewResult shows a result of the list; it is good as long as l is not changed.
func NewResult(l *result.Listed, publicURL string, loc *time.Location) Result {
	r := Result{FinalResult: NewFinalResult(l, publicURL, loc)}
	if l.Section != "" {
		r.SectionPracticed = &l.Section
	}
	return r
}
