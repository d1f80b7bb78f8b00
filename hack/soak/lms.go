package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/registrar-dev/registrar/hack/stack"
	product "github.com/registrar-dev/registrar/internal/domain/lms"
	ids "github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// lms is a school's LMS, which keeps the last mark of each student by its time, as LTI has it. It is away now and then, and
// answers late.
type lms struct {
	*load

	grader       *partner // its students' results
	server       *httptest.Server
	registration ids.Registration
	organization ids.Organization
	away, late   atomic.Bool

	mu    sync.Mutex
	marks map[string]mark // by its name of the student
	got   int
	twice int
	seen  map[string]bool
}

type mark struct {
	at    string // the text sorts as the time does
	score float64
}

func newLMS(ctx context.Context, l *load, c *caller) (*lms, error) {
	m := &lms{load: l, marks: map[string]mark{}, seen: map[string]bool{}}
	m.grader = &partner{load: l, call: l.caller(4000), number: 4000, org: lmsSchool, orgs: []string{lmsSchool}, model: newModel(), at: map[string]string{}}
	certs, err := stack.LoadCerts(filepath.Join(l.site.dir, "certs"), farAddress)
	if err != nil {
		return nil, err
	}
	m.server = httptest.NewUnstartedServer(m)
	m.server.TLS = &tls.Config{Certificates: []tls.Certificate{certs.Leaf}, MinVersion: tls.VersionTLS12}
	m.server.StartTLS()
	var made struct{ ID ids.Registration }
	_, err = c.ask(ctx, request{method: http.MethodPost, path: "organizations/" + lmsSchool + "/lti-registrations", body: fmt.Sprintf(`{"name": "LMS", "issuer": "https://lms.delta-school.org",
		"client_id": "tool", "authorize_url": %q, "token_url": %q, "keys_url": %[1]q, "deployments": ["1"]}`, m.server.URL+"/keys", m.server.URL+"/token")}, &made)
	if err != nil {
		return nil, err
	}
	m.registration = made.ID
	if _, err := stack.Get(ctx, l.site.servers[0].PublicURL()+"/lti/v1p3/jwks"); err != nil { // makes the first key
		return nil, err
	}
	return m, l.site.db.QueryRow(ctx, `SELECT id FROM organizations WHERE slug = $1`, lmsSchool).Scan(&m.organization)
}

func (m *lms) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case m.away.Load():
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	case r.URL.Path == "/token":
		_, _ = w.Write([]byte(`{"access_token": "t", "token_type": "Bearer", "expires_in": 3600}`))
		return
	case m.late.Load():
		_ = pause(r.Context(), 2*time.Second)
	}
	var sent struct {
		User string  `json:"userId"`
		At   string  `json:"timestamp"`
		Give float64 `json:"scoreGiven"`
	}
	if err := json.NewDecoder(r.Body).Decode(&sent); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if !m.take(sent.User, mark{sent.At, sent.Give}) {
		w.WriteHeader(http.StatusConflict)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// take keeps a mark, unless there is a later one.
func (m *lms) take(user string, sent mark) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.got++
	if m.seen[user+sent.at] {
		m.twice++
	}
	m.seen[user+sent.at] = true
	if sent.at <= m.marks[user].at {
		return false
	}
	m.marks[user] = sent
	return true
}

// step enrolls a student of the LMS, or has one of them finish the linked test, or be marked again.
func (m *lms) step(ctx context.Context) error {
	p := m.grader
	if len(p.emails) < 5 || p.chance(0.15) {
		return m.enroll(ctx)
	}
	email := p.emails[p.call.rand.IntN(len(p.emails))]
	return p.score(ctx, email, p.model.students[p.org+" "+email])
}

// enroll onboards a student and binds them, as opening a link of the LMS does: the link's test is the first one.
func (m *lms) enroll(ctx context.Context) error {
	p := m.grader
	email := fmt.Sprintf("l%d.%x@%s-school.org", len(p.emails), p.call.rand.Uint32(), p.org)
	if _, err := p.provision(ctx, op{Kind: "provision", Org: p.org, Email: email, Courses: []string{"ielts"}, Months: 6, Quiet: true}); err != nil {
		return err
	}
	s := p.model.students[p.org+" "+email]
	if err := m.bind(ctx, email, ids.User(s.user)); err != nil {
		return err
	}
	p.emails, p.at[email] = append(p.emails, email), p.org
	if err := p.give(ctx, op{Kind: "assign", Org: p.org, Email: email, User: s.user, Item: p.items[0]}); err != nil {
		return err
	}
	return p.finish(ctx, op{Kind: "score", Org: p.org, Email: email, Score: 1, Item: p.items[0], Linked: true, Marked: true}, s)
}

// bind writes what a launch writes, again until it is written.
func (m *lms) bind(ctx context.Context, subject string, user ids.User) (err error) {
	for began := time.Now(); time.Since(began) < patience; {
		err = m.site.product.InTx(ctx, func(tx *pg.Tx) error {
			line := product.Line{Registration: m.registration, Address: m.server.URL + "/lines/1", User: user, Item: ids.Item(m.items[0])}
			return errors.Join(product.Bind(ctx, tx, m.organization, m.registration, subject, user, time.Now()),
				product.Link(ctx, tx, m.organization, line, nil, time.Now()))
		})
		if err == nil {
			return nil
		}
		if pauseErr := pause(ctx, time.Second); pauseErr != nil {
			return pauseErr
		}
	}
	return err
}

// marks holds what the LMS has against the last scores of the model.
func (c *checker) marks(m *lms) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var got, want []string
	for e, score := range c.model.marks {
		if !c.model.touched[event{lmsSchool, "result.final", "result test:" + e.session}] {
			want = append(want, fmt.Sprintf("%s %v", e.email, score))
			got = append(got, fmt.Sprintf("%s %v", e.email, m.marks[e.email].score))
		}
	}
	c.same("students of an LMS with their last mark", got, want)
	c.report.counted("marks that the LMS was sent", m.got)
	c.report.counted("of them sent twice", m.twice)
}
