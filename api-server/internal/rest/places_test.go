package rest_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/api-server/internal/apitest"
	"github.com/registrar-dev/registrar/api-server/internal/server"
	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/pg/pgtest"
)

// impatient refuses at once what would wait for its organization's share.
func impatient(d *server.Deps) { d.InFlight, d.PlacePatience = 32, time.Nanosecond }

// refusals are the requests that found their limit reached.
func refusals(t *testing.T, e *apitest.Env, limit string) (n float64) {
	t.Helper()
	families, err := e.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			for _, label := range m.GetLabel() {
				if f.GetName() == "registrar_http_overload_refusals_total" && label.GetName() == "limit" && label.GetValue() == limit {
					n += m.GetCounter().GetValue()
				}
			}
		}
	}
	return n
}

// trickle is a request whose sender keeps its body back.
type trickle struct {
	body   *io.PipeWriter
	status chan int
}

// begin sends a request's header, and returns once the server asks for the body.
func begin(t *testing.T, e *apitest.Env, path, contentType, key string) trickle {
	t.Helper()
	from, into := io.Pipe()
	asked := make(chan struct{})
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{Got100Continue: func() { close(asked) }})
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, e.URL()+"/api/v1/"+path, from)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-API-Key", key)
	r.Header.Set("Content-Type", contentType)
	r.Header.Set("Expect", "100-continue")
	transport := &http.Transport{ExpectContinueTimeout: time.Hour, TLSNextProto: map[string]func(string, *tls.Conn) http.RoundTripper{}}
	t.Cleanup(transport.CloseIdleConnections)
	q := trickle{into, make(chan int, 1)}
	go func() {
		res, err := transport.RoundTrip(r)
		if err != nil {
			_ = from.CloseWithError(err)
			q.status <- 0
			return
		}
		_, _ = io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
		q.status <- res.StatusCode
	}()
	select {
	case <-asked:
	case status := <-q.status:
		t.Fatalf("%s is answered %d before its body", path, status)
	}
	return q
}

// end sends the body and gives the answer's status.
func (q trickle) end(body string) int {
	_, _ = io.WriteString(q.body, body)
	_ = q.body.Close()
	return <-q.status
}

func wantBusy(t *testing.T, a *apitest.Answer) {
	t.Helper()
	if a.WantFault(t, 503, "overloaded", ""); a.Header.Get("Retry-After") == "" {
		t.Error("it does not say when to come again")
	}
}

// However many keys an organization makes: others are served while it holds what it can.
// Reference: limits#concurrency.
func TestAnOrganizationHoldsAShareOfTheRequests(t *testing.T) {
	t.Parallel()
	e := apitest.New(t, impatient)
	north, south := e.Organization(t, "north"), e.Organization(t, "south")
	keys := []string{north.FullKey, e.Key(t, "north", org.Full)}
	hold, err := e.DB.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = hold.Rollback(context.WithoutCancel(t.Context())) }()
	if _, err := hold.Exec(t.Context(), `LOCK TABLE accounts IN ACCESS EXCLUSIVE MODE`); err != nil {
		t.Fatal(err)
	}
	answers := make(chan int, 8)
	for i := range 8 { // a quarter of 32
		go func() {
			answers <- e.Partner(keys[i%2]).Post(t, provisionPath, fmt.Sprintf(`{"email": "ana-%d@institute.org", "first_name": "Ana"}`, i)).Status
		}()
	}
	pgtest.AwaitAllBlocked(t, e.DB, hold, 8)
	for _, key := range keys {
		wantBusy(t, e.Partner(key).Get(t, "ping/"))
	}
	south.Full.Get(t, "organization/").Want(t, 200)
	if err := hold.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 8 {
		check.Equal(t, "status", <-answers, 201, "a request that held its share")
	}
	north.Full.Get(t, "ping/").Want(t, 200)
	if n := refusals(t, e, "organization"); n != 2 {
		t.Errorf("%v refusals are counted, want 2", n)
	}
}

