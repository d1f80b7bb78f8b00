package lms_test

import (
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/registrar-dev/registrar/internal/domain/lms"
	"github.com/registrar-dev/registrar/internal/flow/flowtest"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/egress"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/seal/sealtest"
)

var now = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

func canvas() lms.Registration {
	return lms.Registration{Name: "Our Canvas", Issuer: "https://canvas.school.org", ClientID: "100", AuthorizeURL: "https://canvas.school.org/authorize",
		TokenURL: "https://canvas.school.org/token", KeysURL: "https://canvas.school.org/keys", Deployments: []string{"1:a"}}
}

// service has the organizations 1 (north) and 2 (south).
func service(t *testing.T) (lms.Service, *flowtest.Fixture) {
	t.Helper()
	f := flowtest.New(t)
	f.Organization("north")
	f.Organization("south")
	return lms.Service{DB: f.Database, Policy: egress.New(egress.Config{})}, f
}

func codes(err error) (all []string) {
	var f *fault.Error
	if errors.As(err, &f) {
		for _, one := range f.All() {
			all = append(all, strings.TrimSuffix(one.Code+" "+one.Field, " "))
		}
	}
	return all
}

func TestRegistrations(t *testing.T) {
	t.Parallel()
	s, f := service(t)
	ctx := t.Context()
	made, err := s.Add(ctx, audit.Platform, 1, canvas(), now)
	check.NoError(check.Now(t), err, "adding")
	_, err = s.Add(ctx, audit.Platform, 1, canvas(), now)
	check.Slices(t, "the same once more", codes(err), []string{"registration_exists"}, "%v", err)
	_, err = s.Add(ctx, audit.Platform, 2, canvas(), now)
	check.NoError(t, err, "another organization may have the same, as the addresses of launches are others")

	bad := lms.Registration{Name: "a\nb", AuthorizeURL: "http://canvas.school.org", TokenURL: "https://127.0.0.1/token", KeysURL: "https://metadata.internal/", Deployments: []string{" "}}
	_, err = s.Add(ctx, audit.Platform, 1, bad, now)
	check.Slices(t, "faults", codes(err), []string{"missing name", "missing issuer", "missing client_id", "https_required authorize_url",
		"address_not_public token_url", "address_not_public keys_url", "missing deployments"}, "%v", err)

	made.Deployments = []string{" 2:b", "1:a", "2:b ", ""}
	changed, err := s.Change(ctx, audit.Platform, 1, made, now)
	check.NoError(check.Now(t), err, "changing")
	check.Slices(t, "deployments", changed.Deployments, []string{"1:a", "2:b"}, "")
	_, err = s.Change(ctx, audit.Platform, 2, made, now)
	check.Slices(t, "another organization's", codes(err), []string{"not_found"}, "%v", err)
	err = s.Remove(ctx, audit.Platform, 2, made.ID, now)
	check.Slices(t, "another organization's", codes(err), []string{"not_found"}, "%v", err)
	for i := range 19 {
		r := canvas()
		r.ClientID = fmt.Sprint(i)
		_, err := s.Add(ctx, audit.Platform, 1, r, now)
		check.NoError(check.Now(t), err, "registration %d", i)
	}
	r := canvas()
	r.ClientID = "one too many"
	_, err = s.Add(ctx, audit.Platform, 1, r, now)
	check.Slices(t, "one too many", codes(err), []string{"registration_limit"}, "%v", err)
	check.NoError(t, s.Remove(ctx, audit.Platform, 1, made.ID, now), "removing")
	check.Equal(t, "audited", f.Count("audit_log WHERE organization_id = 1 AND action IN ('registered LMS', 'changed LMS', 'removed LMS')"), 22, "")
}

