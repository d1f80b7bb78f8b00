package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// stage is where a delivery's time went: until its attempt began (relay and queue), and from
// then to its receipt.
type stage struct {
	second       int // of the run
	began, taken time.Duration
}

// slowest says when the slowest hundredth of the deliveries of a run came and where their time
// went, so that one stall can be told from a steady slowness.
func (s *scene) slowest(ctx context.Context, r *run, committed commits) error {
	events, err := s.events(ctx, committed)
	if err != nil {
		return err
	}
	first, _ := s.sink.arrivals()
	rows, err := s.db.Query(ctx, `
		SELECT j.event_id, e.url, min(j.started_at) FROM webhook_journal j
		JOIN webhook_endpoints e ON e.id = j.endpoint_id
		WHERE j.organization_id = $1 GROUP BY 1, 2`, s.org)
	if err != nil {
		return err
	}
	var (
		stages []stage
		event  [16]byte
		url    string
		start  time.Time
		least  time.Time
	)
	for _, at := range events {
		if least.IsZero() || at.Before(least) {
			least = at
		}
	}
	_, err = pgx.ForEachRow(rows, []any{&event, &url, &start}, func() error {
		key := fmt.Sprintf("evt_%x", event)
		since, known := events[key]
		arrived, came := first[strings.TrimPrefix(url, s.sink.base)+key]
		if known && came {
			stages = append(stages, stage{int(since.Sub(least).Seconds()), start.Sub(since), arrived.Sub(start)})
		}
		return nil
	})
	if err != nil {
		return err
	}
	slices.SortFunc(stages, func(a, b stage) int { return int(b.began + b.taken - a.began - a.taken) })
	stages = stages[:len(stages)/100]
	var began, taken time.Duration
	seconds := map[int]int{}
	for _, st := range stages {
		seconds[st.second]++
		began, taken = began+st.began, taken+st.taken
	}
	maps.DeleteFunc(seconds, func(_, n int) bool { return n*10 < len(stages) })
	if n := time.Duration(len(stages)); n > 0 {
		r.printf("  the slowest 1 %%: %s until the attempt, %s from there to the receipt; seconds of the run with a tenth of them: %v", round(began/n), round(taken/n), seconds)
	}
	return nil
}
