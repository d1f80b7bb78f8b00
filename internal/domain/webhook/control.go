package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/outbox"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/seal"
	"github.com/registrar-dev/registrar/internal/kit/task"
)

// EndpointChannel is notified, with an endpoint's id, when its settings, its secret or
// its being on or off have changed.
const EndpointChannel = "registrar_endpoints"

func wakeEndpoint(tx *pg.Tx, endpoint id.Endpoint) {
	tx.Wake(EndpointChannel, strconv.FormatInt(int64(endpoint), 10))
}

// The lengths of a signing secret that a caller chooses.
const (
	minSecret = 24
	maxSecret = 200
)

// checkSecret wants a text that survives being written into a header or a file: visible
// ASCII, long enough not to be guessed.
func checkSecret(secret string) error {
	if len(secret) < minSecret || len(secret) > maxSecret {
		return fault.Field("signing_secret", "invalid_secret", "signing_secret: send %d to %d characters", minSecret, maxSecret)
	}
	if strings.ContainsFunc(secret, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return fault.Field("signing_secret", "invalid_secret", "signing_secret: visible ASCII characters without spaces are accepted")
	}
	return nil
}

// newSecret is the given secret, or a drawn one for "".
func newSecret(given string) (string, error) {
	if given == "" {
		return SecretPrefix + seal.Token(), nil
	}
	return given, checkSecret(given)
}

// Rotate replaces the signing secret, from the very next attempt on, and returns the new
// one: the given one, or a drawn one for "". Giving the secret in force changes nothing,
// so that a caller who keeps a secret elsewhere may repeat itself. Faults: NotFound;
// Invalid on signing_secret.
func (k Service) Rotate(ctx context.Context, org id.Organization, endpoint id.Endpoint, secret string, now time.Time) (Endpoint, string, error) {
	secret, err := newSecret(secret)
	if err != nil {
		return Endpoint{}, "", err
	}
	err = k.DB.InTx(ctx, func(tx *pg.Tx) error {
		version, sealed, err := lockSecret(ctx, tx, org, endpoint)
		if pg.None(err) {
			return errNoEndpoint(endpoint)
		} else if err != nil {
			return err
		}
		if plain, err := k.Box.Open(ctx, sealed, SecretContext(endpoint, version)); err == nil && seal.Equal(string(plain), secret) {
			return nil
		}
		version++
		if sealed, err = k.Box.Seal(ctx, []byte(secret), SecretContext(endpoint, version)); err != nil {
			return err
		}
		wakeEndpoint(tx, endpoint)
		return replaceSecret(ctx, tx, endpoint, version, sealed, now)
	})
	if err != nil {
		return Endpoint{}, "", err
	}
	e, err := k.Find(ctx, org, endpoint)
	return e, secret, err
}

// TurnOn switches a URL on and forgets its run of failures; what happens from now on is
// delivered. Deliveries that were skipped meanwhile stay so until they are recovered.
// Turning on what is on changes nothing. NotFound when there is no such.
func (k Service) TurnOn(ctx context.Context, org id.Organization, endpoint id.Endpoint, now time.Time) (Endpoint, error) {
	return k.turn(ctx, org, endpoint, func(tx *pg.Tx) (bool, error) { return updateOn(ctx, tx, org, endpoint, now) })
}

// SwitchOff switches a URL off by hand; reason is a sentence for people. Deliveries that
// wait are skipped, and new ones are skipped from the start. A URL that is off keeps its
// time and takes the reason. NotFound when there is no such.
func (k Service) SwitchOff(ctx context.Context, org id.Organization, endpoint id.Endpoint, reason string, now time.Time) (Endpoint, error) {
	return k.turn(ctx, org, endpoint, func(tx *pg.Tx) (bool, error) {
		changed, err := updateOffByHand(ctx, tx, org, endpoint, reason, now)
		if err != nil || !changed {
			return changed, err
		}
		return true, outbox.Add(ctx, tx, task.WebhookSkip, int64(endpoint), org, now)
	})
}

func (k Service) turn(ctx context.Context, org id.Organization, endpoint id.Endpoint, change func(*pg.Tx) (bool, error)) (Endpoint, error) {
	err := k.DB.InTx(ctx, func(tx *pg.Tx) error {
		// Health is locked before the endpoint, as Settle does.
		if err := lockOneHealth(ctx, tx, endpoint); err != nil {
			return err
		}
		changed, err := change(tx)
		if changed {
			wakeEndpoint(tx, endpoint)
			Wake(tx, org)
		}
		return err
	})
	if err != nil {
		return Endpoint{}, err
	}
	return k.Find(ctx, org, endpoint)
}

// PingData is the data of the event ping.
type PingData struct {
	Message  string `json:"message"`
	Endpoint struct {
		ID  id.Endpoint `json:"id"`
		URL string      `json:"url"`
	} `json:"endpoint"`
}

// SendTest sends a ping to the URL, also while it is switched off, so that a receiver can
// be tried before it is turned on. It is one attempt, says nothing about the run of
// failures, and waits behind nothing. NotFound when there is no such URL.
func (k Service) SendTest(ctx context.Context, org id.Organization, endpoint id.Endpoint, now time.Time) (id.Delivery, error) {
	e, err := k.Find(ctx, org, endpoint)
	if err != nil {
		return id.Delivery{}, err
	}
	ping := PingData{Message: "This is a test event of Registrar."}
	ping.Endpoint.ID, ping.Endpoint.URL = e.ID, e.URL
	data, err := json.Marshal(ping)
	if err != nil {
		return id.Delivery{}, fmt.Errorf("ping: %w", err)
	}
	delivery := id.NewDelivery()
	err = k.DB.InTx(ctx, func(tx *pg.Tx) error {
		Wake(tx, org)
		return insertPing(ctx, tx, org, endpoint, delivery, eventRow{id: id.NewEvent(), kind: Ping, data: data}, now)
	})
	return delivery, err
}

// FindManaged reads the endpoint that the given keeper manages (Settings.ManagedBy);
// NotFound when there is none.
func (k Service) FindManaged(ctx context.Context, managedBy string) (Endpoint, error) {
	e, err := selectManaged(ctx, k.DB, managedBy)
	if pg.None(err) {
		return Endpoint{}, fault.New(fault.NotFound, "not_found", "no webhook URL is managed by %q", managedBy)
	}
	return e, err
}

// MaxBacklog is where Backlogs stops counting.
const MaxBacklog = 100_000

// Backlogs counts what waits for each of the endpoints or is on its way to it, up to
// MaxBacklog.
func (k Service) Backlogs(ctx context.Context, endpoints ...id.Endpoint) (map[id.Endpoint]int, error) {
	return selectBacklogs(ctx, k.DB, toInts(endpoints))
}
