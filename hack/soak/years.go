package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/registrar-dev/registrar/hack/internal/plansim"
	"github.com/registrar-dev/registrar/internal/domain/sandbox"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// years are the sandboxes, which live a year an hour, month by month, and one that has lived as long before anything broke.
type years struct {
	*load

	months int
	quiet  *year
	all    []*year
	atOnce chan struct{}
}

// year is the life of one sandbox.
type year struct {
	*load

	org    string
	number int
	call   *caller
	months int
	calls  int // that were made, for their Idempotency-Keys
	cursor string
	events []string
	ids    map[string]string // what stands for an id, which no two sandboxes have alike
}

const (
	yearsAtOnce = 4
	quietSchool = "quiet"
)

// newYears makes the sandboxes, and lets one live in quiet.
func newYears(ctx context.Context, l *load, c *caller) (*years, error) {
	y := &years{load: l, months: max(2, int(12*l.options.lasting/time.Hour)), atOnce: make(chan struct{}, yearsAtOnce)}
	if l.options.sandboxes == 0 {
		return y, nil
	}
	for n := range 8 {
		r := request{method: http.MethodPut, path: fmt.Sprintf("catalog/tests/writing-%d", n), body: fmt.Sprintf(`{"title": "IELTS writing %d", "type": "ielts", "scope": "writing"}`, n)}
		if _, err := c.ask(ctx, r, nil); err != nil {
			return y, err
		}
	}
	r := request{method: http.MethodPut, path: "organizations/" + quietSchool, body: `{"name": "Quiet", "language_tests_enabled": true}`}
	if _, err := c.ask(ctx, r, nil); err != nil {
		return y, err
	}
	for n, org := range append([]string{quietSchool}, l.orgs[:l.options.sandboxes]...) {
		s := &year{load: l, org: org, number: n, call: l.caller(5000 + uint64(n)), months: y.months, ids: map[string]string{}}
		if err := s.begin(ctx); err != nil {
			return y, err
		}
		y.all = append(y.all, s)
	}
	y.quiet, y.all = y.all[0], y.all[1:]
	for month := range y.months {
		if err := y.quiet.live(ctx, month); err != nil {
			return y, fmt.Errorf("the quiet sandbox: %w", err)
		}
	}
	return y, nil
}

// start spreads the months of all over the time of the run.
func (y *years) start(ctx context.Context) {
	began := time.Now()
	for n, s := range y.all {
		y.calls.Go(func() {
			for month := range y.months {
				share := (float64(month) + float64(n)/float64(len(y.all))) / float64(y.months)
				if !y.await(ctx, began.Add(time.Duration(share*float64(y.options.lasting)))) {
					return
				}
				y.atOnce <- struct{}{}
				y.still.RLock()
				err := s.live(ctx, month)
				y.still.RUnlock()
				<-y.atOnce
				if err != nil {
					if ctx.Err() == nil {
						y.report.find("the sandbox of %s in its month %d: %v", s.org, month, err)
					}
					return
				}
			}
		})
	}
}

// await waits for a time, or for the end of the run; false: everything is over.
func (y *years) await(ctx context.Context, at time.Time) bool {
	for time.Now().Before(at) && !y.over.Load() {
		if pause(ctx, min(time.Second, time.Until(at))) != nil {
			return false
		}
	}
	return ctx.Err() == nil
}

// sandboxed names the sandbox among the keys.
func (s *year) sandboxed() string { return "sandbox of " + s.org }

// begin makes the sandbox with a key, and its first day.
func (s *year) begin(ctx context.Context) error {
	var made struct{ Key string }
	for _, r := range []request{
		{method: http.MethodPut, path: "organizations/" + s.org + "/sandbox"},
		{method: http.MethodPost, path: "organizations/" + s.org + "/api-keys", body: `{"name": "Sandbox", "access": "full", "sandbox": true}`},
	} {
		var into any
		if r.method == http.MethodPost {
			into = &made
		}
		if _, err := s.call.ask(ctx, r, into); err != nil {
			return err
		}
	}
	s.keys[s.sandboxed()] = made.Key
	return nil
}

