package assign

import (
	"context"
	"slices"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/assignment"
	"github.com/registrar-dev/registrar/internal/domain/catalog"
	"github.com/registrar-dev/registrar/internal/domain/email"
	"github.com/registrar-dev/registrar/internal/domain/student"
	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/flow/notify"
	"github.com/registrar-dev/registrar/internal/flow/wire"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// gathered is work to be given that others are gathered with: an organization's next position is locked until
// the commit, so its calls share one.
type gathered struct {
	org         id.Organization
	draft       assignment.Draft
	account     student.Account
	item        catalog.Item
	mail        *email.Message // nil: none is sent
	traceparent string
	by          audit.Actor // zero: no entry of the audit log
}

// given is the answer to it.
type given struct {
	shown   wire.Assignment
	created bool
}

// together gives work of several calls in one transaction. If it is work in several organizations, it waits
// for no lock for long: none shall wait because of another one.
func (d *Service) together(ctx context.Context, all []gathered) (answers []given, err error) {
	several := slices.ContainsFunc(all, func(g gathered) bool { return g.org != all[0].org })
	err = d.DB.InTx(ctx, func(tx *pg.Tx) error {
		answers = make([]given, len(all))
		now := d.Clock()
		var first pg.Batch
		if several {
			first.Hurry()
		}
		if err := first.Send(ctx, tx); err != nil {
			return err
		}
		made, created, err := give(ctx, tx, all, now)
		if err != nil {
			return err
		}
		events := map[id.Organization][]webhook.Event{}
		var last pg.Batch
		mails := make([]email.Record, len(all))
		for i, g := range all {
			shown, event := notify.Assigned(made[i], g.account, g.item, now)
			answers[i] = given{shown, created[i]}
			if !created[i] {
				continue
			}
			event.Traceparent = g.traceparent
			events[g.org] = append(events[g.org], event)
			if g.by.Kind != "" {
				entry := audit.Entry{Organization: g.org, Actor: g.by, Action: "assigned work", Target: g.item.Title + " to " + string(g.account.Email), At: now}
				if err := audit.Write(ctx, tx, entry); err != nil {
					return err
				}
			}
			if g.mail != nil {
				if err := d.Mail.Write(ctx, &last, now, *g.mail, &mails[i]); err != nil {
					return err
				}
			}
		}
		if err := webhook.WriteAll(ctx, &last, now, events); err != nil {
			return err
		}
		return last.Commit(ctx, tx)
	})
	return answers, err
}

// give makes the assignments. Of the same work twice, the second finds the first.
func give(ctx context.Context, tx *pg.Tx, all []gathered, now time.Time) ([]assignment.Assignment, []bool, error) {
	type work struct {
		org  id.Organization
		user id.User
		item id.Item
	}
	drafts, at, which := []assignment.Placed{}, map[work]int{}, make([]int, len(all))
	created := make([]bool, len(all))
	for i, g := range all {
		w := work{g.org, g.draft.User, g.draft.Item}
		n, again := at[w]
		if !again {
			n = len(drafts)
			at[w], created[i] = n, true
			drafts = append(drafts, assignment.Placed{Organization: g.org, Draft: g.draft})
		}
		which[i] = n
	}
	made, fresh, err := assignment.AssignAll(ctx, tx, drafts, now)
	if err != nil {
		return nil, nil, err
	}
	answers := make([]assignment.Assignment, len(all))
	for i, n := range which {
		answers[i], created[i] = made[n], created[i] && fresh[n]
	}
	return answers, created, nil
}
