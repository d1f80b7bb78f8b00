package main

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// mails holds the mails that were received against the rows, and the rows against the model.
func (c *checker) mails(ctx context.Context) error {
	received, undone := map[string]int{}, map[string]int{}
	for n, mail := range c.mail.All() {
		_, rest, ok := strings.Cut(string(mail.Data), "Message-ID: <")
		if !ok {
			_, rest, ok = strings.Cut(string(mail.Data), "Message-Id: <")
		}
		reference, _, _ := strings.Cut(rest, "@")
		if !ok {
			c.report.find("a mail without Message-ID to %v", mail.To)
		}
		if slices.ContainsFunc(c.report.restores, func(r restored) bool { return n >= r.mails[0] && n < r.mails[1] }) {
			undone[reference]++ // the mail, or that it was sent, may be forgotten
		} else {
			received[reference]++
		}
	}
	c.report.checked("mails received", len(received))
	rows, err := c.db.Query(ctx, `SELECT reference::text, status, recipient, type FROM emails`)
	if err != nil {
		return err
	}
	var reference, status, recipient, kind string
	welcomed := map[string]bool{}
	uncertain, suppressed := 0, 0
	_, err = pgx.ForEachRow(rows, []any{&reference, &status, &recipient, &kind}, func() error {
		n := received[reference]
		delete(received, reference)
		if n == 0 && undone[reference] > 0 {
			n = undone[reference]
		}
		switch {
		case status == "uncertain" && n <= 1:
			uncertain++
		case status == "sent" && n == 1:
		case status == "suppressed" && n == 0 && kind != "password_reset": // the address had its share of the day
			suppressed++
		default:
			c.report.find("the %s mail %s to %s is %s and was received %d times", kind, reference, recipient, status, n)
		}
		if kind == "welcome" {
			welcomed[recipient] = true
		}
		return nil
	})
	for reference := range received {
		c.report.find("a mail was received that no row knows: %s", reference)
	}
	c.report.checked("mails whose receipt stays uncertain", uncertain)
	c.report.checked("mails beyond the share of their address", suppressed)
	over, overErr := c.rows(ctx, `
		SELECT DISTINCT recipient
		FROM (SELECT recipient, created_at - lag(created_at, 5) OVER (PARTITION BY recipient ORDER BY created_at) AS gap
			FROM emails
			WHERE type IN ('welcome', 'credentials', 'access_update') AND status <> 'suppressed') AS sent
		WHERE gap < '1 day'`)
	for _, address := range over {
		c.report.find("%s had more than five onboarding mails within a day", address)
	}
	for key, s := range c.model.students {
		_, email, _ := strings.Cut(key, " ")
		if s.welcomed && !welcomed[email] {
			c.report.find("%s was promised a welcome mail and has none", email)
		}
	}
	return errors.Join(err, overErr)
}
