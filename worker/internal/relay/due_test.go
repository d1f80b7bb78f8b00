package relay

import (
	"testing"

	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/wake"
)

// A look at all URLs costs a step for each that owes something: a wake-up must not cause one.
func TestAWakeUpIsForItsOrganization(t *testing.T) {
	t.Parallel()
	due := newDueSet()
	due.note(wake.Notification{Payload: "7"})
	due.note(wake.Notification{Payload: "7"})
	orgs, all := due.take()
	check.True(t, "it is not for all", !all, "orgs = %v", orgs)
	if check.Equal(t, "number of organizations", len(orgs), 1, "orgs = %v", orgs) {
		check.Equal(t, "the organization", orgs[0], id.Organization(7), "orgs = %v", orgs)
	}
	due.note(wake.Notification{Payload: "7"})
	due.note(wake.Notification{Reset: true})
	if orgs, all = due.take(); !all || len(orgs) > 0 {
		t.Errorf("after a new subscription: all = %v, orgs = %v", all, orgs)
	}
	if orgs, all = due.take(); all || len(orgs) > 0 {
		t.Errorf("a second time: all = %v, orgs = %v", all, orgs)
	}
}
