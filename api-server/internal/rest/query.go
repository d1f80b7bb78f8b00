package rest

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/registrar-dev/registrar/api-server/internal/edge"
	"github.com/registrar-dev/registrar/internal/domain/catalog"
	"github.com/registrar-dev/registrar/internal/domain/student"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/page"
)

// query reads a request's parameters. Each reader gives the zero value for what was not
// sent (or is empty), and adds a fault for what is wrong; err gives all faults together.
// Whatever chooses rows is remembered for the cursor; unknown parameters are ignored.
type query struct {
	values  url.Values
	faults  fault.List
	filters []string
	zone    *time.Location
}

// readQuery also reads tz, in which timestamps are written and dates are meant.
func readQuery(r *http.Request) *query {
	values, err := edge.Query(r)
	q := &query{values: values, zone: time.UTC}
	_ = q.faults.Add(err) // a fault or nil
	if name := q.text("tz"); name != "" {
		if zone, err := clock.Zone("tz", name); err != nil {
			_ = q.faults.Add(err)
		} else {
			q.zone = zone
		}
	}
	return q
}

func (q *query) err() error { return q.faults.Err() }

func (q *query) text(name string) string { return strings.TrimSpace(q.get(name)) }

// get is what was sent for name; of several values none is the one that is meant.
func (q *query) get(name string) string {
	if len(q.values[name]) > 1 && !q.faults.Has(name) {
		q.bad(name, "sent_twice", "the query names it twice; send it once")
	}
	return q.values.Get(name)
}

func (q *query) bad(name, code, format string, args ...any) {
	_ = q.faults.Add(fault.Field(name, code, name+": "+format, args...))
}

// filter remembers that the rows are chosen by value, in its canonical form.
func (q *query) filter(name, value string) { q.filters = append(q.filters, name+"="+value) }

// limit is the number of rows of a page. What is out of range is refused, never clamped.
func (q *query) limit(most, usual int) int {
	text := q.text("limit")
	if text == "" {
		return usual
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most {
		q.bad("limit", "out_of_range", "send a whole number from 1 to %d", most)
		return usual
	}
	return n
}

// number reads a positive id that chooses rows.
func (q *query) number(name string) int64 {
	text := q.text(name)
	if text == "" {
		return 0
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 {
		q.bad(name, "not_an_id", "send a positive whole number")
		return 0
	}
	q.filter(name, strconv.FormatInt(n, 10))
	return n
}

func (q *query) course() id.Course { return id.Course(q.number("course_id")) }

func (q *query) user() id.User { return id.User(q.number("user_id")) }

// email reads an address that chooses rows. Sent without a value it is a fault: a caller
// whose variable was empty must not get everybody.
func (q *query) email() student.Email {
	if !q.values.Has("email") {
		return ""
	}
	address, err := student.ParseEmail(q.get("email"))
	if err != nil {
		_ = q.faults.Add(err) // a fault always
		return ""
	}
	q.filter("email", string(address))
	return address
}

// student reads email and user_id, which must agree where both are sent.
func (q *query) student() student.Ref { return student.Ref{Email: q.email(), User: q.user()} }

// choice reads one of the words, in any case.
func (q *query) choice(name string, words ...string) string {
	word := strings.ToLower(q.text(name))
	if word == "" {
		return ""
	}
	if !slices.Contains(words, word) {
		q.bad(name, "not_a_choice", "send one of %s", strings.Join(words, ", "))
		return ""
	}
	q.filter(name, word)
	return word
}

// kinds reads one kind or several with commas between them; nil means all of them.
func (q *query) kinds() []catalog.Kind {
	if len(q.values["kind"]) > 1 {
		q.bad("kind", "sent_twice", "the query names it twice; send several kinds with commas between them")
	}
	var kinds []catalog.Kind
	for word := range strings.SplitSeq(q.get("kind"), ",") {
		k := catalog.Kind(strings.ToLower(strings.TrimSpace(word)))
		switch {
		case k == "":
		case !slices.Contains(catalog.Kinds(), k):
			q.bad("kind", "not_a_choice", "send test, quiz or assessment, or several with commas between them")
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
		q.filter("kind", string(k))
	}
	return kinds
}

// testType reads test_type.
func (q *query) testType() string { return q.choice("test_type", catalog.TestTypes()...) }

// day reads a date; the zero Date when it was not sent.
func (q *query) day(name string) clock.Date {
	text := q.text(name)
	if text == "" {
		return clock.Date{}
	}
	d, err := clock.ParseDate(text)
	if err != nil || d.Year < 1 || d.Year > 9998 {
		q.bad(name, "not_a_date", "send a date of the form YYYY-MM-DD")
		return clock.Date{}
	}
	return d
}

// since reads the first instant of a window: a date, which begins in tz, or a timestamp.
// The zero time when it was not sent.
func (q *query) since(name string) time.Time { return q.instant(name, 0) }

// until reads the instant at which a window ends; a date is inside it as a whole.
func (q *query) until(name string) time.Time { return q.instant(name, 1) }

func (q *query) instant(name string, days int) time.Time {
	text := q.text(name)
	if text == "" {
		return time.Time{}
	}
	if d, err := clock.ParseDate(text); err == nil && d.Year >= 1 && d.Year <= 9998 {
		return clock.DayStart(d.AddDays(days), q.zone)
	}
	// The + of an offset arrives as a blank where it was not percent-encoded.
	t, err := edge.ParseTimestamp(strings.Replace(text, " ", "+", 1))
	if err != nil {
		q.bad(name, "not_a_date", "send a date such as 2026-11-21, or a timestamp with an offset such as 2026-11-21T10:00:00+00:00")
		return time.Time{}
	}
	return t
}

// listOf names the list of the organization with the filters that were read.
func (q *query) listOf(ctx context.Context, name string) page.List {
	return page.List{Organization: principal(ctx).Organization.ID, Name: name, Filters: q.filters}
}

// start reads the cursor, after all filters were read.
func (s *Server) start(ctx context.Context, q *query, list string) (page.Position, error) {
	cursor := q.text("cursor")
	if err := q.err(); err != nil {
		return page.Position{}, err
	}
	return s.Cursors.Decode(ctx, q.listOf(ctx, list), cursor)
}