// ask calls the partner API about the sandbox, once.
func (s *year) ask(ctx context.Context, method, path, body string, into any) error {
	r := request{method: method, path: path, body: body, org: s.sandboxed()}
	if method == http.MethodPost {
		s.calls++
		r.once = fmt.Sprintf("%s-%d", s.org, s.calls)
	}
	if strings.HasPrefix(path, "roster/") {
		r.header = map[string]string{"Content-Type": "text/csv"}
	}
	_, err := s.call.ask(ctx, r, into)
	return err
}

// live is a month of the school.
func (s *year) live(ctx context.Context, month int) error {
	first := time.Date(s.report.began.UTC().Year()+1, 1, 1, 0, 0, 0, 0, time.UTC)
	if month == 0 {
		if err := s.open(ctx, first); err != nil {
			return err
		}
	}
	if err := s.advance(ctx, first.AddDate(0, month+1, 0), []string{"accepts", "fails"}[month%2]); err != nil {
		return err
	}
	if err := s.work(ctx, month); err != nil {
		return err
	}
	var file strings.Builder
	file.WriteString("person_external_id,email,first_name,last_name,role\n")
	for n := range 12 {
		fmt.Fprintf(&file, "r%d,r%d@anywhere.example,R,Of month %d,student\n", n, n, (month+n)/12)
	}
	if err := s.ask(ctx, http.MethodPost, "roster/import/", file.String(), nil); err != nil {
		return err
	}
	if err := s.settle(ctx); err != nil {
		return err
	}
	return s.collect(ctx)
}

// open moves the clock to the first day and enrolls the students.
func (s *year) open(ctx context.Context, first time.Time) error {
	if err := s.advance(ctx, first, "accepts"); err != nil {
		return err
	}
	if err := s.ask(ctx, http.MethodPost, "webhook-endpoints/", `{"url": "https://hooks.anywhere.example/sandbox"}`, nil); err != nil {
		return err
	}
	for i, name := range []string{"binod", "chitra", "dawa", "asha"} {
		body := fmt.Sprintf(`{"email": "%s@anywhere.example", "first_name": %[1]q, "courses": ["ielts"], "tenure_months": %d,
			"target_score_plan": {"target_score": 7, "test_plan": true, "exam_date": "%d-11-15", "timezone": "Asia/Kolkata", "pace": %q, "extra_recipients": ["parent@anywhere.example"]}}`,
			name, 3*i+2, first.Year(), []string{"auto", "light"}[i%2])
		if err := s.ask(ctx, http.MethodPost, "provision/student/", body, nil); err != nil {
			return err
		}
		if err := s.settle(ctx); err != nil {
			return err
		}
	}
	return nil
}

// shown is a sandbox as its call shows it.
type shown struct {
	Clock  time.Time
	Moving *struct{ Progress float64 }
	Next   *struct {
		Kind string
		At   time.Time
	}
}

func (s *year) advance(ctx context.Context, to time.Time, receiver string) error {
	if err := s.ask(ctx, http.MethodPost, "sandbox/advance/", fmt.Sprintf(`{"to": %q, "receiver": %q}`, to.Format(time.RFC3339), receiver), nil); err != nil {
		return err
	}
	return s.until(ctx, func(now shown) bool { return now.Moving == nil })
}

// settle waits until what follows from a call has happened, so that no later call comes between.
func (s *year) settle(ctx context.Context) error {
	return s.until(ctx, func(now shown) bool {
		return now.Next == nil || now.Next.Kind == "webhooks" || now.Next.At.After(now.Clock)
	})
}