// Of many who bring a launch back at once, one is let in, and never one of another organization or of yesterday.
func TestALaunchIsTakenOnce(t *testing.T) {
	t.Parallel()
	s, f := service(t)
	ctx := t.Context()
	for org := range id.Organization(2) {
		_, err := s.Add(ctx, audit.Platform, org+1, canvas(), now)
		check.NoError(check.Now(t), err, "adding")
	}
	l, err := s.Begin(ctx, 1, "https://canvas.school.org", "100", "frame", now)
	check.NoError(check.Now(t), err, "beginning")
	for name, c := range map[string]struct{ issuer, client string }{
		"another issuer": {"https://canvas.other.org", "100"}, "another client": {"https://canvas.school.org", "101"},
		"a NUL": {"https://canvas.school.org\x00", "100"}, "a long one": {strings.Repeat("x", 501), ""},
	} {
		_, err := s.Begin(ctx, 1, c.issuer, c.client, "", now)
		check.Slices(t, name, codes(err), []string{"launch_refused client_id"}, "%v", err)
	}
	_, err = s.Begin(ctx, 1, "https://canvas.school.org", "", "", now)
	check.NoError(t, err, "without a client id, of the only LMS of the issuer")
	again := canvas()
	again.ClientID = "101"
	_, err = s.Add(ctx, audit.Platform, 1, again, now)
	check.NoError(check.Now(t), err, "adding")
	_, err = s.Begin(ctx, 1, "https://canvas.school.org", "", "", now)
	check.Slices(t, "without a client id, of two", codes(err), []string{"launch_refused client_id"}, "%v", err)

	_, err = s.Pending(ctx, 2, l.State, now)
	check.Slices(t, "at another organization", codes(err), []string{"used state"}, "%v", err)
	_, err = s.Pending(ctx, 1, l.State, now.Add(11*time.Minute))
	check.Slices(t, "too late", codes(err), []string{"used state"}, "%v", err)
	p, err := s.Pending(ctx, 1, l.State, now)
	check.NoError(check.Now(t), err, "in time")
	check.Equal(t, "the frame", p.Storage, "frame", "")
	check.True(t, "the same browser", p.Same(l.Browser), "")
	check.False(t, "another browser", p.Same(l.State) || p.Same(""), "")
	check.True(t, "the nonce", p.Answers(lms.Message{Nonce: l.Nonce}), "")
	check.False(t, "another nonce", p.Answers(lms.Message{Nonce: l.State}) || p.Answers(lms.Message{}), "")
	check.Equal(t, "secrets as they are", f.Count("lms_logins WHERE position($1::bytea IN state || nonce || browser) > 0", []byte(l.State)), 0, "")

	var wg sync.WaitGroup
	results := make([]error, 8)
	for i := range results {
		wg.Go(func() {
			results[i] = s.DB.InTx(ctx, func(tx *pg.Tx) error { return lms.Finish(ctx, tx, 1, l.State, now) })
		})
	}
	wg.Wait()
	taken := 0
	for _, err := range results {
		if err == nil {
			taken++
		} else {
			check.Slices(t, "the others", codes(err), []string{"used state"}, "%v", err)
		}
	}
	check.Equal(t, "taken", taken, 1, "of 8 at once")

	text, err := s.Issue(ctx, 1, lms.Ticket{User: f.Organization("east").Student("ana@school.org"), LeadsTo: "/my-courses/"}, now)
	check.NoError(check.Now(t), err, "a ticket")
	_, err = s.Redeem(ctx, 2, text, now)
	check.Slices(t, "a ticket elsewhere", codes(err), []string{"used ticket"}, "%v", err)
	_, err = s.Redeem(ctx, 1, text, now.Add(11*time.Minute))
	check.Slices(t, "a ticket too late", codes(err), []string{"used ticket"}, "%v", err)
	_, err = s.Redeem(ctx, 1, text, now)
	check.NoError(t, err, "a ticket")
	_, err = s.Redeem(ctx, 1, text, now)
	check.Slices(t, "a ticket twice", codes(err), []string{"used ticket"}, "%v", err)
	check.NoError(t, lms.DropExpired(ctx, s.DB, now.Add(time.Hour)), "dropping")
	check.Equal(t, "launches that are left", f.Count("lms_logins"), 0, "")
}

// Each key is published for as long as an LMS may keep the set before it signs, and for as long after the next one does.
func TestKeysFollowOneAnotherWithoutABreak(t *testing.T) {
	t.Parallel()
	_, f := service(t)
	k := lms.Keys{DB: f.Database, Box: sealtest.New(t)}
	ctx := t.Context()
	check.NoError(t, k.Rotate(ctx, now), "before anybody asked")
	check.Equal(t, "keys that nobody asked for", f.Count("lms_keys"), 0, "")
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() { _, err := k.Published(ctx, now); check.NoError(t, err, "the first call") })
	}
	wg.Wait()
	check.Equal(t, "keys of four calls at once", f.Count("lms_keys"), 1, "")

	type moment struct {
		at        time.Time
		signer    string
		published []string
	}
	var seen []moment
	for hour := 0; hour <= 200*24; hour += 12 {
		at := now.Add(time.Duration(hour) * time.Hour)
		check.NoError(check.Now(t), k.Rotate(ctx, at), "hour %d", hour)
		all, err := k.Published(ctx, at)
		check.NoError(check.Now(t), err, "hour %d", hour)
		signer, err := k.Signer(ctx, at)
		check.NoError(check.Now(t), err, "hour %d", hour)
		m := moment{at: at, signer: signer.KeyID}
		for _, p := range all {
			m.published = append(m.published, p.KID)
			var public jose.JSONWebKey
			check.NoError(check.Now(t), json.Unmarshal(p.Public, &public), "hour %d", hour)
			check.True(t, "the key is public", public.IsPublic(), "%s", p.Public)
			if p.KID == signer.KeyID {
				private := signer.Key.(*rsa.PrivateKey)
				check.True(t, "both are one key", private.PublicKey.Equal(public.Key), "hour %d", hour)
			}
		}
		seen = append(seen, m)
	}
	signers := map[string]bool{}
	for _, m := range seen {
		signers[m.signer] = true
		for _, other := range seen { // an LMS that fetched the set up to a day before or after
			if d := m.at.Sub(other.at).Abs(); d <= 24*time.Hour {
				check.OneOf(t, "the signer", m.signer, other.published, "%s in the set of %s", m.at, other.at)
			}
		}
	}
	check.Equal(t, "keys that signed in 200 days", len(signers), 3, "")
	check.Equal(t, "keys that are left", f.Count("lms_keys"), 1, "")

	last := now.AddDate(0, 0, 200)
	made, err := k.Renew(ctx, audit.Platform, true, last)
	check.NoError(check.Now(t), err, "a key was stolen")
	signer, err := k.Signer(ctx, last)
	check.NoError(check.Now(t), err, "the signer")
	check.Equal(t, "the signer", signer.KeyID, made.KID, "at once")
	check.Equal(t, "keys", f.Count("lms_keys"), 1, "the stolen one is published no longer")
	check.Equal(t, "audited", f.Count("audit_log WHERE action = 'replaced the LTI keys at once'"), 1, "")
	check.Equal(t, "private keys as they are", f.Count(`lms_keys WHERE position('\x2a864886f70d010101'::bytea IN sealed) > 0`), 0, "the number of RSA begins each")
}
