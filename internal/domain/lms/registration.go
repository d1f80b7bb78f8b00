// Package lms holds the LMSes that an organization has registered for LTI 1.3, checks the messages with which they
// open work here, and keeps the installation's own keys.
//
// A launch takes three steps. The LMS sends the browser to us, and Begin remembers what has to come back. We send the
// browser to the LMS, which posts it back with a signed message: ReadMessage. Finish takes what Begin remembered, once,
// whichever replica is asked.
package lms

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/egress"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/seal"
)

// Registration is an LMS (in the words of LTI: a platform) that may open an organization's work.
type Registration struct {
	ID           id.Registration
	Name         string // for the organization's own staff
	Issuer       string
	ClientID     string   // what the LMS calls us
	AuthorizeURL string   // where browsers go to come back with a message
	TokenURL     string   // where its services give us tokens
	Audience     string   // whom a request for a token is for; "": TokenURL
	KeysURL      string   // its public keys
	Deployments  []string // whose messages are taken, at least one unless it is Waiting
	Waiting      bool     // the LMS has registered itself, and opens nothing until Change
	LaunchedAt   *time.Time
	CreatedAt    time.Time
	UpdatedAt    time.Time
}

// Limits of registrations.
const (
	maxRegistrations = 20
	maxDeployments   = 100
	maxText          = 255
	maxIssuer        = 500
)

// Service keeps registrations, and what launches leave.
type Service struct {
	DB     *pg.DB
	Policy *egress.Policy // for the addresses of LMSes
	Box    *seal.Box      // for Invite and Invited alone
}

// Tool is what is entered in an LMS. Each organization has addresses of its own: else one could have its LMS's message taken for
// another's.
type Tool struct {
	LoginURL    string // where launches begin
	RedirectURL string // where the LMS's messages go
	DeepLinkURL string // as the target of messages of the type Chooses
	KeysURL     string
}

// NewTool is the site as an LMS of the organization called slug has it.
func NewTool(publicURL, slug string) Tool {
	return Tool{publicURL + LoginPath + slug + "/", publicURL + MessagePath + slug + "/", publicURL + DeepLinkPath + slug + "/", publicURL + KeysPath}
}

// The paths of a Tool; a slug follows all but the last.
const (
	LoginPath    = "/lti/v1p3/login/"
	MessagePath  = "/lti/v1p3/launch/"
	DeepLinkPath = "/lti/v1p3/deep-link/"
	KeysPath     = "/lti/v1p3/jwks"
	RegisterPath = "/lti/v1p3/register/" // a slug follows, and what Invite gives
)

var (
	errNone   = fault.New(fault.NotFound, "not_found", "the organization has no such LTI registration")
	errNobody = fault.New(fault.NotFound, "not_found", "nobody has come from this LMS as this student")
	errTaken  = fault.New(fault.Conflict, "registration_exists", "the organization has a registration with this issuer and client id already; change that one")
)

// Find gives one of the organization's registrations. NotFound.
func Find(ctx context.Context, q pg.Querier, org id.Organization, which id.Registration) (Registration, error) {
	r, err := selectOne(ctx, q, org, which)
	if pg.None(err) {
		return r, errNone
	}
	return r, err
}

// Add registers an LMS. Invalid lists each fault; Conflict: registration_exists, registration_limit.
func (s Service) Add(ctx context.Context, by audit.Actor, org id.Organization, r Registration, now time.Time) (Registration, error) {
	if err := s.check(&r); err != nil {
		return r, err
	}
	r.CreatedAt, r.UpdatedAt = now, now
	err := s.DB.InTx(ctx, func(tx *pg.Tx) error {
		err := room(ctx, tx, org)
		if err != nil {
			return err
		}
		if r.ID, err = insert(ctx, tx, org, r); err != nil {
			return err
		}
		return audit.Write(ctx, tx, audit.Entry{Organization: org, Actor: by, Action: "registered LMS", Target: r.target(), At: now})
	})
	if pg.Violates(err, "lms_registrations_client") {
		err = errTaken
	}
	return r, err
}

// room waits for others that add registrations. Conflict (registration_limit) where there may be no more.
func room(ctx context.Context, tx *pg.Tx, org id.Organization) error {
	if err := pg.Lock(ctx, tx, pg.LockLMS, fmt.Sprint(org)); err != nil {
		return err
	}
	all, err := List(ctx, tx, org)
	if err == nil && len(all) >= maxRegistrations {
		return fault.New(fault.Conflict, "registration_limit", "the organization has %d LTI registrations, which is the limit; remove one first", maxRegistrations)
	}
	return err
}

