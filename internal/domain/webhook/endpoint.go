package webhook

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/egress"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/outbox"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/seal"
	"github.com/registrar-dev/registrar/internal/kit/task"
)

// MaxEndpoints is how many receiver URLs an organization may have (reference: webhooks#webhook-urls).
const MaxEndpoints = 10

// Endpoint is one receiver URL with its settings and what its deliveries taught.
type Endpoint struct {
	ID                  id.Endpoint
	Organization        id.Organization
	URL                 string
	Events              []Type // empty: all
	TimeZone            string // IANA name of the zone its timestamps are written in
	SwitchedOn          bool
	SwitchedOffAt       *time.Time
	SwitchedOffReason   string
	SecretVersion       int
	CreatedAt           time.Time
	ManagedBy           string // who keeps its settings; "" when people do
	ConsecutiveFailures int
	LastSuccessAt       *time.Time
	LastFailureAt       *time.Time
}

// Settings are what a caller may choose of an endpoint. A nil field keeps what is there,
// or the default of a new URL: all events, UTC.
type Settings struct {
	URL      *string
	Events   *[]Type
	TimeZone *string
	// Of a new endpoint alone: its signing secret, "" for a drawn one, and who manages it,
	// which is unique ("" when people do).
	Secret    string
	ManagedBy string
}

// check validates the settings that are given and normalises the URL. Faults: Invalid, on
// url, events or time_zone.
func (s Settings) check(policy *egress.Policy) (Settings, error) {
	var faults fault.List
	if s.URL != nil {
		u, err := policy.CheckURL("url", *s.URL)
		_ = faults.Add(err)
		s.URL = &u
	}
	if s.Events != nil {
		events, err := checkEvents(*s.Events)
		_ = faults.Add(err)
		s.Events = &events
	}
	if s.TimeZone != nil {
		_, err := clock.Zone("time_zone", *s.TimeZone)
		_ = faults.Add(err)
	}
	return s, faults.Err()
}

func checkEvents(events []Type) ([]Type, error) {
	out := make([]Type, 0, len(events))
	for _, t := range events {
		if !Known(t) {
			return nil, fault.Field("events", "unknown_event", "events: %q is no event; choose from %s, or send none for all", t, typeList())
		}
		if !slices.Contains(out, t) {
			out = append(out, t)
		}
	}
	return out, nil
}

func typeList() string {
	names := make([]string, 0, len(Types()))
	for _, t := range Types() {
		names = append(names, string(t))
	}
	return strings.Join(names, ", ")
}

// SecretPrefix begins every signing secret; it is part of the HMAC key.
const SecretPrefix = "whsec_"

// SecretContext is what a sealed signing secret is bound to.
func SecretContext(endpoint id.Endpoint, version int) string {
	return fmt.Sprintf("webhook_secrets/%d/%d", endpoint, version)
}

// Service adds, changes and removes endpoints.
type Service struct {
	DB     *pg.DB
	Box    *seal.Box
	Policy *egress.Policy
}

// Add makes a switched-on endpoint and returns it with its signing secret, which is
// shown this once. Faults: Invalid on a setting; Conflict "url_limit" for the eleventh
// URL, "url_exists" for one the organization has already, "managed_already" when its
// manager has one.
func (k Service) Add(ctx context.Context, org id.Organization, s Settings, now time.Time) (Endpoint, string, error) {
	if s.URL == nil {
		return Endpoint{}, "", fault.Field("url", "missing", "url is required: the https:// address that receives the events")
	}
	s, err := s.check(k.Policy)
	if err != nil {
		return Endpoint{}, "", err
	}
	secret, err := newSecret(s.Secret)
	if err != nil {
		return Endpoint{}, "", err
	}
	var made Endpoint
	err = k.DB.InTx(ctx, func(tx *pg.Tx) error {
		if made, err = insertEndpoint(ctx, tx, org, s, now); err != nil {
			return err
		}
		sealed, err := k.Box.Seal(ctx, []byte(secret), SecretContext(made.ID, made.SecretVersion))
		if err != nil {
			return err
		}
		wakeEndpoint(tx, made.ID)
		return insertSecret(ctx, tx, made.ID, made.SecretVersion, sealed, now)
	})
	if err != nil {
		return Endpoint{}, "", uniqueness(err, s.ManagedBy)
	}
	return made, secret, nil
}

