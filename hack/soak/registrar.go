package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
)

const filesClient = 1000

// registrar sends a school's file again and again, with people who come, go and come back.
type registrar struct {
	*load

	call  *caller
	model *model
	known int
}

func (g *registrar) step(ctx context.Context) error {
	if g.call.rand.IntN(8) == 0 && g.known > 0 {
		return g.emptySnapshot(ctx)
	}
	g.known += g.call.rand.IntN(30)
	if g.known < 20 {
		g.known = 20
	}
	away := map[int]bool{}
	for range g.call.rand.IntN(5) { // too few for a guard
		away[g.call.rand.IntN(g.known)] = true
	}
	o := op{Kind: "roster", Org: rosterSchool, Snapshot: g.call.rand.IntN(3) > 0}
	var file strings.Builder
	file.WriteString("person_external_id,email,first_name,last_name,role\n")
	for n := range g.known {
		if away[n] {
			continue
		}
		p := person{External: fmt.Sprintf("p%05d", n), Email: fmt.Sprintf("p%05d@gamma-school.org", n), First: "Ana"}
		fmt.Fprintf(&file, "%s,%s,%s,Lee,student\n", p.External, p.Email, p.First)
		o.People = append(o.People, p)
	}
	var got struct {
		Status string
		Counts counts
	}
	a, err := g.call.ask(ctx, g.upload(o.Snapshot, file.String()), &got)
	if err != nil {
		return err
	}
	if got.Status != "applied" {
		return fmt.Errorf("a roster that no guard concerns: %s", a.body)
	}
	o.Counts = got.Counts
	return g.accepted(filesClient, g.model, o, a)
}

func (g *registrar) upload(snapshot bool, file string) request {
	mode := "additive_only"
	if snapshot {
		mode = "authoritative_snapshot"
	}
	return request{method: http.MethodPost, path: "roster/import/", org: rosterSchool, body: file,
		header: map[string]string{"Content-Type": "text/csv", "X-Roster-Mode": mode, "X-Roster-Source": "sis"}}
}

func (g *registrar) emptySnapshot(ctx context.Context) error {
	a, err := g.call.ask(ctx, g.upload(true, "person_external_id,email,first_name,last_name,role\n"), nil)
	if err != nil {
		return err
	}
	if a.status != http.StatusAccepted {
		return fmt.Errorf("an empty snapshot was answered %d: %s", a.status, a.body)
	}
	return g.accepted(filesClient, g.model, op{Kind: "empty snapshot", Org: rosterSchool}, a)
}
