package webhook

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/registrar-dev/registrar/internal/kit/audit"
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

// Endpoint is one receiver URL with its settings and the state of its deliveries.
type Endpoint struct {
	ID                  id.Endpoint
	Organization        id.Organization
	URL                 string
	Events              []Type // empty: all
	TimeZone            string // IANA name; timestamps are sent in this zone
	SwitchedOn          bool
	SwitchedOffAt       *time.Time
	SwitchedOffReason   string
	SecretVersion       int
	PreviousUntil       *time.Time // the secret before goes on signing until then; see Overlap
	CreatedAt           time.Time
	ManagedBy           string // the resource that holds its settings; "" when people manage it
	Retained            bool   // it is left to people when that resource is gone
	ConsecutiveFailures int
	LastSuccessAt       *time.Time
	LastFailureAt       *time.Time
}

// Overlap is until when attempts are signed with the secret before, too; nil when they are not.
func (e Endpoint) Overlap(now time.Time) *time.Time {
	if e.PreviousUntil == nil || !e.PreviousUntil.After(now) {
		return nil
	}
	return e.PreviousUntil
}

// Settings are what a caller may choose of an endpoint. A nil field leaves the setting as it
// is; a new URL then gets all events, and UTC.
type Settings struct {
	URL      *string
	Events   *[]Type
	TimeZone *string
	// For Add only: the signing secret ("" generates one), and the resource that manages the
	// URL, at most one URL each ("" when people manage it).
	Secret    string
	ManagedBy string

	Retained *bool // of what a resource manages: it is left to people when that is gone
}

// check validates the settings that are given and normalises the URL. Faults: Invalid on
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

// SecretPrefix begins every generated signing secret; it is part of the key of the contract's signature.
const SecretPrefix = "whsec_"

// SecretContext is what a sealed signing secret is bound to (see seal.Box).
func SecretContext(endpoint id.Endpoint, version int) string {
	return fmt.Sprintf("webhook_secrets/%d/%d", endpoint, version)
}

// Service has the commands and the queries about endpoints.
type Service struct {
	DB     *pg.DB
	Box    *seal.Box
	Policy *egress.Policy
}

