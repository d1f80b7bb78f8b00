package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/registrar-dev/registrar/hack/internal/plansim"
)

// simulationSeed draws the students of the simulation.
const simulationSeed = 8

// simulate runs students through plans on the case's PostgreSQL, with the flows that the
// API server and the worker run; the programs themselves are stopped, as their clocks are
// not the simulation's.
func simulate(ctx context.Context, r *run, h *house) error {
	if err := errors.Join(h.worker.Stop(), h.sender.Stop(), h.api.Stop()); err != nil {
		return err
	}
	o := plansim.Options{Students: r.size(1000), Days: 120, Seed: simulationSeed}
	w, err := plansim.New(ctx, h.db, o)
	if err != nil {
		return err
	}
	began := time.Now()
	if err := w.Run(ctx, func(day int) {
		if day%30 == 0 {
			r.printf("  day %d after %.0f s", day, time.Since(began).Seconds())
		}
	}); err != nil {
		return err
	}
	broken := w.Rules(ctx)
	if err := w.Table(ctx, r.out); err != nil {
		return err
	}
	if r.found.picture, err = w.Picture(ctx); err != nil {
		return err
	}
	r.verdict("rules", broken == nil, "no rule is broken", "%d rules held over %d students and %d days, of them %d after each day", plansim.Count(), o.Students, o.Days, plansim.EachDay())
	if broken != nil {
		return fmt.Errorf("rules were broken: %w", broken)
	}
	return nil
}
