package rosterimport

import (
	"context"
	"slices"

	"github.com/registrar-dev/registrar/internal/domain/roster"
	"github.com/registrar-dev/registrar/internal/domain/student"
	"github.com/registrar-dev/registrar/internal/kit/id"
)

// checkAddresses leaves out people who were found by an address that they no longer have: the
// file need not mean the person whose address it is now.
func (b *batch) checkAddresses(ctx context.Context, changes []roster.Change) ([]roster.Change, error) {
	var found []id.User
	for _, c := range changes {
		if foundByAddress(c) {
			found = append(found, c.User)
		}
	}
	if len(found) == 0 {
		return changes, nil
	}
	accounts, err := student.FindAll(ctx, b.tx, b.run.Organization, found)
	return slices.DeleteFunc(slices.Clone(changes), func(c roster.Change) bool {
		address := c.Email
		if c.Effects.Has(roster.ChangeProfile) {
			address = c.BeforeEmail
		}
		return foundByAddress(c) && accounts[c.User].Email != student.Email(address)
	}), err
}

func foundByAddress(c roster.Change) bool {
	return c.User != 0 && c.Effects.Has(roster.CreateMembership)
}
