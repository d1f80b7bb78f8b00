package rosterimport_test

import (
	"testing"

	"github.com/registrar-dev/registrar/internal/domain/roster"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/pg/pgtest"
)

// belongs says how somebody belongs to more than the organization whose import made the
// account, as statements; $1 is the address and $2 the organization called south.
var belongs = map[string]string{
	"a member elsewhere": `INSERT INTO members (organization_id, user_id, role, status, created_via, joined_at, updated_at)
		SELECT $2, id, 'member', 'active', 'api', now(), now() FROM accounts WHERE email = $1`,
	"an inactive member elsewhere": `INSERT INTO members (organization_id, user_id, role, status, created_via, joined_at, updated_at)
		SELECT $2, id, 'member', 'inactive', 'api', now(), now() FROM accounts WHERE email = $1`,
	"staff elsewhere": `INSERT INTO members (organization_id, user_id, role, status, created_via, joined_at, updated_at)
		SELECT $2, id, 'owner', 'active', 'staff', now(), now() FROM accounts WHERE email = $1`,
	"staff here": `UPDATE members SET role = 'teacher' WHERE user_id = (SELECT id FROM accounts WHERE email = $1) AND $2 > 0`,
	"enrolled elsewhere": `WITH c AS (INSERT INTO courses (organization_id, name, course_type, start_date, created_at, updated_at)
			VALUES ($2, 'C', 'ielts', '2026-01-01', now(), now()) RETURNING id)
		INSERT INTO enrollments (organization_id, user_id, course_id, start_date, end_date, grace_period_end, created_at, updated_at)
		SELECT $2, a.id, c.id, '2026-01-01', '2027-01-01', '2027-01-01', now(), now() FROM c, accounts a WHERE a.email = $1`,
}

// Who gives an account its address gets in by asking for a new password: nobody may send the
// account of another organization's person, or of staff, to an address of their own.
func TestUndoLeavesTheAddressOfWhomOthersKnowByIt(t *testing.T) {
	t.Parallel()
	for name, sql := range belongs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := open(t)
			south := h.organization(t, "south")
			h.run(t, people("s1,first@institute.org,Ana,Lopez,"))
			r := h.run(t, people("s1,second@institute.org,Ana,Lopez,"))
			want(t, r, roster.Applied, roster.Counts{Update: 1})
			h.exec(t, sql, "second@institute.org", south)
			back := h.undo(t, r.ID)
			want(t, back, roster.Applied, roster.Counts{Skip: 1})
			if got := h.issues(t, back); got != "people:2 not_managed warning" {
				t.Errorf("issues: %s", got)
			}
			if got := h.text(t, `SELECT string_agg(email, ' ') FROM accounts`); got != "second@institute.org" {
				t.Errorf("the account's address is %s", got)
			}
		})
	}
}

// The same between the planning of a run, of a file or an undoing, and its carrying out.
func TestAnAddressStaysWhenTheAccountIsTakenInElsewhereMeanwhile(t *testing.T) {
	t.Parallel()
	for name, sql := range belongs {
		for _, undo := range []bool{false, true} {
			what := " and a file"
			if undo {
				what = " and an undoing"
			}
			t.Run(name+what, func(t *testing.T) {
				t.Parallel()
				h := open(t)
				south := h.organization(t, "south")
				h.run(t, people("s1,first@institute.org,Ana,Lopez,"))
				r := h.run(t, people("s1,second@institute.org,Ana,Lopez,"))
				call := h.other(t, `SELECT pg_advisory_xact_lock(1001, hashtext('second@institute.org'))`)
				done := together(func() roster.Run {
					if undo {
						return h.undo(t, r.ID)
					}
					return h.run(t, people("s1,third@institute.org,Ana,Lopez,"))
				})
				pgtest.AwaitBlocked(t, h.DB, call) // it is planned
				if _, err := call.Exec(t.Context(), sql, "second@institute.org", south); err != nil {
					t.Fatal(err)
				}
				commit(t, call)
				want(t, <-done, roster.Applied, roster.Counts{Update: 1})
				if got := h.text(t, `SELECT string_agg(email, ' ') FROM accounts`); got != "second@institute.org" {
					t.Errorf("the account's address is %s", got)
				}
			})
		}
	}
}

