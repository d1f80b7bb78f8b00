package rest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/api-server/internal/apitest"
	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/domain/webhook/journal"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// fed is an event of the feed.
type fed struct {
	ID       string
	Type     string
	Created  string
	Data     json.RawMessage
	Sequence int64
}

type feedPage struct {
	HasMore    bool   `json:"has_more"`
	NextCursor string `json:"next_cursor"`
	Events     []fed
}

// readFeed reads a page, and holds every event against what is stored.
func readFeed(t *testing.T, c *apitest.Client, query string) (p feedPage) {
	t.Helper()
	c.Get(t, "events/?"+query).Want(t, 200).Into(t, &p)
	return p
}

func (p feedPage) types() (types []string) {
	for _, e := range p.Events {
		types = append(types, e.Type)
	}
	return types
}

// sequenced is an event's id and sequence.
type sequenced struct {
	ID       string
	Sequence int64
}

// stored lists the events of an organization that are in its feed.
func stored(t *testing.T, db *pg.DB, org id.Organization) []sequenced {
	t.Helper()
	places, err := pg.List[sequenced](t.Context(), db, `
		SELECT 'evt_' || replace(id::text, '-', '') AS id, sequence FROM webhook_events
		WHERE organization_id = $1 AND type <> 'ping' AND NOT erased ORDER BY sequence`, org)
	check.NoError(check.Now(t), err, "%v", err)
	return places
}

// Reference: webhooks#event-feed.
func TestEventsAreReadAsWebhooksCarryThem(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	s := &school{Env: e, Organization: e.Organization(t, "north")} // which has no webhook URL
	south := e.Organization(t, "south")
	provision(t, south, "eve@school.example", `"courses": ["ielts"]`)
	s.ana = provision(t, s.Organization, "ana@school.example", `"courses": ["ielts"]`)
	s.ielts = item(t, e, "catalog/tests/i1", `{"title": "IELTS 1", "type": "ielts"}`)
	finish := `"user_id": %d, "item_id": %d, "state": "finished", "completed_at": "2026-11-20T10:45:00Z", "score": %d`
	s.session(t, "s1", finish, s.ana, s.ielts, 6).Want(t, 201)
	s.session(t, "s1", finish, s.ana, s.ielts, 7).Want(t, 200)
	s.leave(t)
	listen(t, e, "north")
	s.Platform.Post(t, "organizations/north/webhook-endpoints/1/send-test", "").Want(t, 202)

	s.ReadOnly.Get(t, "events/?limit=3&tz=Asia/Kolkata").Want(t, 200).Golden(t, "events")
	p := readFeed(t, s.Full, "tz=Asia/Kolkata")
	check.Slices(t, "types", p.types(), []string{"student.joined", "enrollment.created", "result.final", "result.final", "enrollment.ended", "student.left"}, "%+v", p)
	check.False(t, "there are more", p.HasMore, "%+v", p)
	zone, err := time.LoadLocation("Asia/Kolkata")
	check.NoError(check.Now(t), err, "%v", err)
	bodies, err := pg.List[webhook.Stored](t.Context(), s.DB, `
		SELECT id, type, created_at, data, sequence, '' AS traceparent FROM webhook_events
		WHERE organization_id = $1 AND type <> 'ping' ORDER BY sequence`, s.ID)
	check.NoError(check.Now(t), err, "%v", err)
	answer := string(s.Full.Get(t, "events/?tz=Asia/Kolkata").Want(t, 200).Body)
	for i, b := range bodies {
		body, err := webhook.Envelope(b, webhook.Sender{ID: s.ID, Slug: "north", Name: "Institute north"}, zone)
		check.NoError(check.Now(t), err, "%v", err)
		check.Contains(t, "the answer", answer, fmt.Sprintf(`%s,"sequence":%d}`, body[:len(body)-1], p.Events[i].Sequence), "event %d", i)
	}

	for query, want := range map[string][]string{
		"types=result.final":                                {"result.final", "result.final"},
		"types=STUDENT.LEFT, student.joined":                {"student.joined", "student.left"},
		"types=":                                            p.types(),
		fmt.Sprintf("user_id=%d", s.ana):                    p.types(),
		fmt.Sprintf("user_id=%d&types=student.left", s.ana): {"student.left"},
		"limit=1":          {"student.joined"},
		"since=2100-01-01": nil,
		"since=2000-01-01": p.types(),
	} {
		got := readFeed(t, s.ReadOnly, encoded(query))
		check.Slices(t, "types", got.types(), want, "%s", query)
		check.Equal(t, "has_more", got.HasMore, query == "limit=1", "%s", query)
	}
	check.Slices(t, "types", readFeed(t, south.Full, "").types(), []string{"student.joined", "enrollment.created"}, "of the other organization")
	southern, err := url.QueryUnescape(readFeed(t, south.Full, "").NextCursor)
	check.NoError(check.Now(t), err, "%v", err)
	final := readFeed(t, s.Full, "types=result.final").NextCursor
	for query, f := range map[string]struct{ code, field string }{
		"types=student.born":    {"not_a_choice", "types"},
		"types=ping":            {"not_a_choice", "types"},
		"limit=501":             {"out_of_range", "limit"},
		"limit=0":               {"out_of_range", "limit"},
		"user_id=ana":           {"not_an_id", "user_id"},
		"since=yesterday":       {"not_a_date", "since"},
		"cursor=" + southern:    {"invalid_cursor", "cursor"},
		"cursor=" + final:       {"invalid_cursor", "cursor"},
		"types=a&types=b":       {"sent_twice", "types"},
		"types=result.final,,x": {"not_a_choice", "types"},
	} {
		s.Full.Get(t, "events/?"+query).WantFault(t, 400, f.code, f.field)
	}
	s.Full.Get(t, "events/?user_id=4711").WantFault(t, 404, "student_not_found", "")
}

