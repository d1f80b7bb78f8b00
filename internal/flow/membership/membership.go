// Package membership imports the people of an LMS's course as a roster. They become a file of our own format, whose class is the course,
// and a run as any other: planned, guarded, held and undone like one that was sent.
package membership

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/csv"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/lms"
	"github.com/registrar-dev/registrar/internal/domain/roster"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// Import hands the members of a course over as a run of the course's source. It takes people away where the platform has
// allowed snapshots of the source (reference: roster#guards), and else adds and changes alone. Unavailable (too_many_runs).
func Import(ctx context.Context, db *pg.DB, p lms.Pull, members []lms.Member, now time.Time) (run id.RosterRun, err error) {
	upload, err := file(p, members)
	if err != nil {
		return 0, err
	}
	draft := roster.Draft{Mode: roster.Additive, Form: roster.ZipForm}
	if draft.Source, err = roster.FindSource(ctx, db, p.Organization, p.Source()); err != nil {
		return 0, err
	}
	if draft.Source.AuthoritativeEnabled {
		draft.Mode = roster.Snapshot
	}
	by := p.By()
	if run, err = roster.Begin(ctx, db, p.Organization, by.Name, now); err != nil {
		return 0, err
	}
	if draft.Size, err = roster.Store(ctx, db, run, upload); err == nil {
		err = roster.Submit(ctx, db, by, p.Organization, run, draft, now)
	}
	if err != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		_ = roster.Abandon(ctx, db, p.Organization, run) // what it leaves is cleared within hours
		return 0, err
	}
	return run, nil
}

// file is the roster of a course: its active members, and a place in its class for each student. Who is not active is as one whom the LMS
// lists no more.
func file(p lms.Pull, members []lms.Member) (*bytes.Reader, error) {
	people := [][]string{{"person_external_id", "email", "first_name", "last_name", "role"}}
	places := [][]string{{"person_external_id", "class_external_id", "class_name"}}
	for _, m := range members {
		if !m.Active {
			continue
		}
		people = append(people, []string{m.ID, m.Email, m.FirstName, m.LastName, m.Role})
		if m.Role == lms.RoleStudent {
			places = append(places, []string{m.ID, p.Course, p.Title})
		}
	}
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, section := range []struct {
		name string
		rows [][]string
	}{{roster.PeopleFile, people}, {roster.EnrollmentsFile, places}} {
		into, err := w.Create(section.name)
		if err != nil {
			return nil, err
		}
		if err := csv.NewWriter(into).WriteAll(section.rows); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return bytes.NewReader(b.Bytes()), nil
}