// Add creates an endpoint that is switched on. It returns the signing secret as well, which
// cannot be read later. Faults: Invalid on a setting; Conflict "url_limit" for the eleventh
// URL, "url_exists" when the organization has the URL already, "managed_already" when the
// managing resource has a URL already.
func (s Service) Add(ctx context.Context, by audit.Actor, org id.Organization, settings Settings, now time.Time) (Endpoint, string, error) {
	if settings.URL == nil {
		return Endpoint{}, "", fault.Field("url", "missing", "url is required: the https:// address that receives the events")
	}
	settings, err := settings.check(s.Policy)
	if err != nil {
		return Endpoint{}, "", err
	}
	secret, err := chosenSecret(settings.Secret)
	if err != nil {
		return Endpoint{}, "", err
	}
	var made Endpoint
	err = s.DB.InTx(ctx, func(tx *pg.Tx) error {
		if made, err = insertEndpoint(ctx, tx, org, settings, now); err != nil {
			return err
		}
		sealed, err := s.Box.Seal(ctx, []byte(secret), SecretContext(made.ID, made.SecretVersion))
		if err != nil {
			return err
		}
		wakeEndpoint(tx, made.ID)
		if err := insertSecret(ctx, tx, made.ID, made.SecretVersion, sealed, now); err != nil {
			return err
		}
		return audit.Write(ctx, tx, audit.Entry{Organization: org, Actor: by, Action: "added webhook URL", Target: made.URL, At: now})
	})
	if err != nil {
		return Endpoint{}, "", uniqueness(err, settings.ManagedBy)
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

func errNoEndpoint(endpoint id.Endpoint) error {
	return fault.New(fault.NotFound, "not_found", "the organization has no webhook URL with the id %d", endpoint)
}

// Find reads one endpoint of the organization. Faults: NotFound.
func (s Service) Find(ctx context.Context, org id.Organization, endpoint id.Endpoint) (Endpoint, error) {
	e, err := selectEndpoint(ctx, s.DB, org, endpoint)
	if pg.None(err) {
		return Endpoint{}, errNoEndpoint(endpoint)
	}
	return e, err
}

// Managed is an endpoint as the resource that manages it shows it.
type Managed struct {
	Endpoint

	Slug    string // of the organization
	Backlog int    // as Service.Backlogs has it
}

// FindManaged reads the endpoint that the given resource manages (Settings.ManagedBy).
// Faults: NotFound.
func (s Service) FindManaged(ctx context.Context, managedBy string) (Managed, error) {
	e, err := selectManaged(ctx, s.DB, managedBy)
	if pg.None(err) {
		return Managed{}, fault.New(fault.NotFound, "not_found", "no webhook URL is managed by %q", managedBy)
	}
	return e, err
}

// FindURL reads the endpoint of the organization that has the URL, as Policy writes it. Faults: NotFound.
func (s Service) FindURL(ctx context.Context, org id.Organization, url string) (Endpoint, error) {
	e, err := selectURL(ctx, s.DB, org, url)
	if pg.None(err) {
		return Endpoint{}, fault.New(fault.NotFound, "not_found", "the organization has no webhook URL %s", url)
	}
	return e, err
}

// Adopt makes a resource the manager of a URL that people manage. Its secret, its log and what waits stay as they are.
// Faults: NotFound; Conflict "url_exists" when another resource manages it, "managed_already" as Add's.
func (s Service) Adopt(ctx context.Context, by audit.Actor, org id.Organization, endpoint id.Endpoint, managedBy string, now time.Time) (Endpoint, error) {
	entry := audit.Entry{Organization: org, Actor: by, Action: "took over webhook URL", At: now}
	e, err := s.alter(ctx, endpoint, entry, func(tx *pg.Tx) (bool, error) {
		return updateManager(ctx, tx, org, endpoint, "", managedBy, now)
	})
	if err == nil && e.ManagedBy != managedBy {
		err = fault.New(fault.Conflict, "url_exists", "url: the organization already has this URL, kept by %s", e.ManagedBy)
	}
	return e, uniqueness(err, managedBy)
}

// Release leaves a URL that a resource manages to people, with its secret, its log and what waits. Faults: NotFound.
func (s Service) Release(ctx context.Context, by audit.Actor, org id.Organization, endpoint id.Endpoint, managedBy string, now time.Time) error {
	entry := audit.Entry{Organization: org, Actor: by, Action: "released webhook URL", At: now}
	_, err := s.alter(ctx, endpoint, entry, func(tx *pg.Tx) (bool, error) {
		return updateManager(ctx, tx, org, endpoint, managedBy, "", now)
	})
	return err
}

// mayChange says whether the giver of a command may change the endpoint, its secret included, or delete it. What a
// resource manages is read-only for staff and partners; the platform may change it, and its operator changes it back.
// Faults: NotFound; Conflict "managed".
func mayChange(ctx context.Context, tx *pg.Tx, by audit.Actor, org id.Organization, endpoint id.Endpoint) error {
	if by.Kind != audit.Staff && by.Kind != audit.PartnerKey {
		return nil
	}
	e, err := selectEndpoint(ctx, tx, org, endpoint)
	switch {
	case pg.None(err):
		return errNoEndpoint(endpoint)
	case err == nil && e.ManagedBy != "":
		return fault.New(fault.Conflict, "managed", "this webhook URL is kept by %s; change or delete that resource instead", e.ManagedBy)
	}
	return err
}

// Change applies the given settings. Pending deliveries keep their events and go to the new
// URL from their next attempt on. Faults: as Add's, and those of mayChange.
func (s Service) Change(ctx context.Context, by audit.Actor, org id.Organization, endpoint id.Endpoint, settings Settings, now time.Time) (Endpoint, error) {
	settings, err := settings.check(s.Policy)
	if err != nil {
		return Endpoint{}, err
	}
	entry := audit.Entry{Organization: org, Actor: by, Action: "changed webhook URL", At: now}
	e, err := s.alter(ctx, endpoint, entry, func(tx *pg.Tx) (bool, error) {
		if err := mayChange(ctx, tx, by, org, endpoint); err != nil {
			return false, err
		}
		return true, updateEndpoint(ctx, tx, org, endpoint, settings, now)
	})
	return e, uniqueness(err, "")
}

// RemoveAll removes the endpoints of an organization that is erased, whoever manages them. Their deliveries are the
// caller's to delete.
func RemoveAll(ctx context.Context, tx *pg.Tx, org id.Organization) error {
	gone, err := deleteEndpoints(ctx, tx, org)
	for _, endpoint := range gone {
		wakeEndpoint(tx, endpoint)
	}
	return err
}

// Remove deletes an endpoint; another one can be added at once. A task cancels the pending
// deliveries afterwards. Faults: those of mayChange.
func (s Service) Remove(ctx context.Context, by audit.Actor, org id.Organization, endpoint id.Endpoint, now time.Time) error {
	return s.DB.InTx(ctx, func(tx *pg.Tx) error {
		if err := mayChange(ctx, tx, by, org, endpoint); err != nil {
			return err
		}
		url, err := deleteEndpoint(ctx, tx, org, endpoint)
		if pg.None(err) {
			return errNoEndpoint(endpoint)
		} else if err != nil {
			return err
		}
		wakeEndpoint(tx, endpoint)
		entry := audit.Entry{Organization: org, Actor: by, Action: "deleted webhook URL", Target: url, At: now}
		if err := audit.Write(ctx, tx, entry); err != nil {
			return err
		}
		return outbox.Add(ctx, tx, task.WebhookCancel, int64(endpoint), org, now)
	})
}
