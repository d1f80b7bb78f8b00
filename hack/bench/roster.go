package main

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/registrar-dev/registrar/hack/internal/chart"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

var rosterCases = []benchCase{
	{"roster", "a roster of 300,000 new people with as many places in classes, the same file again, and another organization's calls meanwhile", onHouse(importing)},
}

func importing(ctx context.Context, r *run, h *house) error {
	school, err := h.partner(ctx, "bench")
	if err != nil {
		return err
	}
	neighbour, err := h.partner(ctx, "neighbour")
	if err != nil {
		return err
	}
	n := r.size(300_000)
	file, size, err := rosterFile(n)
	if err != nil {
		return err
	}
	quiet, err := neighbour.pace(ctx, r.lasting(20*time.Second), nil)
	if err != nil {
		return err
	}
	over := make(chan struct{})
	var busy measured
	var neighbourErr error
	var calls sync.WaitGroup
	calls.Go(func() { busy, neighbourErr = neighbour.pace(ctx, time.Hour, over) })
	parts := &phases{}
	calls.Go(func() { parts.watch(ctx, h.db, over) })
	cpu, log := h.cpu(), h.walBytes(ctx)
	profiled := h.profiles(ctx, r, r.lasting(20*time.Second))
	first, err := h.importRoster(ctx, school.key, file, fmt.Sprintf(`"create":%d`, n))
	used, logged := h.cpu().since(cpu, n), h.walBytes(ctx)-log
	close(over)
	calls.Wait()
	profiled()
	if err := errors.Join(err, neighbourErr); err != nil {
		return err
	}
	before, err := h.written(ctx)
	if err != nil {
		return err
	}
	again, err := h.importRoster(ctx, school.key, file, fmt.Sprintf(`"skip":%d`, n))
	if err != nil {
		return err
	}
	after, err := h.written(ctx)
	if err != nil {
		return err
	}
	theirs, err := oneRosterFile(n)
	if err != nil {
		return err
	}
	exported, err := h.importRoster(ctx, school.key, theirs, fmt.Sprintf(`"skip":%d`, n))
	if err != nil {
		return err
	}
	if err := h.printStatements(ctx, r); err != nil {
		return err
	}
	rss := peakRSS(h.worker.Identity().PID)
	bare, err := h.bareCopy(ctx)
	if err != nil {
		return err
	}
	scale := time.Duration(float64(time.Second) * r.scale)
	r.printf("  people.csv of %.1f MB, %d people and as many places in classes", float64(size)/1e6, n)
	most, mostAgain := (60 * scale).Seconds(), (12 * scale).Seconds()
	r.draw(chart.Rows{Title: "Time of the import", Unit: "s", Rows: []chart.Row{{Name: "the import", Parts: parts.parts(), Bound: most},
		bar("a bare COPY of the rows", bare.Seconds(), 0, chart.Grey), bar("the same file again", again.Seconds(), mostAgain, chart.Blue)}})
	r.step("the neighbour's provisioning, no import", quiet.times, 0)
	r.step("the neighbour's, during the import", busy.times, 0)
	r.verdict("the import", first <= 60*scale, fmt.Sprintf("at most %.0f s", most), "%.1f s", first.Seconds())
	r.verdict("the import beside a bare COPY", first <= 4*bare, "at most 4 times", "%.1f times the %.1f s of a COPY of the same rows", first.Seconds()/bare.Seconds(), bare.Seconds())
	r.printf("  of which %s", parts)
	r.printf("  a person, with the neighbour's calls: CPU %s, %d bytes of WAL", used, logged/int64(n))
	r.verdict("the same file again", again <= 12*scale && before == after, fmt.Sprintf("at most %.0f s, no row written", mostAgain), "%.1f s, %d rows written",
		again.Seconds(), after-before)
	r.verdict("the same people from a OneRoster archive", exported <= again*6/5, "at most 1.2 times the same in our own format", "%.1f s: %.2f times", exported.Seconds(), exported.Seconds()/again.Seconds())
	r.verdict("peak memory of the worker", rss <= 200<<20, "at most 200 MiB", "%d MiB", rss>>20)
	with, without := busy.times.At(.99), quiet.times.At(.99)
	why := ""
	if with > 2*without {
		why = "; its commits wait until the import's log is on the disk, and both share the cores"
	}
	r.verdict("a neighbour's provisioning, p99", with <= 2*without, "at most 2 times its value without the import", "%s, %s without: %.1f times%s",
		round(with), round(without), float64(with)/float64(without), why)
	return nil
}

