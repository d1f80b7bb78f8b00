package roster

import "strconv"

// Totals are the numbers that Guards judges.
type Totals struct {
	PeopleFile         string // the name of the section of people
	Rows               int    // of it
	DeltaPeople        bool   // it has only those who changed
	DeltaSeats         bool   // enrollments.csv has only the places that changed, or may be missing
	Active             int    // active people of the source
	Deactivate         int    // of them
	HadEnrollments     bool
	HasEnrollments     bool
	Seats              int       // that the source has
	SeatRows           int       // rows of enrollments.csv
	SeatsRemoved       int       // of them, those that are not in the file
	Unreadable         int       // rows of people whose person is unknown
	SeatRowsUnreadable int       // rows of enrollments.csv whose seat is unknown
	ApproveAlways      bool      // each snapshot of the source waits for a person
	Percent            *int      // of people or places, above which losing them is not plausible; nil: the usual rule
	Approved           *Approved // nil: nobody has approved the run
}

// Approved is what the person who approved a run was shown.
type Approved struct {
	Leavers int // who would become inactive
	Places  int // in classes that would be taken away
}

// Reason is why a run is held.
type Reason struct {
	Code string `json:"code"`
	Text string `json:"text"`
}

// Shares of people above which deactivating them is not plausible, and of places in classes above
// which taking them away is not.
const (
	guardShare     = 50 // percent, whatever the number
	guardFew       = 5  // people or places at least, and then
	guardFewShare  = 10 // percent
	percent        = 100
	reasonAlways   = "approval_required"
	reasonEmpty    = "empty_file"
	reasonShare    = "implausible_share"
	reasonSection  = "missing_section"
	reasonPlaces   = "implausible_unenrolments"
	reasonLost     = "unreadable_rows"
	reasonOutdated = "changed_since_review"
)

// Guards says why a snapshot is held until a person approves it (reference: roster#guards); none
// for one that may be applied. An approved one is held again when it would deactivate more people,
// or take more places in classes away, than the person was shown.
func Guards(t Totals) []Reason {
	var reasons []Reason
	hold := func(code, format string, args ...any) {
		reasons = append(reasons, Reason{code, sprintf(format, args...)})
	}
	if t.Approved != nil {
		if t.Deactivate > t.Approved.Leavers {
			hold(reasonOutdated, "%s would be deactivated by now, and %d when the run was approved", counted(t.Deactivate, "person", "people"), t.Approved.Leavers)
		}
		if t.SeatsRemoved > t.Approved.Places {
			hold(reasonOutdated, "%s in classes would be lost by now, and %d when the run was approved", counted(t.SeatsRemoved, "place", "places"), t.Approved.Places)
		}
		return reasons
	}
	if t.ApproveAlways {
		hold(reasonAlways, "each snapshot of the source is to be approved")
	}
	if t.Rows == 0 && !t.DeltaPeople {
		hold(reasonEmpty, "%s has no rows, which would deactivate everybody", t.PeopleFile)
	}
	if implausible(t.Deactivate, t.Active, t.Percent) {
		hold(reasonShare, "%d of %s of the source would be deactivated", t.Deactivate, counted(t.Active, "active person", "active people"))
	}
	if t.HadEnrollments && !t.HasEnrollments && !t.DeltaSeats {
		hold(reasonSection, "%s is missing, though the source has sent it before", EnrollmentsFile)
	}
	switch {
	case t.HasEnrollments && t.SeatRows == 0 && t.Seats > 0 && !t.DeltaSeats:
		hold(reasonSection, "%s has no rows, which would empty every class", EnrollmentsFile)
	case implausible(t.SeatsRemoved, t.Seats, t.Percent):
		hold(reasonPlaces, "%d of %s in classes would be lost, as %s lacks them", t.SeatsRemoved, counted(t.Seats, "place", "places"), EnrollmentsFile)
	}
	if t.Unreadable > 0 && t.Deactivate > 0 && !t.DeltaPeople {
		hold(reasonLost, "%s of %s could not be read, and who would be deactivated may be named there", counted(t.Unreadable, "row", "rows"), t.PeopleFile)
	}
	if t.SeatRowsUnreadable > 0 && t.SeatsRemoved > 0 && !t.DeltaSeats {
		hold(reasonLost, "%s of %s could not be used, and whoever would lose a place in a class may be named there", counted(t.SeatRowsUnreadable, "row", "rows"), EnrollmentsFile)
	}
	return reasons
}

// implausible says whether losing some of all is more than happens from one file to the next, or more than the limit
// in percent where there is one.
func implausible(some, all int, limit *int) bool {
	share := some * percent
	if limit != nil {
		return share > *limit*all
	}
	return share > guardShare*all || some >= guardFew && share > guardFewShare*all
}

// counted is a number with its noun.
func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}
