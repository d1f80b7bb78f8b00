package edge

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/registrar-dev/registrar/api-server/internal/limit"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/id"
)

// wantRefusals compares what was refused, by limit.
func (b *bench) wantRefusals(t *testing.T, want map[string]float64) {
	t.Helper()
	families, err := b.reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		if f.GetName() != "registrar_http_overload_refusals_total" {
			continue
		}
		for _, m := range f.GetMetric() {
			for _, label := range m.GetLabel() {
				if label.GetName() == "limit" {
					got[label.GetValue()] = m.GetCounter().GetValue()
				}
			}
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("refusals by limit: %v, want %v", got, want)
	}
}

// shared is a bench whose requests are of the organizations in their header and stay until
// release is closed.
func shared(inFlight int, shares *limit.Shares) (b *bench, release chan struct{}) {
	b, release = newBench(inFlight), make(chan struct{})
	b.Get("/x", Handle(func(w http.ResponseWriter, r *http.Request) error {
		leave, err := Enter(r, shares, id.Organization(len(r.Header.Get("Of"))))
		if err != nil {
			return err
		}
		defer leave()
		<-release
		w.WriteHeader(http.StatusNoContent)
		return nil
	}))
	return b, release
}

// send sends a request and returns once it has its answer or waits for something.
func (b *bench) send(t *testing.T, of string) (answer chan int) {
	answer = make(chan int, 1)
	go func() { answer <- b.call(t, "GET", "/x", "", "Of", of).Code }()
	synctest.Wait()
	return answer
}

func TestWhoWaitsForItsShareHoldsNoPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, release := shared(3, &limit.Shares{Name: "organization", All: 3, Each: 1, Patience: time.Minute})
		answers := []chan int{b.send(t, "a")}
		for range 5 {
			answers = append(answers, b.send(t, "a"))
		}
		answers = append(answers, b.send(t, "bb"), b.send(t, "ccc"))
		if code := <-b.send(t, "dddd"); code != 503 {
			t.Errorf("with all places taken: %d", code)
		}
		close(release)
		for i, answer := range answers {
			if code := <-answer; code != 204 {
				t.Errorf("request %d: %d", i, code)
			}
		}
		b.wantRefusals(t, map[string]float64{"replica": 1})
	})
}

func TestWhoGetsNoShareInTimeIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, release := shared(2, &limit.Shares{Name: "organization", All: 2, Each: 1, Patience: 10 * time.Second})
		first := b.send(t, "a")
		w := b.call(t, "GET", "/x", "", "Of", "a") // in the bubble the patience is over when nothing else can happen
		if check.Equal(t, "w.Code", w.Code, 503, "%d %v %s", w.Code, w.Header(), w.Body) {
			check.True(t, "there is a Retry-After", w.Header().Get("Retry-After") != "", "%d %v %s", w.Code, w.Header(), w.Body)
		}
		close(release)
		if code := <-first; code != 204 {
			t.Errorf("the first: %d", code)
		}
		b.wantRefusals(t, map[string]float64{"organization": 1})
	})
}

// A share that comes free is of no use while all places of the replica are taken.
func TestAShareNeedsAPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shares := &limit.Shares{Name: "organization", All: 2, Each: 1, Patience: time.Minute}
		leave, _ := shares.Try(1)
		b, release := shared(1, shares)
		waiting := b.send(t, "a") // its place is free meanwhile
		other := b.send(t, "bb")
		leave()
		if code := <-waiting; code != 503 {
			t.Errorf("without a place: %d", code)
		}
		close(release)
		if code := <-other; code != 204 {
			t.Errorf("who took it: %d", code)
		}
		for _, of := range []id.Organization{1, 2} {
			if _, ok := shares.Try(of); !ok {
				t.Errorf("the share of %d was not given back", of)
			}
		}
		b.wantRefusals(t, map[string]float64{"replica": 1})
	})
}

func TestARequestHasATimeToBeWorkedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(1)
		b.Get("/x", Handle(func(_ http.ResponseWriter, r *http.Request) error { <-r.Context().Done(); return r.Context().Err() }))
		began := time.Now()
		w := b.call(t, "GET", "/x", "")
		if took := time.Since(began); check.Equal(t, "took", took, requestTime, "%d %v %s after %v", w.Code, w.Header(), w.Body, took) &&
			check.Equal(t, "w.Code", w.Code, 503, "%d %v %s after %v", w.Code, w.Header(), w.Body, took) {
			check.True(t, "there is a Retry-After", w.Header().Get("Retry-After") != "", "%d %v %s after %v", w.Code, w.Header(), w.Body, took)
		}
		if line := b.logLine(t); line["kind"] != "unavailable" {
			t.Errorf("%v", line)
		}
	})
}

func TestARequestMayGetMoreTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(1)
		b.Get("/x", Handle(func(_ http.ResponseWriter, r *http.Request) error {
			<-time.After(requestTime / 2)
			Extend(r.Context(), time.Hour)
			<-r.Context().Done()
			return r.Context().Err()
		}))
		began := time.Now()
		w := b.call(t, "GET", "/x", "")
		if took := time.Since(began); check.Equal(t, "took", took, requestTime/2+time.Hour, "%d after %v", w.Code, took) {
			check.Equal(t, "w.Code", w.Code, 503, "%d after %v", w.Code, took)
		}
	})
}

// deadlines is an http.ResponseWriter that remembers the deadlines of its connection.
type deadlines struct {
	*httptest.ResponseRecorder

	set []time.Duration // from then on
}

func (d *deadlines) SetWriteDeadline(end time.Time) error {
	d.set = append(d.set, time.Until(end))
	return nil
}

func TestAStreamHasATimeToBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &deadlines{ResponseRecorder: httptest.NewRecorder()}
		s := NewStream(w, 2*standstill)
		for range 3 {
			if err := s.Text("x"); err != nil {
				t.Fatal(err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			<-time.After(standstill * 3 / 4)
		}
		want := []time.Duration{standstill, standstill, standstill / 2}
		if check.Equal(t, "number of pieces", len(w.set), 3, "the client has %v for each piece, want %v", w.set, want) &&
			check.Equal(t, "the first piece", w.set[0], want[0], "the client has %v for each piece, want %v", w.set, want) &&
			check.Equal(t, "the second piece", w.set[1], want[1], "the client has %v for each piece, want %v", w.set, want) {
			check.Equal(t, "the third piece", w.set[2], want[2], "the client has %v for each piece, want %v", w.set, want)
		}
	})
}