// And the other way round: who was found by an address is taken in only while it is theirs.
func TestNobodyIsTakenInWhoseAddressIsAnotherByNow(t *testing.T) {
	t.Parallel()
	north := open(t)
	south := *north
	south.org = north.organization(t, "south")
	north.run(t, people("s1,first@institute.org,Ana,Lopez,"))
	call := north.other(t, `SELECT pg_advisory_xact_lock(1001, hashtext('first@institute.org'))`)
	done := together(func() roster.Run { return south.run(t, people("x1,first@institute.org,Ana,Lopez,").with("x1,c1,One")) })
	pgtest.AwaitBlocked(t, north.DB, call)
	if _, err := call.Exec(t.Context(), `UPDATE accounts SET email = 'second@institute.org'`); err != nil { // as a run of north does
		t.Fatal(err)
	}
	commit(t, call)
	<-done
	if got := south.members(t) + south.seats(t) + south.text(t, `SELECT count(*)::text FROM roster_identities WHERE organization_id = $1`, south.org); got != "0" {
		t.Errorf("south has taken in: %s", got)
	}
}

// Who is taken in by their address alone keeps every way in, whoever gave it to them.
func TestAnImportEndsNoWayInOfAnothersStudents(t *testing.T) {
	t.Parallel()
	h := open(t)
	south := h.organization(t, "south")
	for address, sql := range map[string]string{
		"linked@institute.org": `SELECT $1::text`,
		"given@institute.org":  `UPDATE accounts SET password_hash = 'x' WHERE email = $1`,
		"chosen@institute.org": `UPDATE accounts SET password_hash = 'x', own_password = true WHERE email = $1`,
		"used@institute.org":   `UPDATE accounts SET password_hash = 'x', last_login = now() WHERE email = $1`,
		"proven@institute.org": `UPDATE accounts SET password_hash = 'x', own_password = true, proven_password = true WHERE email = $1`,
	} {
		h.exec(t, `INSERT INTO accounts (email, username, first_name, created_by_organization, created_via, created_at, updated_at)
			VALUES ($1, $1, 'Ana', $2, 'api', now(), now())`, address, south)
		h.exec(t, `INSERT INTO set_password_tokens (hash, user_id, organization_id, mailed, created_at, expires_at)
			SELECT sha256(mailed::text::bytea || id::text::bytea), id, $2, mailed, now(), now() + interval '1 day'
			FROM accounts, unnest(ARRAY[true, false]) AS mailed WHERE email = $1`, address, south)
		h.exec(t, `INSERT INTO sessions (hash, data, expires_at)
			SELECT $1, jsonb_build_object('values', jsonb_build_object('user', id::text, 'proof', 'organization ' || $2::bigint)), now() + interval '1 day'
			FROM accounts WHERE email = $1`, address, south)
		h.exec(t, sql, address)
	}
	ways := func() string {
		return h.text(t, `SELECT (SELECT count(*) FROM accounts WHERE password_hash IS NOT NULL) || ' passwords, ' ||
			(SELECT count(*) FROM set_password_tokens) || ' links, ' || (SELECT count(*) FROM sessions) || ' sessions'`)
	}
	const all = "4 passwords, 10 links, 5 sessions"
	check.Equal(t, "before", ways(), all, "")
	h.run(t, people("1,given@institute.org,,,", "2,chosen@institute.org,,,", "3,used@institute.org,,,", "4,proven@institute.org,,,", "5,linked@institute.org,,,"))
	check.Equal(t, "after", ways(), all, "")
}

// A link that was mailed to an address of before opens nothing once the account has another:
// whoever is known by that one is not who asked.
func TestLinksToAnAddressEndWhenTheAccountGetsAnother(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.run(t, people("s1,first@institute.org,Ana,Lopez,", "s2,ben@institute.org,Ben,Okri,"))
	h.exec(t, `INSERT INTO set_password_tokens (hash, user_id, created_at, expires_at) SELECT sha256(email::bytea), id, now(), now() + interval '1 hour' FROM accounts`)
	want(t, h.run(t, people("s1,second@institute.org,Ana,Lopez,", "s2,ben@institute.org,Benjamin,Okri,")), roster.Applied, roster.Counts{Update: 2})
	if got := h.text(t, `SELECT string_agg(a.email, ' ') FROM set_password_tokens JOIN accounts a ON a.id = user_id`); got != "ben@institute.org" {
		t.Errorf("links are left for: %s", got)
	}
}
