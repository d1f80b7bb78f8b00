package catalog

import (
	"time"

	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// Placement is a request for starter tests, for a student with a new enrollment.
type Placement struct {
	Organization id.Organization
	User         id.User
	Course       id.Course
	Type         string // of the course, and of the tests
	PerCourse    int    // the organization's starter_tests_per_course
	Limit        int    // its visible_tests_limit: of all tests that a new student sees
}

// PlaceStarters queues the placing of min(per course, available, limit − already placed)
// unseen tests, in the catalog's order. Sending b fills placed with their number.
func PlaceStarters(b *pg.Batch, p Placement, now time.Time, placed *int) {
	if p.PerCourse > 0 && p.Limit > 0 {
		queuePlaceStarters(b, p, now, placed)
	}
}