func encoded(query string) string {
	values, _ := url.ParseQuery(query)
	return values.Encode()
}

// A person who is erased leaves no trace in the feed.
// Reference: webhooks#event-feed.
func TestEventsAboutErasedPeopleAreNotRead(t *testing.T) {
	t.Parallel()
	s := newSchool(t)
	before := readFeed(t, s.Full, "")
	_, err := journal.Erase(t.Context(), s.DB, audit.Platform, id.User(s.ana), s.Now())
	check.NoError(check.Now(t), err, "%v", err)
	after := readFeed(t, s.Full, "")
	want := slices.DeleteFunc(slices.Clone(before.Events), func(e fed) bool {
		return slices.ContainsFunc(before.Events[:2], func(o fed) bool { return o.ID == e.ID })
	})
	check.Equal(check.Now(t), "events", len(before.Events), 4, "%+v", before)
	check.Equal(check.Now(t), "events", len(after.Events), len(want), "%+v", after)
	for i, e := range after.Events {
		check.Equal(t, "id", e.ID, want[i].ID, "%+v", after)
	}
}

// A reader who is killed at any moment, and goes on with the cursor that it has stored together with
// the page's events, has every event once and in order, while transactions that record them commit in
// any order, or do not.
// Reference: webhooks#event-feed.
func TestAReaderOfEventsThatIsKilledMissesNothing(t *testing.T) {
	t.Parallel()
	rounds := 100
	if testing.Short() {
		rounds = 25
	}
	e := apitest.New(t)
	north, south := e.Organization(t, "north"), e.Organization(t, "south")
	data := map[webhook.Type]json.RawMessage{}
	for _, kind := range []webhook.Type{webhook.StudentJoined, webhook.ResultFinal, webhook.StudentLeft} {
		data[kind] = apitest.EventData(t, kind)
	}
	var writers, readers sync.WaitGroup
	for n := range 8 {
		o, random := []apitest.Organization{north, north, north, south}[n%4], rand.New(rand.NewPCG(uint64(n), 1))
		writers.Go(func() {
			for range rounds {
				check.NoError(t, recordSome(t.Context(), e.DB, o.ID, data, random), "recording")
			}
		})
	}
	ended := make(chan struct{})
	go func() { writers.Wait(); close(ended) }()
	for n, query := range []string{"", "types=student.left,student.joined", "types=result.final"} {
		random := rand.New(rand.NewPCG(uint64(n), 2))
		readers.Go(func() {
			var cursor string // with read, what outlives the reader
			var read []sequenced
			kept := func(kind webhook.Type) bool { return n == 0 || (n == 2) == (kind == webhook.ResultFinal) }
			for over := false; ; {
				select {
				case <-ended:
					over = true
				default:
				}
				p := readFeed(t, north.ReadOnly, fmt.Sprintf("%s&limit=%d&cursor=%s", query, 1+random.IntN(20), url.QueryEscape(cursor)))
				if random.IntN(4) == 0 && !over {
					continue // killed before anything of the page was stored
				}
				cursor = p.NextCursor
				for _, e := range p.Events {
					check.True(t, "the event is of the types asked for", kept(webhook.Type(e.Type)), "%s: %s", query, e.Type)
					read = append(read, sequenced{e.ID, e.Sequence})
				}
				if over && !p.HasMore && len(p.Events) == 0 {
					break
				}
			}
			all := stored(t, e.DB, north.ID)
			if n > 0 {
				kinds := map[string]bool{}
				for _, p := range readAll(t, north.Full) {
					kinds[p.ID] = kept(webhook.Type(p.Type))
				}
				all = slices.DeleteFunc(all, func(p sequenced) bool { return !kinds[p.ID] })
			}
			check.True(t, "something was recorded", len(all) > rounds, "%d events", len(all))
			check.True(t, "the reader has what is stored, in order", slices.Equal(read, all), "%q: %d events read, %d stored", query, len(read), len(all))
		})
	}
	readers.Wait()
}

// readAll walks through the feed.
func readAll(t *testing.T, c *apitest.Client) (all []fed) {
	t.Helper()
	for p := (feedPage{HasMore: true}); p.HasMore; all = append(all, p.Events...) {
		p = readFeed(t, c, "limit=500&cursor="+url.QueryEscape(p.NextCursor))
	}
	return all
}

var errTakenBack = errors.New("taken back")

// recordSome records some events in one transaction, which takes its time or is taken back.
func recordSome(ctx context.Context, db *pg.DB, org id.Organization, data map[webhook.Type]json.RawMessage, random *rand.Rand) error {
	err := db.InTx(ctx, func(tx *pg.Tx) error {
		for range 1 + random.IntN(3) {
			var events []webhook.Event
			for range 1 + random.IntN(3) {
				kind := []webhook.Type{webhook.StudentJoined, webhook.ResultFinal, webhook.StudentLeft, webhook.ResultFinal}[random.IntN(4)]
				events = append(events, webhook.Event{Type: kind, Data: data[kind]})
			}
			if err := webhook.Record(ctx, tx, org, apitest.Start, events...); err != nil {
				return err
			}
			if random.IntN(5) == 0 {
				if _, err := tx.Exec(ctx, `SELECT pg_sleep($1)`, random.Float64()/50); err != nil {
					return err
				}
			}
		}
		if random.IntN(5) == 0 {
			return errTakenBack
		}
		return nil
	})
	if errors.Is(err, errTakenBack) {
		return nil
	}
	return err
}
