package limit

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/id"
)

const north, south, west = id.Organization(1), id.Organization(2), id.Organization(3)

// fill takes n places.
func fill(t *testing.T, s *Shares, of id.Organization, n int) (leaves []func()) {
	t.Helper()
	for range n {
		leave, ok := s.Try(of)
		if !ok {
			t.Fatalf("place %d of organization %d is refused", len(leaves)+1, of)
		}
		leaves = append(leaves, leave)
	}
	return leaves
}

func (s *Shares) none(t *testing.T, of ...id.Organization) {
	t.Helper()
	for _, o := range of {
		if _, ok := s.Try(o); ok {
			t.Errorf("organization %d gets one place more", o)
		}
	}
}

func TestAnOrganizationGetsItsShareAndLeavesTheRest(t *testing.T) {
	s := &Shares{All: 5, Each: 2}
	leaves := fill(t, s, north, 2)
	s.none(t, north)
	leaves = append(leaves, fill(t, s, south, 2)...)
	s.none(t, north, south)
	leaves = append(leaves, fill(t, s, west, 1)...)
	s.none(t, north, south, west) // all are taken
	for range 2 {
		leaves[0]() // gives back once
	}
	s.none(t, south)
	leaves = append(leaves, fill(t, s, west, 1)...)
	s.none(t, north, west)
	for _, leave := range leaves {
		leave()
	}
	if check.Equal(t, "number of organizations that hold places", len(s.of), 0, "%d places are taken, %d organizations remembered", s.taken, len(s.of)) {
		check.Equal(t, "s.taken", s.taken, 0, "%d places are taken, %d organizations remembered", s.taken, len(s.of))
	}
	fill(t, s, north, 2)
}

// arrive waits for a place and tells when it has one.
func arrive(ctx context.Context, s *Shares, of id.Organization, got chan<- func()) {
	go func() {
		leave, ok := s.Wait(ctx, of)
		if !ok {
			leave = nil
		}
		got <- leave
	}()
	synctest.Wait() // it is in the queue, or has its answer
}

func TestAPlaceGoesToTheFirstWhoMayHaveIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Shares{All: 3, Each: 2, Patience: time.Minute}
		ours, theirs := fill(t, s, north, 2), fill(t, s, south, 1)
		second, third, other := make(chan func(), 1), make(chan func(), 1), make(chan func(), 1)
		arrive(t.Context(), s, north, second)
		arrive(t.Context(), s, north, third)
		arrive(t.Context(), s, west, other)
		theirs[0]()
		synctest.Wait()
		check.Equal(check.Now(t), "number of places of the others", len(second)+len(third), 0, "the place did not go to the organization that has none")
		check.Equal(check.Now(t), "number of places of the other", len(other), 1, "the place did not go to the organization that has none")
		ours[0]()
		synctest.Wait()
		check.Equal(check.Now(t), "number of places of the second", len(second), 1, "the place did not go to who came first")
		check.Equal(check.Now(t), "number of places of the third", len(third), 0, "the place did not go to who came first")
		s.none(t, north, south)
		(<-second)()
		(<-other)()
		(<-third)()
		ours[1]()
		if check.Equal(t, "s.taken", s.taken, 0, "%d places are taken, %d organizations remembered, %d wait", s.taken, len(s.of), len(s.waiting)) &&
			check.Equal(t, "number of organizations that hold places", len(s.of), 0, "%d places are taken, %d organizations remembered, %d wait", s.taken, len(s.of), len(s.waiting)) {
			check.Equal(t, "number of waiting requests", len(s.waiting), 0, "%d places are taken, %d organizations remembered, %d wait", s.taken, len(s.of), len(s.waiting))
		}
	})
}

func TestWhoWaitsGivesUpInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Shares{All: 1, Each: 1, Patience: time.Minute}
		leave := fill(t, s, north, 1)[0]
		patient, gone := make(chan func(), 1), make(chan func(), 1)
		ctx, cancel := context.WithCancel(t.Context())
		arrive(t.Context(), s, north, patient)
		arrive(ctx, s, south, gone)
		cancel()
		if <-gone != nil {
			t.Error("one that has gone got a place")
		}
		if began := time.Now(); check.True(t, "no place was given", <-patient == nil, "it did not give up after its patience") {
			check.Equal(t, "time that it took", time.Since(began), s.Patience, "it did not give up after its patience")
		}
		leave()
		if check.Equal(t, "s.taken", s.taken, 0, "%d places are taken, %d organizations remembered, %d wait", s.taken, len(s.of), len(s.waiting)) &&
			check.Equal(t, "number of organizations that hold places", len(s.of), 0, "%d places are taken, %d organizations remembered, %d wait", s.taken, len(s.of), len(s.waiting)) {
			check.Equal(t, "number of waiting requests", len(s.waiting), 0, "%d places are taken, %d organizations remembered, %d wait", s.taken, len(s.of), len(s.waiting))
		}
	})
}

func TestTheQueueOfAnOrganizationIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Shares{All: 2, Each: 1, Patience: time.Minute}
		fill(t, s, north, 1)
		got := make(chan func(), queue)
		for range queue {
			arrive(t.Context(), s, north, got)
		}
		if leave, ok := s.Wait(t.Context(), north); check.False(t, "ok", ok, "one more than may wait was let in") &&
			check.True(t, "there is no place", leave == nil, "one more than may wait was let in") {
			check.Equal(t, "number of places", len(got), 0, "one more than may wait was let in")
		}
		if leave, ok := s.Wait(t.Context(), south); check.True(t, "ok", ok, "another organization has to wait") {
			check.True(t, "there is a place", leave != nil, "another organization has to wait")
		}
		for range queue {
			<-got
		}
	})
}
