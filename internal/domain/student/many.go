package student

import (
	"context"
	"slices"
	"time"

	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// CreateAll makes accounts in one statement and returns them by address. The caller holds
// the locks of all addresses. For an address that already has an account it returns that one.
// Usernames are derived, names are not checked.
func CreateAll(ctx context.Context, tx *pg.Tx, drafts []Draft, now time.Time) (map[Email]Account, error) {
	made := make(map[Email]Account, len(drafts))
	if len(drafts) == 0 {
		return made, nil
	}
	for i := range drafts {
		drafts[i].Username = usernameFor(drafts[i].Email)
	}
	if err := collectAccounts(made)(insertAccounts(ctx, tx, drafts, now)); err != nil || len(made) == len(drafts) {
		return made, err
	}
	var missing []Draft
	var addresses []Email
	for _, d := range drafts {
		if _, ok := made[d.Email]; !ok {
			missing, addresses = append(missing, d), append(addresses, d.Email)
		}
	}
	if err := collectAccounts(made)(selectByEmails(ctx, tx, addresses)); err != nil {
		return made, err
	}
	for _, d := range missing {
		if _, ok := made[d.Email]; ok {
			continue
		}
		d.Username = "" // it is taken, so Create finds another
		a, err := Create(ctx, tx, d, now)
		if err != nil {
			return made, err
		}
		made[d.Email] = a
	}
	return made, nil
}

// CopyAll makes accounts like CreateAll, for addresses that were seen to be free, and
// returns their ids in the order of the drafts. It costs half as much, and makes none at all
// when an address or username is taken: pg.Duplicate recognizes that error.
func CopyAll(ctx context.Context, tx *pg.Tx, drafts []Draft, now time.Time) ([]id.User, error) {
	if len(drafts) == 0 {
		return nil, nil
	}
	users, err := reserveUsers(ctx, tx, len(drafts))
	if err != nil {
		return nil, err
	}
	return users, copyAccounts(ctx, tx, users, drafts, now)
}

func collectAccounts(into map[Email]Account) func([]Account, error) error {
	return func(accounts []Account, err error) error {
		for _, a := range accounts {
			into[a.Email] = a
		}
		return err
	}
}

// FindAll reads accounts by their ids, with the names that org calls the people.
func FindAll(ctx context.Context, q pg.Querier, org id.Organization, users []id.User) (map[id.User]Account, error) {
	all, err := FindCalled(ctx, q, slices.Repeat([]id.Organization{org}, len(users)), users)
	found := make(map[id.User]Account, len(all))
	for _, c := range all {
		found[c.ID] = c.Account
	}
	return found, err
}

// Called is an account with the names that one organization calls the person.
type Called struct {
	Organization id.Organization
	Account
}

// Profile is a person's address and names in a roster.
type Profile struct {
	User      id.User
	Before    Email // the account's present one
	Email     Email
	FirstName string
	LastName  string
}

// ChangeProfiles changes the email and names of accounts that a roster import of org made and
// that nobody has signed in to. It leaves out staff, people of other organizations, and accounts
// whose new address another account has. Links that went to an old address end. The caller holds
// the locks of both addresses.
func ChangeProfiles(ctx context.Context, tx *pg.Tx, org id.Organization, profiles []Profile, now time.Time) error {
	if len(profiles) == 0 {
		return nil
	}
	moved, err := updateProfiles(ctx, tx, org, profiles, now)
	if err != nil || len(moved) == 0 {
		return err
	}
	return deleteLinks(ctx, tx, moved)
}