// rosterFile makes the archive; size is that of its people.csv.
func rosterFile(n int) (file []byte, size int, err error) {
	var people, seats bytes.Buffer
	people.WriteString("person_external_id,email,first_name,last_name,role\n")
	seats.WriteString("person_external_id,class_external_id,class_name\n")
	for i := range n {
		fmt.Fprintf(&people, "student-%07d,given%d.family%d@school-of-the-bench.org,Given%d,Family-Name-%d,student\n", i, i, i%977, i%4001, i)
		fmt.Fprintf(&seats, "student-%07d,class-%d,Class %d\n", i, i/25, i/25)
	}
	size = people.Len()
	file, err = zipped(map[string]*bytes.Buffer{"people.csv": &people, "enrollments.csv": &seats})
	return file, size, err
}

// oneRosterFile is the same roster as OneRoster 1.1 has it.
func oneRosterFile(n int) ([]byte, error) {
	var users, classes, places bytes.Buffer
	users.WriteString("sourcedId,status,dateLastModified,enabledUser,orgSourcedIds,role,username,userIds,givenName,familyName,middleName,identifier,email,sms,phone,agentSourcedIds,grades,password\n")
	classes.WriteString("sourcedId,status,dateLastModified,title,grades,courseSourcedId,classCode,classType,location,schoolSourcedId,termSourcedIds,subjects,subjectCodes,periods\n")
	places.WriteString("sourcedId,status,dateLastModified,classSourcedId,schoolSourcedId,userSourcedId,role,primary,beginDate,endDate\n")
	for i := range n {
		fmt.Fprintf(&users, "student-%07d,,,true,school-1,student,user%d,,Given%d,Family-Name-%d,,,given%d.family%d@school-of-the-bench.org,,,,09,\n", i, i, i%4001, i, i, i%977)
		if i%25 == 0 {
			fmt.Fprintf(&classes, "class-%d,,,Class %d,09,,C%d,scheduled,,school-1,,,,1\n", i/25, i/25, i/25)
		}
		fmt.Fprintf(&places, "e-%d,,,class-%d,school-1,student-%07d,student,false,,\n", i, i/25, i)
	}
	return zipped(map[string]*bytes.Buffer{"manifest.csv": bytes.NewBufferString("propertyName,value\noneroster.version,1.1\nfile.users,bulk\nfile.classes,bulk\nfile.enrollments,bulk\n"),
		"users.csv": &users, "classes.csv": &classes, "enrollments.csv": &places})
}

// zipped is an archive of files by their names.
func zipped(files map[string]*bytes.Buffer) ([]byte, error) {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for name, text := range files {
		f, err := w.Create(name)
		if err != nil {
			return nil, err
		}
		if _, err := text.WriteTo(f); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return b.Bytes(), err
}

// importRoster sends the file and waits for its answer, which has to hold the text.
func (h *house) importRoster(ctx context.Context, key string, file []byte, want string) (time.Duration, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, fmt.Sprintf("http://127.0.0.1:%d/api/v1/roster/import/", h.settings.Ports.API), bytes.NewReader(file))
	if err != nil {
		return 0, err
	}
	req.Header.Set("X-API-Key", key)
	req.Header.Set("Content-Type", "application/zip")
	began := time.Now()
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err == nil && (res.StatusCode != http.StatusOK || !bytes.Contains(text, []byte(want)) || !json.Valid(text)) {
		err = fmt.Errorf("the import: %d %.500s", res.StatusCode, text)
	}
	return time.Since(began), err
}

// pace provisions a new student fifty times a second, one call after the other, until the
// time is over or the channel closed.
func (p *partner) pace(ctx context.Context, lasting time.Duration, over <-chan struct{}) (m measured, err error) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	end := time.After(lasting)
	defer func() { m.times = sorted(m.times) }()
	for {
		select {
		case <-over:
			return m, nil
		case <-end:
			return m, nil
		case <-tick.C:
		}
		at := time.Now()
		if err := p.create(ctx); err != nil {
			return m, err
		}
		m.times = append(m.times, time.Since(at))
	}
}

