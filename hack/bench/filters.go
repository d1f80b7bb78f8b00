package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/registrar-dev/registrar/hack/stack"
)

// filters are every list with every single filter of the reference.
func (e *estate) filters() []string {
	big := e.orgs[0]
	user, course, small := fmt.Sprint(big.firstUser+1), fmt.Sprint(big.course), fmt.Sprint(big.small)
	email := fmt.Sprintf("s%d.2@estate.school", big.id)
	who := []string{"email=" + email, "user_id=" + user, "course_id=" + course, "course_id=" + small, "tz=Asia/Kolkata"}
	window := []string{"since=" + e.day(-300), "since=" + e.day(-1)}
	var paths []string
	add := func(path string, filters ...[]string) {
		paths = append(paths, path)
		for _, list := range filters {
			for _, f := range list {
				paths = append(paths, path+"&"+f)
			}
		}
	}
	kinds := []string{"kind=test", "kind=quiz", "kind=assessment"}
	add("students/?limit=100", []string{"status=active", "status=inactive", "course_id=" + course, "course_id=" + small, "tz=Asia/Kolkata"})
	paths = append(paths, "students/?email="+email, "catalog/", "catalog/?kind=quiz")
	add("assignments/?limit=100", []string{"status=open", "status=completed", "status=overdue"}, kinds, who, window)
	add("results/?limit=100", kinds, []string{"test_type=sat"}, who, window, []string{"until=" + e.day(-300), "until=" + e.day(-1)})
	add("activity/daily/?limit=100", []string{"from=" + e.day(-360), "from=" + e.day(-3)}, who)
	add("progress/daily/?from="+e.day(-1), kinds, []string{"test_type=sat"}, who)
	return paths
}

// everyFilter measures each of them.
func everyFilter(ctx context.Context, r *run, e *estate, c reader) error {
	defer e.house.profiles(ctx, r, r.lasting(30*time.Second))()
	worst, where, missed := 0.0, "", 0
	for _, path := range e.filters() {
		t, err := c.repeat(ctx, 300, path) // of which three may be slower than the 99th percentile
		if err != nil {
			return err
		}
		ratio := float64(t.At(.99)) / float64(t.At(.5))
		if ratio > worst {
			worst, where = ratio, path
		}
		if ratio >= 10 {
			missed++
		}
		r.step(path, t, 0)
	}
	r.verdict("p99 : p50 of every filter", missed == 0, "below 10 times", "at most %.1f times, at %s", worst, where)
	return nil
}

// sequential finds the tables that must never be read as a whole.
var sequential = regexp.MustCompile(`Seq Scan on (accounts|members|enrollments|assignments|results|result_spans|activity_days)\b`)

// everyPlan lets PostgreSQL write down the plan of every statement of api-server, and looks for
// sequential scans of large tables in them. Each request is made more often than the five times
// after which a statement may get a plan for all of its parameters.
func everyPlan(ctx context.Context, r *run, e *estate, c reader) error {
	h := e.house
	if err := h.explainAll(ctx); err != nil {
		return err
	}
	h.notePeaks()
	if err := h.api.Stop(); err != nil {
		return err
	}
	h.api = h.settings.APIServer()
	if err := stack.StartReady(ctx, h.api, h.settings.Ports.APIPrivate); err != nil {
		return err
	}
	log := filepath.Join(h.logs(r), "postgres.log")
	plans, found := 0, 0
	for _, path := range e.filters() {
		before, err := os.Stat(log)
		if err != nil {
			return err
		}
		for range 8 {
			if _, _, err := c.get(ctx, path); err != nil {
				return err
			}
		}
		text, err := os.ReadFile(log)
		if err != nil {
			return err
		}
		fresh := string(text[before.Size():])
		plans += strings.Count(fresh, "Query Text:")
		if scan := sequential.FindString(fresh); scan != "" {
			found++
			r.printf("  %s: %s", path, scan)
		}
	}
	r.verdict("plans without sequential scans", found == 0 && plans > 0, "no request has one", "%d of %d requests have one, in %d plans", found, len(e.filters()), plans)
	return nil
}

// explainAll makes PostgreSQL log the plan of whatever sessions that begin now execute.
func (h *house) explainAll(ctx context.Context) error {
	return h.superuser(ctx, "registrar",
		`LOAD 'auto_explain'`, // makes its settings known here
		`ALTER SYSTEM SET session_preload_libraries = 'auto_explain'`,
		`ALTER SYSTEM SET auto_explain.log_min_duration = 0`,
		`SELECT pg_reload_conf()`)
}