// uniqueness makes faults of the unique constraints.
func uniqueness(err error, managedBy string) error {
	switch {
	case pg.Violates(err, "webhook_endpoints_url"):
		return fault.New(fault.Conflict, "url_exists", "url: the organization already has this URL; change or delete that one")
	case pg.Violates(err, "webhook_endpoints_managed_by"):
		return fault.New(fault.Conflict, "managed_already", "%s manages a webhook URL already", managedBy)
	}
	return err
}

// errLimit is the answer to the eleventh URL.
func errLimit() error {
	return fault.New(fault.Conflict, "url_limit", "url: the organization has %d URLs, which is the limit; delete one first", MaxEndpoints)
}

func errNoEndpoint(endpoint id.Endpoint) error {
	return fault.New(fault.NotFound, "not_found", "the organization has no webhook URL with the id %d", endpoint)
}

// Find reads one endpoint of the organization; NotFound when it has no such.
func (k Service) Find(ctx context.Context, org id.Organization, endpoint id.Endpoint) (Endpoint, error) {
	e, err := selectEndpoint(ctx, k.DB, org, endpoint)
	if pg.None(err) {
		return Endpoint{}, errNoEndpoint(endpoint)
	}
	return e, err
}

// List reads the organization's endpoints, oldest first; there are MaxEndpoints at most.
func (k Service) List(ctx context.Context, org id.Organization) ([]Endpoint, error) {
	return selectEndpoints(ctx, k.DB, org)
}

// Change applies the given settings; deliveries already recorded keep their event, and
// their next attempt goes to the new URL. Faults as Add's, and NotFound.
func (k Service) Change(ctx context.Context, org id.Organization, endpoint id.Endpoint, s Settings, now time.Time) (Endpoint, error) {
	s, err := s.check(k.Policy)
	if err != nil {
		return Endpoint{}, err
	}
	err = k.DB.InTx(ctx, func(tx *pg.Tx) error {
		wakeEndpoint(tx, endpoint)
		return updateEndpoint(ctx, tx, org, endpoint, s, now)
	})
	switch {
	case pg.None(err):
		return Endpoint{}, errNoEndpoint(endpoint)
	case err != nil:
		return Endpoint{}, uniqueness(err, "")
	}
	return k.Find(ctx, org, endpoint)
}

// Remove deletes an endpoint and frees its place at once; its pending deliveries are
// cancelled quietly by the task that it owes. NotFound when there is no such.
func (k Service) Remove(ctx context.Context, org id.Organization, endpoint id.Endpoint, now time.Time) error {
	return k.DB.InTx(ctx, func(tx *pg.Tx) error {
		found, err := deleteEndpoint(ctx, tx, org, endpoint)
		if err != nil {
			return err
		}
		if !found {
			return errNoEndpoint(endpoint)
		}
		wakeEndpoint(tx, endpoint)
		return outbox.Add(ctx, tx, task.WebhookCancel, int64(endpoint), org, now)
	})
}

// cancelBatch bounds one statement of Cancel.
const cancelBatch = 1000

// Cancel ends the pending deliveries of a removed endpoint, a batch a statement. It may
// be repeated.
func Cancel(ctx context.Context, q pg.Querier, endpoint id.Endpoint, now time.Time) error {
	for {
		n, err := cancelSome(ctx, q, endpoint, now, cancelBatch)
		if err != nil || n < cancelBatch {
			return err
		}
	}
}
