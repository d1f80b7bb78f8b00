package factor_test

import (
	"encoding/base64"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pquerna/otp/totp"

	"github.com/registrar-dev/registrar/internal/domain/factor"
	"github.com/registrar-dev/registrar/internal/domain/factor/factortest"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/pg/pgtest"
	"github.com/registrar-dev/registrar/internal/kit/seal/sealtest"
)

var now = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)

const site = "https://registrar.test"

type bed struct {
	*factor.Service
	t     *testing.T
	db    *pg.DB
	users []id.User
}

func open(t *testing.T) *bed {
	t.Helper()
	db := pgtest.New(t)
	b := &bed{factor.New(db, sealtest.New(t), site), t, db, nil}
	users, err := pg.Column[id.User](t.Context(), db, `
		INSERT INTO accounts (email, username, first_name, created_via, created_at, updated_at)
		SELECT n || '@institute.org', n, n, 'staff', now(), now() FROM unnest('{olive,adam}'::text[]) AS n RETURNING id`)
	check.NoError(check.Now(t), err, "accounts")
	b.users = users
	return b
}

func (b *bed) in(do func(*pg.Tx) error) error { b.t.Helper(); return b.db.InTx(b.t.Context(), do) }

// addApp gives the person an app, and what the app shows at a time.
func (b *bed) addApp(user id.User) (show func(time.Time) string, recovery []string) {
	b.t.Helper()
	seed := b.NewSeed("x")
	show = func(at time.Time) string {
		code, err := totp.GenerateCode(seed.Secret, at)
		check.NoError(check.Now(b.t), err, "a code")
		return code
	}
	check.NoError(check.Now(b.t), b.in(func(tx *pg.Tx) (err error) {
		_, recovery, err = b.AddTOTP(b.t.Context(), tx, user, "Telephone", seed, show(now), now)
		return err
	}), "adding an app")
	return show, recovery
}

func TestACodeIsTakenOnceAndInItsTime(t *testing.T) {
	t.Parallel()
	b := open(t)
	olive, adam := b.users[0], b.users[1]
	show, recovery := b.addApp(olive)
	check.Equal(t, "recovery codes", len(recovery), 10, "%v", recovery)
	b.addApp(adam)
	at := now.Add(10 * time.Minute)
	for _, c := range []struct {
		name, code string
		user       id.User
		taken      bool
	}{
		{"two steps old", show(at.Add(-time.Minute)), olive, false},
		{"two steps early", show(at.Add(time.Minute)), olive, false},
		{"another person's", show(at), adam, false},
		{"nothing", "", olive, false},
		{"one step old", show(at.Add(-30 * time.Second)), olive, true},
		{"present, with a blank", show(at)[:3] + " " + show(at)[3:], olive, true},
		{"present again", show(at), olive, false},
		{"an older one after a newer one", show(at.Add(-30 * time.Second)), olive, false},
		{"one step early", show(at.Add(30 * time.Second)), olive, true},
		{"another's recovery code", recovery[0], adam, false},
		{"a recovery code, typed in small letters", strings.ToLower(recovery[0]), olive, true},
		{"the same again", recovery[0], olive, false},
	} {
		_, err := b.CheckCode(t.Context(), c.user, c.code, at)
		check.Equal(t, "taken", err == nil, c.taken, "%s: %v", c.name, err)
		check.True(t, "refused in one way", err == nil || errors.Is(err, factor.ErrRefused), "%s: %v", c.name, err)
	}
}

// Parallel requests with one code: one of them is taken, whatever the kind of code.
func TestOneCodeOpensOneDoor(t *testing.T) {
	t.Parallel()
	b := open(t)
	show, recovery := b.addApp(b.users[0])
	for _, code := range []string{show(now.Add(time.Minute)), recovery[3]} {
		var taken atomic.Int32
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				if _, err := b.CheckCode(t.Context(), b.users[0], code, now.Add(time.Minute)); err == nil {
					taken.Add(1)
				}
			})
		}
		all.Wait()
		check.Equal(t, "taken", taken.Load(), 1, "%s", code)
	}
}

// Limits of requests fail open while Redis is away; these do not.
func TestCodesAreNotTriedOut(t *testing.T) {
	t.Parallel()
	b := open(t)
	show, recovery := b.addApp(b.users[0])
	at := now.Add(time.Minute)
	for range 10 {
		_, err := b.CheckCode(t.Context(), b.users[0], "000 000", at)
		check.True(check.Now(t), "it is wrong", errors.Is(err, factor.ErrRefused), "%v", err)
	}
	for i, code := range []string{show(at), recovery[0]} {
		_, err := b.CheckCode(t.Context(), b.users[0], code, at)
		check.True(t, "the right one is refused, too", errors.Is(err, factor.ErrTooMany), "%v", err)
		check.Equal(t, "it is the first such one", errors.Is(err, factor.ErrFirstTooMany), i == 0, "%v", err)
	}
	later := at.Add(16 * time.Minute)
	_, err := b.CheckCode(t.Context(), b.users[0], show(later), later)
	check.NoError(t, err, "when it is over")
}

func TestTheLastFactorTakesTheRecoveryCodesAlong(t *testing.T) {
	t.Parallel()
	b := open(t)
	_, recovery := b.addApp(b.users[0])
	all, err := factor.Of(t.Context(), b.db, b.users[0])
	check.NoError(check.Now(t), err, "")
	err = b.in(func(tx *pg.Tx) error { _, _, err := factor.Remove(t.Context(), tx, b.users[1], all[0].ID); return err })
	check.True(t, "another person removes nothing", err != nil, "")
	check.NoError(t, b.in(func(tx *pg.Tx) error { _, _, err := factor.Remove(t.Context(), tx, b.users[0], all[0].ID); return err }), "removing")
	_, err = b.CheckCode(t.Context(), b.users[0], recovery[0], now)
	check.True(t, "a recovery code is refused", errors.Is(err, factor.ErrRefused), "%v", err)
}