func (s *year) until(ctx context.Context, yes func(shown) bool) error {
	var now shown
	for began := time.Now(); time.Since(began) < patience; {
		now = shown{}
		if err := s.ask(ctx, http.MethodGet, "sandbox/", "", &now); err != nil {
			return err
		}
		if yes(now) {
			return nil
		}
		if err := pause(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
	return fmt.Errorf("its clock does not go on: %+v", now)
}

// work has all students do what is assigned to them.
func (s *year) work(ctx context.Context, month int) error {
	var page struct{ Assignments []struct{ ID string } }
	if err := s.ask(ctx, http.MethodGet, "assignments/?status=open&limit=500", "", &page); err != nil {
		return err
	}
	for _, a := range page.Assignments {
		if err := s.ask(ctx, http.MethodPost, "sandbox/act/", fmt.Sprintf(`{"assignment_id": %q, "score": %.1f}`, a.ID, 5+float64(month%5)/2), nil); err != nil {
			return err
		}
		if err := s.settle(ctx); err != nil {
			return err
		}
	}
	return nil
}

// collect reads the events since the last time.
func (s *year) collect(ctx context.Context) error {
	for {
		var page struct {
			HasMore    bool   `json:"has_more"`
			NextCursor string `json:"next_cursor"`
			Events     []map[string]any
		}
		if err := s.ask(ctx, http.MethodGet, "events/?limit=200&cursor="+url.QueryEscape(s.cursor), "", &page); err != nil {
			return err
		}
		for _, e := range page.Events {
			delete(e, "sequence")
			delete(e, "organization")
			text, err := json.Marshal(s.alike(e, "", ""))
			if err != nil {
				return err
			}
			s.events = append(s.events, addresses.ReplaceAllString(string(text), `"…"`))
		}
		s.cursor = page.NextCursor
		if !page.HasMore {
			return nil
		}
	}
}

var addresses = regexp.MustCompile(`"https?://[^"]*"`)

// alike puts numbers in the place of ids, by the order in which they come. Ids that are numbers themselves are told apart
// by what they are of: a person and an item may have the same one, and in no two sandboxes need the same two have it.
func (s *year) alike(value any, of, name string) any {
	switch v := value.(type) {
	case map[string]any:
		fields := map[string]any{}
		for _, field := range slices.Sorted(maps.Keys(v)) { // in one order
			fields[field] = s.alike(v[field], name, field)
		}
		return fields
	case []any:
		for i := range v {
			v[i] = s.alike(v[i], of, name)
		}
		return v
	}
	if value == nil || name != "id" && !strings.HasSuffix(name, "_id") || strings.HasSuffix(name, "external_id") {
		return value
	}
	text := fmt.Sprint(value)
	if _, number := value.(float64); number {
		if name == "id" {
			name = of
		}
		text = name + " " + text
	}
	if s.ids[text] == "" {
		s.ids[text] = fmt.Sprintf("the %d.", len(s.ids)+1)
	}
	return s.ids[text]
}

// years holds the events of each sandbox against those of the quiet one, and the plans of all against their rules.
func (c *checker) years(ctx context.Context, y *years) error {
	if y.quiet == nil {
		return nil
	}
	for _, s := range y.all {
		if found := unlike(s.events, y.quiet.events); found != "" {
			c.report.find("the sandbox of %s: %s", s.org, found)
		}
	}
	c.report.checked(fmt.Sprintf("sandboxes with the events of the quiet one, %s each in %d months", thousands(len(y.quiet.events)), y.months), len(y.all))
	databases, err := pg.NewDatabases(c.database.sandboxes)
	if err != nil {
		return err
	}
	for _, s := range append([]*year{y.quiet}, y.all...) {
		if err := c.rulesOf(ctx, s, databases); err != nil {
			return fmt.Errorf("the sandbox of %s: %w", s.org, err)
		}
	}
	c.report.checked("sandboxes whose plans keep all rules", len(y.all)+1)
	return nil
}

func (c *checker) rulesOf(ctx context.Context, s *year, databases *pg.Databases) error {
	var now shown
	if err := s.ask(ctx, http.MethodGet, "sandbox/", "", &now); err != nil {
		return err
	}
	var org id.Organization
	var generation int
	err := c.db.QueryRow(ctx, `SELECT o.id, s.generation FROM sandboxes s JOIN organizations o ON o.id = s.organization_id WHERE o.slug = $1`, s.org).Scan(&org, &generation)
	if err != nil {
		return err
	}
	db, err := databases.Open(ctx, sandbox.Sandbox{Organization: org, Generation: generation}.Database(), slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer db.Close()
	broken, err := plansim.Broken(ctx, db, now.Clock)
	for _, rule := range broken {
		c.report.find("plans in the sandbox of %s: %s", s.org, rule)
	}
	return err
}

// unlike says where two lives differ first; "": nowhere.
func unlike(got, want []string) string {
	for n := range max(len(got), len(want)) {
		switch {
		case n >= len(got):
			return fmt.Sprintf("%d events are missing, the first one is %s", len(want)-n, want[n])
		case n >= len(want):
			return fmt.Sprintf("%d events are more than in the quiet one, the first one is %s", len(got)-n, got[n])
		case got[n] != want[n]:
			return fmt.Sprintf("event %d is %s, and %s in the quiet one", n+1, got[n], want[n])
		}
	}
	return ""
}