// walBytes is how much PostgreSQL has written to its log so far.
func (h *house) walBytes(ctx context.Context) (n int64) {
	_ = h.db.QueryRow(ctx, `SELECT pg_current_wal_lsn() - '0/0'`).Scan(&n) // a by-product
	return n
}

// phases are how long each part of the work on a run takes, as its row tells.
type phases struct {
	began, planned, people, classes time.Time
}

func (p *phases) watch(ctx context.Context, db *pg.DB, over <-chan struct{}) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-over:
			p.classes = time.Now()
			return
		case <-tick.C:
		}
		var state string
		var people, classes int64
		if err := db.QueryRow(ctx, `SELECT state, people_done, classes_done FROM roster_runs ORDER BY id DESC LIMIT 1`).Scan(&state, &people, &classes); err != nil {
			continue // there is none yet
		}
		for _, step := range []struct {
			at      *time.Time
			reached bool
		}{{&p.began, state != "uploading"}, {&p.planned, state == "applying"}, {&p.people, classes > 0}} {
			if step.reached && step.at.IsZero() {
				*step.at = time.Now()
			}
		}
	}
}

// parts are the chart's.
func (p *phases) parts() []chart.Part {
	return []chart.Part{{Name: "reading and planning", Color: chart.Amber, Value: p.planned.Sub(p.began).Seconds()},
		{Name: "people", Color: chart.Blue, Value: p.people.Sub(p.planned).Seconds()}, {Name: "classes", Color: chart.Green, Value: p.classes.Sub(p.people).Seconds()}}
}

func (p *phases) String() string {
	return fmt.Sprintf("reading and planning %.1f s, people %.1f s, classes %.1f s",
		p.planned.Sub(p.began).Seconds(), p.people.Sub(p.planned).Seconds(), p.classes.Sub(p.people).Seconds())
}

var rosterTables = []string{"accounts", "members", "arrivals", "directory", "directory_words", "roster_identities", "roster_classes", "roster_class_members"}

// written counts the rows ever written to the tables that an import writes people to.
func (h *house) written(ctx context.Context) (n int64, err error) {
	err = h.db.QueryRow(ctx, `SELECT count(*) + coalesce(sum((x.xmin::text)::bigint), 0) FROM (
		SELECT xmin FROM accounts WHERE created_via = 'roster' UNION ALL SELECT xmin FROM members WHERE created_via = 'roster'
		UNION ALL SELECT xmin FROM roster_identities UNION ALL SELECT xmin FROM roster_classes UNION ALL SELECT xmin FROM roster_class_members) AS x`).Scan(&n)
	return n, err
}

// bareCopy copies the rows that were imported into tables with the same indexes.
func (h *house) bareCopy(ctx context.Context) (took time.Duration, err error) {
	conn, err := h.db.Acquire(ctx)
	if err != nil {
		return 0, err
	}
	defer conn.Release()
	for _, table := range rosterTables {
		name := filepath.Join(h.Dir, "copy-"+table)
		if err := copyOut(ctx, conn.Conn().PgConn().CopyTo, table, name); err != nil {
			return 0, err
		}
		if _, err := conn.Exec(ctx, "CREATE TABLE bare_"+table+" (LIKE "+table+" INCLUDING INDEXES)"); err != nil {
			return 0, err
		}
		f, err := os.Open(name)
		if err != nil {
			return 0, err
		}
		began := time.Now()
		_, err = conn.Conn().PgConn().CopyFrom(ctx, f, "COPY bare_"+table+" FROM STDIN")
		took += time.Since(began)
		if err := errors.Join(err, f.Close()); err != nil {
			return 0, err
		}
	}
	return took, nil
}

func copyOut[T any](ctx context.Context, copyTo func(context.Context, io.Writer, string) (T, error), table, name string) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	_, err = copyTo(ctx, f, "COPY "+table+" TO STDOUT")
	return errors.Join(err, f.Close())
}
