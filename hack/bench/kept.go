package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5"
)

// completeFile is in a kept estate's folder once the data is whole.
const completeFile = "complete"

// openEstate starts a house with the estate of the run's folder in it, which is made when it is
// not there. The caller closes the house.
func openEstate(ctx context.Context, r *run) (h *house, e *estate, err error) {
	whole, err := prepareFolder(r.estate)
	if err != nil {
		return nil, nil, err
	}
	if h, err = openHouse(ctx, r, r.estate); err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, h.close())
		}
	}()
	conn, err := pgx.Connect(ctx, h.Postgres.URL("registrar"))
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	e = &estate{house: h, conn: conn, r: r}
	complete := filepath.Join(r.estate, completeFile)
	if whole {
		made, err := os.ReadFile(complete)
		r.printf("  the estate was made before, with %s", bytes.TrimSpace(made))
		return h, e, errors.Join(err, e.recall(ctx))
	}
	if err := e.load(ctx); err != nil {
		return h, e, err
	}
	return h, e, os.WriteFile(complete, fmt.Appendf(nil, "scale %g in %s\n", r.scale, time.Since(e.began).Round(time.Second)), 0o600)
}

// onEstate makes a case that runs over the estate.
func onEstate(do func(context.Context, *run, *estate) error) func(context.Context, *run) error {
	return func(ctx context.Context, r *run) (err error) {
		h, e, err := openEstate(ctx, r)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, h.close()) }()
		return do(ctx, r, e)
	}
}

// prepareFolder makes the folder of a kept estate and says whether a whole one is there.
func prepareFolder(dir string) (whole bool, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return false, err
	}
	if _, err := os.Stat(filepath.Join(dir, completeFile)); !errors.Is(err, os.ErrNotExist) {
		return err == nil, err
	}
	if _, err := os.Stat(filepath.Join(dir, "postgres")); err == nil {
		return false, fmt.Errorf("the estate in %s was never completed; remove that folder", dir)
	}
	return false, nil
}

// recall finds out what the estate holds from its data.
func (e *estate) recall(ctx context.Context) error {
	if err := e.conn.QueryRow(ctx, `SELECT max(last_final) FROM result_spans`).Scan(&e.now); err != nil {
		return err
	}
	e.now = e.now.UTC()
	rows, err := e.conn.Query(ctx, `
		SELECT o.id, c.course, c.small, m.first_user, m.students, r.last, a.last
		FROM organizations o
		CROSS JOIN LATERAL (SELECT min(id) AS course, max(id) AS small FROM courses WHERE organization_id = o.id) AS c
		CROSS JOIN LATERAL (SELECT min(user_id) AS first_user, count(*) AS students FROM members WHERE organization_id = o.id AND role = 'member') AS m
		JOIN result_positions r ON r.organization_id = o.id JOIN assignment_positions a ON a.organization_id = o.id
		WHERE o.slug LIKE 'estate-%' ORDER BY o.id`)
	if err != nil {
		return err
	}
	e.orgs, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (h holding, err error) {
		err = row.Scan(&h.id, &h.course, &h.small, &h.firstUser, &h.students, &h.results, &h.assignments)
		return h, err
	})
	if err == nil && len(e.orgs) == 0 {
		err = errors.New("the database holds no estate")
	}
	return err
}
