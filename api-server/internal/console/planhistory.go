package console

import (
	"time"

	"github.com/registrar-dev/registrar/internal/domain/plan"
)

// planEntry is a line of a plan's history in words.
type planEntry struct {
	At   time.Time
	Who  string
	Key  bool // Who is an API key's name
	What string
}

func newPlanEntry(e plan.Entry) planEntry {
	shown := planEntry{At: e.At, Who: e.Actor, What: e.Words()}
	switch e.Actor {
	case plan.ActorSchedule:
		shown.Who = "the schedule"
	case plan.ActorPlatform:
		shown.Who = "the platform"
	default:
		if name, staff := plan.StaffOf(e.Actor); staff {
			shown.Who = name
		} else {
			shown.Key = true
		}
	}
	return shown
}
