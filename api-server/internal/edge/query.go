package edge

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/fault"
)

// Query is a request's query, read parameter by parameter. Each reader gives the zero value for
// what was not sent (or is empty), and adds a fault for what is wrong; Err gives all faults
// together. Whatever chooses rows is remembered for the cursor; unknown parameters are ignored.
type Query struct {
	values  url.Values
	faults  fault.List
	filters []string
}

// ReadQuery reads the query. Err is Invalid where net/url would drop a parameter silently: with it
// could go a filter, and the answer would have what was not asked for.
func ReadQuery(r *http.Request) *Query {
	values, err := url.ParseQuery(r.URL.RawQuery) // those that can be read, too
	q := &Query{values: values}
	if err != nil {
		q.Add(fault.New(fault.Invalid, "invalid_query",
			"the query after ? is damaged; write it as name=value&name=value, with %%, ; and other special characters percent-encoded (%%25, %%3B)").Because(err))
	}
	return q
}

// PlainQuery answers 400 where a query cannot be read, or names a parameter twice, also one that no
// handler reads.
func PlainQuery(next http.Handler) http.Handler {
	return Handle(func(w http.ResponseWriter, r *http.Request) error {
		q := ReadQuery(r)
		for _, name := range slices.Sorted(maps.Keys(q.values)) {
			_ = q.Text(name)
		}
		if err := q.Err(); err != nil {
			return err
		}
		next.ServeHTTP(w, r)
		return nil
	})
}

// Err is nil when everything read so far was right. Its faults last (fault.Lasting).
func (q *Query) Err() error { return fault.Lasting(q.faults.Err()) }

// Add adds a fault that names its parameter itself.
func (q *Query) Add(f error) { _ = q.faults.Add(f) }

// Fault adds a fault that the caller found in the parameter's value.
func (q *Query) Fault(name, code, format string, args ...any) {
	q.Add(fault.Field(name, code, name+": "+format, args...))
}

// Has says whether the parameter was sent, with or without a value.
func (q *Query) Has(name string) bool { return q.values.Has(name) }

// Text is what was sent for name, without blanks around it; of several values none is the one
// that is meant.
func (q *Query) Text(name string) string {
	if len(q.values[name]) > 1 && !q.faults.Has(name) {
		q.Fault(name, "sent_twice", "the query names it twice; send it once")
	}
	return strings.TrimSpace(q.values.Get(name))
}

// Filter remembers that the rows are chosen by value, in its canonical form.
func (q *Query) Filter(name, value string) { q.filters = append(q.filters, name+"="+value) }

// Limit is the number of rows of a page. What is out of range is refused, never clamped.
func (q *Query) Limit(most, usual int) int {
	text := q.Text("limit")
	if text == "" {
		return usual
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most {
		q.Fault("limit", "out_of_range", "send a whole number from 1 to %d", most)
		return usual
	}
	return n
}

// ID reads a positive id that chooses rows.
func (q *Query) ID(name string) int64 {
	text := q.Text(name)
	if text == "" {
		return 0
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 {
		q.Fault(name, "not_an_id", "send a positive whole number")
		return 0
	}
	q.Filter(name, strconv.FormatInt(n, 10))
	return n
}

// Choice reads one of the words, in any case.
func (q *Query) Choice(name string, words ...string) string {
	word := strings.ToLower(q.Text(name))
	if word == "" {
		return ""
	}
	if !slices.Contains(words, word) {
		q.Fault(name, "not_a_choice", "send one of %s", strings.Join(words, ", "))
		return ""
	}
	q.Filter(name, word)
	return word
}

// Words reads one word or several with commas between them, in small letters.
func (q *Query) Words(name string) []string {
	if len(q.values[name]) > 1 {
		q.Fault(name, "sent_twice", "the query names it twice; send it once, with commas between several values")
	}
	return cutList(strings.ToLower(q.Text(name)))
}

// Day reads a date; the zero Date when it was not sent.
func (q *Query) Day(name string) clock.Date {
	text := q.Text(name)
	if text == "" {
		return clock.Date{}
	}
	d, err := clock.ParseDate(text)
	if err != nil || d.Year < 1 || d.Year > 9998 {
		q.Fault(name, "not_a_date", "send a date of the form YYYY-MM-DD")
		return clock.Date{}
	}
	return d
}

// Zone reads tz, the zone in which timestamps are written; UTC when it was not sent.
func (q *Query) Zone() *time.Location {
	name := q.Text("tz")
	if name == "" {
		return time.UTC
	}
	zone, err := clock.Zone("tz", name)
	if err != nil {
		q.Add(err)
		return time.UTC
	}
	return zone
}
