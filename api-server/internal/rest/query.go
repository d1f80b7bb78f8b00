package rest

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/registrar-dev/registrar/api-server/internal/edge"
	"github.com/registrar-dev/registrar/internal/domain/catalog"
	"github.com/registrar-dev/registrar/internal/domain/student"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/id"
)

// query is an edge.Query with the partner API's own parameters.
type query struct {
	*edge.Query
	zone *time.Location
}

// readQuery also reads tz, in which timestamps are written and dates are meant.
func readQuery(r *http.Request) *query {
	q := edge.ReadQuery(r)
	return &query{q, q.Zone()}
}

func (q *query) course() id.Course { return id.Course(q.ID("course_id")) }

func (q *query) user() id.User { return id.User(q.ID("user_id")) }

// email reads an address that chooses rows. Sent without a value it is a fault: a caller
// whose variable was empty must not get everybody.
func (q *query) email() student.Email {
	if !q.Has("email") {
		return ""
	}
	address, err := student.ParseEmail(q.Text("email"))
	if err != nil {
		q.Add(err)
		return ""
	}
	q.Filter("email", string(address))
	return address
}

// student reads email and user_id, which must agree where both are sent.
func (q *query) student() student.Ref { return student.Ref{Email: q.email(), User: q.user()} }

// kinds reads one kind or several with commas between them; nil means all of them.
func (q *query) kinds() []catalog.Kind {
	var kinds []catalog.Kind
	for _, word := range q.Words("kind") {
		k := catalog.Kind(word)
		switch {
		case !slices.Contains(catalog.Kinds(), k):
			q.Fault("kind", "not_a_choice", "send test, quiz or assessment, or several with commas between them")
			return nil
		case !slices.Contains(kinds, k):
			kinds = append(kinds, k)
		}
	}
	if len(kinds) == 0 || len(kinds) == len(catalog.Kinds()) {
		return nil
	}
	slices.Sort(kinds)
	for _, k := range kinds {
		q.Filter("kind", string(k))
	}
	return kinds
}

// testType reads test_type.
func (q *query) testType() string { return q.Choice("test_type", catalog.TestTypes()...) }

// since reads the first instant of a window: a date, which begins in tz, or a timestamp.
// The zero time when it was not sent.
func (q *query) since(name string) time.Time { return q.instant(name, 0) }

// until reads the instant at which a window ends; a date is inside it as a whole.
func (q *query) until(name string) time.Time { return q.instant(name, 1) }

func (q *query) instant(name string, days int) time.Time {
	text := q.Text(name)
	if text == "" {
		return time.Time{}
	}
	if d, err := clock.ParseDate(text); err == nil && d.Year >= 1 && d.Year <= 9998 {
		return clock.DayStart(d.AddDays(days), q.zone)
	}
	zone := q.zone
	if q.Text("tz") == "" {
		zone = nil
	}
	// The + of an offset arrives as a blank where it was not percent-encoded.
	t, err := clock.ParseInstant(strings.Replace(text, " ", "+", 1), zone)
	if err != nil {
		q.Fault(name, "not_a_date", "send a date such as 2026-11-21, or a timestamp such as 2026-11-21T10:00:00+00:00; its offset may be left out where tz is sent")
		return time.Time{}
	}
	return t
}