// Change replaces the settings of a registration, and confirms one that is Waiting. Another issuer or client id forgets who its people are: another LMS
// may call somebody else the same. Invalid lists each fault; NotFound; Conflict: registration_exists.
func (s Service) Change(ctx context.Context, by audit.Actor, org id.Organization, r Registration, now time.Time) (Registration, error) {
	r.Waiting = false
	if err := s.check(&r); err != nil {
		return r, err
	}
	err := s.DB.InTx(ctx, func(tx *pg.Tx) error {
		if err := pg.Lock(ctx, tx, pg.LockLMS, fmt.Sprint(org)); err != nil {
			return err
		}
		before, err := Find(ctx, tx, org, r.ID)
		if err != nil {
			return err
		}
		r.CreatedAt, r.UpdatedAt, r.LaunchedAt = before.CreatedAt, now, before.LaunchedAt
		if err := update(ctx, tx, org, r); err != nil {
			return err
		}
		if before.Issuer != r.Issuer || before.ClientID != r.ClientID {
			if err := deleteOf(ctx, tx, org, r.ID); err != nil {
				return err
			}
		}
		action := "changed LMS"
		if before.Waiting {
			action = "confirmed LMS"
		}
		return audit.Write(ctx, tx, audit.Entry{Organization: org, Actor: by, Action: action, Target: r.target(), At: now})
	})
	if pg.Violates(err, "lms_registrations_client") {
		err = errTaken
	}
	return r, err
}

// Remove takes a registration away: its LMS opens nothing any more. Students, their work and their sessions stay. NotFound.
func (s Service) Remove(ctx context.Context, by audit.Actor, org id.Organization, which id.Registration, now time.Time) error {
	return s.DB.InTx(ctx, func(tx *pg.Tx) error {
		r, err := Find(ctx, tx, org, which)
		if err != nil {
			return err
		}
		if err := deleteOne(ctx, tx, org, which); err != nil {
			return err
		}
		return audit.Write(ctx, tx, audit.Entry{Organization: org, Actor: by, Action: "removed LMS", Target: r.target(), At: now})
	})
}

// Forget lets the student come from the LMS as another of its users, for instance when the LMS has made the person's
// account again. NotFound for a student who has not come from it.
func (s Service) Forget(ctx context.Context, by audit.Actor, org id.Organization, which id.Registration, user id.User, now time.Time) error {
	return s.DB.InTx(ctx, func(tx *pg.Tx) error {
		r, err := Find(ctx, tx, org, which)
		if err != nil {
			return err
		}
		if known, err := deletePerson(ctx, tx, org, which, user); err != nil || !known {
			if err == nil {
				err = errNobody
			}
			return err
		}
		return audit.Write(ctx, tx, audit.Entry{Organization: org, Actor: by, Action: "forgot user of LMS " + r.target(), Target: fmt.Sprintf("user %d", user), At: now})
	})
}

// target is how the audit log calls it.
func (r Registration) target() string { return r.Name + " (" + r.Issuer + ")" }

// check also writes addresses as they are kept.
func (s Service) check(r *Registration) error {
	var faults fault.List
	text := func(field string, value *string, longest int) {
		*value = strings.TrimSpace(*value)
		if *value == "" || len(*value) > longest || !plain(*value) {
			_ = faults.Add(fault.Field(field, "missing", "%s: required, at most %d characters, without line breaks", field, longest))
		}
	}
	address := func(field string, value *string) {
		kept, err := s.Policy.CheckURL(field, *value)
		if err != nil {
			_ = faults.Add(err)
			return
		}
		*value = kept
	}
	text("name", &r.Name, maxText)
	text("issuer", &r.Issuer, maxIssuer)
	text("client_id", &r.ClientID, maxText)
	address("authorize_url", &r.AuthorizeURL)
	address("token_url", &r.TokenURL)
	address("keys_url", &r.KeysURL)
	if r.Audience = strings.TrimSpace(r.Audience); len(r.Audience) > maxIssuer || !plain(r.Audience) {
		_ = faults.Add(fault.Field("token_audience", "too_long", "token_audience: at most %d characters, without line breaks", maxIssuer))
	}
	r.Deployments = deployments(r.Deployments)
	if len(r.Deployments) == 0 && !r.Waiting || len(r.Deployments) > maxDeployments ||
		slices.ContainsFunc(r.Deployments, func(d string) bool { return len(d) > maxText || !plain(d) }) {
		_ = faults.Add(fault.Field("deployments", "missing", "deployments: send 1 to %d ids as the LMS shows them, each of at most %d characters", maxDeployments, maxText))
	}
	return faults.Err()
}

// deployments are each once, in order, without what is empty.
func deployments(sent []string) []string {
	kept := []string{}
	for _, d := range sent {
		if d = strings.TrimSpace(d); d != "" {
			kept = append(kept, d)
		}
	}
	slices.Sort(kept)
	return slices.Compact(kept)
}

// plain says whether a text is a line.
func plain(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f })
}