func (b *bed) addPasskey(user id.User) *factortest.Device {
	b.t.Helper()
	var d factortest.Device
	c, err := b.AskNew(b.t.Context(), user, "olive@institute.org")
	check.NoError(check.Now(b.t), err, "asking")
	answer := d.Create(b.t, c.Options, site, "registrar.test")
	check.NoError(check.Now(b.t), b.in(func(tx *pg.Tx) error {
		_, _, err := b.AddPasskey(b.t.Context(), tx, user, "Laptop", c.State, answer, now)
		return err
	}), "adding a passkey")
	return &d
}

const verified, present = factortest.Verified, factortest.Present

func TestAPasskeyOpensForItsPersonAndSiteAlone(t *testing.T) {
	t.Parallel()
	b := open(t)
	olive, adam := b.users[0], b.users[1]
	of, ofAdam := b.addPasskey(olive), b.addPasskey(adam)
	ask := func(user id.User) factor.Ceremony {
		t.Helper()
		c, err := b.Ask(t.Context(), user)
		check.NoError(check.Now(t), err, "asking")
		return c
	}
	forAny, forOlive, other := ask(0), ask(olive), ask(0)
	used := of.Get(t, forAny.Options, site, "registrar.test", verified)
	for _, c := range []struct {
		name, state, answer string
		user                id.User
	}{
		{"a passkey", forAny.State, used, olive},
		{"the same answer to another question", other.State, used, 0},
		{"the same answer to no question", "", used, 0},
		{"an answer to the question for olive", forOlive.State, of.Get(t, forOlive.Options, site, "registrar.test", verified), olive},
		{"adam's passkey for olive", forOlive.State, ofAdam.Get(t, forOlive.Options, site, "registrar.test", verified), 0},
		{"on another site", other.State, of.Get(t, other.Options, "https://evil.test", "registrar.test", verified), 0},
		{"for another site", other.State, of.Get(t, other.Options, site, "evil.test", verified), 0},
		{"whose device did not ask who is there", other.State, of.Get(t, other.Options, site, "registrar.test", present), 0},
		{"no answer at all", other.State, "{}", 0},
		{"adam's", other.State, ofAdam.Get(t, other.Options, site, "registrar.test", verified), adam},
	} {
		user, err := b.CheckPasskey(t.Context(), c.state, c.answer, now)
		check.Equal(t, "whose it is", user, c.user, "%s: %v", c.name, err)
		check.Equal(t, "refused", errors.Is(err, factor.ErrRefused), c.user == 0, "%s: %v", c.name, err)
	}
	copied := *of
	c := ask(0)
	_, err := b.CheckPasskey(t.Context(), c.State, of.Get(t, c.Options, site, "registrar.test", verified), now)
	check.NoError(t, err, "the device")
	c = ask(0)
	copied.Counter -= 5
	_, err = b.CheckPasskey(t.Context(), c.State, copied.Get(t, c.Options, site, "registrar.test", verified), now)
	check.True(t, "a copy of the device is refused", errors.Is(err, factor.ErrRefused), "%v", err)
}

// What a passkey is asked for adds none, and the other way round.
func TestAnAnswerIsToTheQuestionThatWasAsked(t *testing.T) {
	t.Parallel()
	b := open(t)
	olive := b.users[0]
	of := b.addPasskey(olive)
	use, err := b.Ask(t.Context(), olive)
	check.NoError(check.Now(t), err, "asking")
	make, err := b.AskNew(t.Context(), olive, "olive@institute.org")
	check.NoError(check.Now(t), err, "asking")
	add := func(state, answer string) error {
		return b.in(func(tx *pg.Tx) error {
			_, _, err := b.AddPasskey(t.Context(), tx, olive, "Another", state, answer, now)
			return err
		})
	}
	var thief factortest.Device
	withUser := strings.Replace(use.Options, "{", `{"user":{"id":"`+base64.RawURLEncoding.EncodeToString([]byte("user 1"))+`"},`, 1)
	check.True(t, "it adds none", errors.Is(add(use.State, thief.Create(t, withUser, site, "registrar.test")), factor.ErrRefused), "")
	_, err = b.CheckPasskey(t.Context(), make.State, of.Get(t, make.Options, site, "registrar.test", verified), now)
	check.True(t, "it opens nothing", errors.Is(err, factor.ErrRefused), "%v", err)
	forAdam, err := b.AskNew(t.Context(), b.users[1], "adam@institute.org")
	check.NoError(check.Now(t), err, "asking")
	check.True(t, "another's question", errors.Is(add(forAdam.State, thief.Create(t, forAdam.Options, site, "registrar.test")), factor.ErrRefused), "")
	check.NoError(t, add(make.State, thief.Create(t, make.Options, site, "registrar.test")), "its own question")
}

func TestASiteWithoutANameHasNoPasskeys(t *testing.T) {
	t.Parallel()
	s := factor.New(nil, nil, "http://127.0.0.1:8080")
	check.False(t, "it has passkeys", s.Passkeys(), "")
	_, err := s.Ask(t.Context(), 0)
	check.True(t, "it says so", err != nil, "")
}