func TestAnOrganizationSendsAFewRostersAtOnce(t *testing.T) {
	t.Parallel()
	e := apitest.New(t, impatient)
	e.ImportRosters(t)
	north, south, west := e.Organization(t, "north"), e.Organization(t, "south"), e.Organization(t, "west")
	send := func(o apitest.Organization) *apitest.Answer {
		t.Helper()
		return o.Full.With("Content-Type", "text/csv").Post(t, "roster/import/", rosterHeader+"s1,sue@institute.org,Sue,Lopez,\n")
	}
	var held []trickle
	for range 4 {
		held = append(held, begin(t, e, "roster/import/", "text/csv", north.FullKey))
	}
	wantBusy(t, send(north))
	north.Full.Get(t, "ping/").Want(t, 200)
	send(south).Want(t, 200)
	for range 4 { // with the other four, a quarter of all places
		held = append(held, begin(t, e, "roster/import/", "text/csv", south.FullKey))
	}
	wantBusy(t, send(west))
	west.Full.Get(t, "ping/").Want(t, 200)
	for i, q := range held {
		if status := q.end(rosterHeader); status != 400 { // no people
			t.Errorf("upload %d: %d", i, status)
		}
	}
	send(west).Want(t, 200)
	if n := refusals(t, e, "imports"); n != 2 {
		t.Errorf("%v refusals are counted, want 2", n)
	}
}

// Answers that hold a connection of the pool while they are read leave most of the pool.
// Reference: limits#concurrency.
func TestStreamsLeaveConnections(t *testing.T) {
	t.Parallel()
	e := apitest.New(t, impatient)
	north, south, west := e.Organization(t, "north"), e.Organization(t, "south"), e.Organization(t, "west")
	hold, err := e.DB.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = hold.Rollback(context.WithoutCancel(t.Context())) }()
	if _, err := hold.Exec(t.Context(), `LOCK TABLE results IN ACCESS EXCLUSIVE MODE`); err != nil {
		t.Fatal(err)
	}
	answers := make(chan int, 4)
	read := func(o apitest.Organization) { answers <- o.ReadOnly.Get(t, "progress/daily/").Status }
	for range 2 {
		go read(north)
	}
	pgtest.AwaitAllBlocked(t, e.DB, hold, 2)
	wantBusy(t, north.Full.Get(t, "progress/daily/"))
	for range 2 {
		go read(south)
	}
	pgtest.AwaitAllBlocked(t, e.DB, hold, 4)
	wantBusy(t, west.Full.Get(t, "progress/daily/"))
	for _, o := range []apitest.Organization{north, south, west} {
		o.Full.Get(t, "organization/").Want(t, 200)
	}
	if err := hold.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 4 {
		if status := <-answers; status != 200 {
			t.Errorf("a stream: %d", status)
		}
	}
	north.Full.Get(t, "progress/daily/").Want(t, 200)
	if n := refusals(t, e, "streams"); n != 2 {
		t.Errorf("%v refusals are counted, want 2", n)
	}
}

// Who waits for mails is answered without a wait where enough of an organization's requests wait.
func TestAFewRequestsOfAnOrganizationWaitForTheirMail(t *testing.T) {
	t.Parallel()
	e := apitest.New(t, impatient)
	north, south := e.Organization(t, "north"), e.Organization(t, "south")
	call := func(o apitest.Organization, address string) *apitest.Answer {
		return o.Full.With("Prefer", "wait=10").Post(t, provisionPath, `{"email": "`+address+`", "first_name": "Ana"}`)
	}
	waiting := make(chan *apitest.Answer, 4)
	for _, name := range strings.Fields("a b c d") {
		go func() { waiting <- call(north, name+"@institute.org") }()
	}
	awaitCount(t, e, `SELECT count(*) FROM emails`, 4) // their wait was granted before
	fifth := call(north, "e@institute.org").Want(t, 201)
	if applied := fifth.Header.Get("Preference-Applied"); applied != "" {
		t.Errorf("Preference-Applied: %s", applied)
	}
	checkMail(t, fifth, "queued", "waiting to be sent", "welcome")
	mailer(t, e)
	if other := call(south, "s@institute.org").Want(t, 201); other.Header.Get("Preference-Applied") != "wait=10" {
		t.Error("another organization's request does not wait")
	}
	for range 4 {
		if a := (<-waiting).Want(t, 201); a.Header.Get("Preference-Applied") != "wait=10" {
			t.Error("a wait was taken back")
		}
	}
	if a := call(north, "f@institute.org").Want(t, 201); a.Header.Get("Preference-Applied") != "wait=10" {
		t.Error("the places of those who waited were not given back")
	}
}

// awaitCount returns once the query gives so many.
func awaitCount(t *testing.T, e *apitest.Env, query string, want int) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(30 * time.Second); count(t, e, query) != want; <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("%s: %d after 30 s, want %d", query, count(t, e, query), want)
		}
	}
}
