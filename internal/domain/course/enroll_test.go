package course_test

import (
	"sync"
	"testing"

	"github.com/registrar-dev/registrar/internal/domain/course"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/pg/pgtest"
)

// enroll does what a call does about courses and returns its moves as they were stored.
func enroll(t *testing.T, db *pg.DB, org id.Organization, user id.User, r course.Request) ([]course.Move, course.Held) {
	t.Helper()
	var moves []course.Move
	var held course.Held
	err := db.InTx(t.Context(), func(tx *pg.Tx) (err error) {
		var offer course.Offer
		var read, write pg.Batch
		course.LoadOffer(&read, org, r, &offer)
		course.LoadHeld(&read, org, user, r.Ref, &held)
		if err := read.Send(t.Context(), tx); err != nil {
			return err
		}
		if moves, _, err = course.Plan(r, offer, held, terms, today); err != nil {
			return err
		}
		if err := course.EnsureDefaults(t.Context(), tx, org, moves, now); err != nil {
			return err
		}
		course.Enroll(&write, org, user, moves, today, now)
		return write.Send(t.Context(), tx)
	})
	if err != nil {
		t.Fatal(err)
	}
	return moves, held
}

func TestEnrollStoresWhatPlanDecides(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	org := organization(t, db, "org")
	ana := person(t, db, org, "ana@x.y", "member")
	batch, err := course.Create(t.Context(), db, audit.Platform, org, draft("batch", "toefl"), now)
	if err != nil {
		t.Fatal(err)
	}
	r := course.Request{Types: []string{"ielts"}, Courses: []id.Course{batch.ID}, TenureMonths: 1, Extend: true, Ref: "7"}
	first, _ := enroll(t, db, org, ana, r)
	check.Equal(check.Now(t), "number of moves", len(first), 2, "first = %+v", first)
	check.Equal(check.Now(t), "the first move's action", first[0].Action, course.Created, "first = %+v", first)
	check.Equal(check.Now(t), "the second move's action", first[1].Action, course.Created, "first = %+v", first)
	check.True(check.Now(t), "the first move has an id", first[0].After.ID != 0, "first = %+v", first)
	check.Equal(check.Now(t), "the first move's name", first[0].After.Course.Name, "IELTS Academic", "first = %+v", first)
	check.True(check.Now(t), "the first course is a default", first[0].After.Course.IsDefault, "first = %+v", first)
	again, held := enroll(t, db, org, ana, r)
	check.Equal(check.Now(t), "number of enrollments", len(held.Enrollments), 2, "held = %+v\nwant what was made: %+v", held.Enrollments, first)
	check.False(check.Now(t), "the first enrollment differs", held.Enrollments[0].Differs(first[0].After), "held = %+v\nwant what was made: %+v", held.Enrollments, first)
	check.False(check.Now(t), "the second enrollment differs", held.Enrollments[1].Differs(first[1].After), "held = %+v\nwant what was made: %+v", held.Enrollments, first)
	for i, m := range again {
		if check.Equal(t, "m.Action", m.Action, course.Unchanged, "again = %+v", m) &&
			check.Equal(t, "m.Note", m.Note, course.NoteAlreadyExtended, "again = %+v", m) {
			check.False(t, "the enrollment differs", m.After.Differs(first[i].After), "again = %+v", m)
		}
	}
	r.Ref = "8"
	extended, _ := enroll(t, db, org, ana, r)
	_, held = enroll(t, db, org, ana, r)
	for i, m := range extended {
		if check.Equal(t, "m.Action", m.Action, course.Extended, "extended = %+v, stored %+v", m, held.Enrollments[i]) &&
			check.Equal(t, "m.After.EndDate", m.After.EndDate, today.AddMonths(1).AddMonths(1), "extended = %+v, stored %+v", m, held.Enrollments[i]) {
			check.False(t, "the stored enrollment differs", held.Enrollments[i].Differs(m.After), "extended = %+v, stored %+v", m, held.Enrollments[i])
		}
	}
	if other, _ := enroll(t, db, organization(t, db, "other"), ana, course.Request{Types: []string{"ielts"}}); other[0].Action != course.Created {
		t.Errorf("another organization finds the enrollment: %+v", other)
	}
}

func TestTheFirstGrantsOfATypeAgreeOnOneDefaultCourse(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	org := organization(t, db, "org")
	users := make([]id.User, 16)
	for i := range users {
		users[i] = person(t, db, org, string(rune('a'+i))+"@x.y", "member")
	}
	var wg sync.WaitGroup
	made := make([]id.Course, len(users))
	for i, user := range users {
		wg.Go(func() {
			types := []string{"ielts", "toefl", "gre"}
			if i%2 == 1 {
				types = []string{"gre", "toefl", "ielts"} // the other way round must not deadlock
			}
			moves, _ := enroll(t, db, org, user, course.Request{Types: types})
			for _, m := range moves {
				if m.After.Course.Type == "ielts" {
					made[i] = m.After.Course.ID
				}
			}
		})
	}
	wg.Wait()
	for _, c := range made {
		check.True(check.Now(t), "there is a default course", c != 0, "default courses %v", made)
		check.Equal(check.Now(t), "c", c, made[0], "default courses %v", made)
	}
	if list, err := course.List(t.Context(), db, org, today); check.NoError(check.Now(t), err, "courses = %+v, %v", list, err) &&
		check.Equal(check.Now(t), "number of courses", len(list), 3, "courses = %+v, %v", list, err) {
		check.Equal(check.Now(t), "the first course's students with access", list[0].StudentsWithAccess, len(users), "courses = %+v, %v", list, err)
	}
}
