package webhook

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/outbox"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/seal"
	"github.com/registrar-dev/registrar/internal/kit/task"
)

// EndpointChannel is notified with an endpoint's id when the endpoint has changed: its
// settings, its secret, or whether it is switched on.
const EndpointChannel = "endpoints"

func wakeEndpoint(tx *pg.Tx, endpoint id.Endpoint) {
	tx.Wake(EndpointChannel, strconv.FormatInt(int64(endpoint), 10))
}

// How many characters a signing secret that the caller chooses may have.
const (
	minSecret = 24
	maxSecret = 200
)

// checkSecret accepts visible ASCII only, which can be written into any header or file, and
// only what is too long to be guessed.
func checkSecret(secret string) error {
	if len(secret) < minSecret || len(secret) > maxSecret {
		return fault.Field("signing_secret", "invalid_secret", "signing_secret: send %d to %d characters", minSecret, maxSecret)
	}
	if strings.ContainsFunc(secret, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return fault.Field("signing_secret", "invalid_secret", "signing_secret: visible ASCII characters without spaces are accepted")
	}
	return nil
}

// NewSecret generates a signing secret: SecretPrefix and 32 random bytes in standard base64, as
// Standard Webhooks has them.
func NewSecret() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails
	return SecretPrefix + base64.StdEncoding.EncodeToString(b[:])
}

// chosenSecret checks the given secret, or generates one for "".
func chosenSecret(given string) (string, error) {
	if given == "" {
		return NewSecret(), nil
	}
	return given, checkSecret(given)
}

// MaxOverlap is how long a replaced signing secret may go on signing beside the new one.
const MaxOverlap = 7 * 24 * time.Hour

// Rotate replaces the signing secret by the given one, or by a generated one for "", and
// returns it. The next attempt already uses it. For the length of overlap, attempts are signed
// with the secret that was current, too; one from before that one ends at once, and with 0 all
// do. Giving the current secret changes nothing, so the call can be repeated. Faults: those of
// mayChange; Invalid on signing_secret or overlap.
func (s Service) Rotate(ctx context.Context, by audit.Actor, org id.Organization, endpoint id.Endpoint,
	secret string, overlap time.Duration, now time.Time) (Endpoint, string, error) {
	secret, err := chosenSecret(secret)
	if err != nil {
		return Endpoint{}, "", err
	}
	if overlap < 0 || overlap > MaxOverlap {
		return Endpoint{}, "", fault.Field("overlap", "out_of_range", "overlap: send one from 0 to %d hours", int(MaxOverlap.Hours()))
	}
	entry := audit.Entry{Organization: org, Actor: by, Action: "replaced signing secret", At: now}
	e, err := s.alter(ctx, endpoint, entry, func(tx *pg.Tx) (bool, error) {
		if err := mayChange(ctx, tx, by, org, endpoint); err != nil {
			return false, err
		}
		current, err := lockSecret(ctx, tx, org, endpoint)
		if err != nil {
			return false, err
		}
		opened, err := s.Box.Open(ctx, current.Sealed, SecretContext(endpoint, current.Version))
		if err == nil && seal.Equal(string(opened), secret) {
			return false, nil
		}
		version, keep := current.Version+1, overlapping{}
		if err == nil && overlap > 0 { // what cannot be opened signs nothing more
			keep = overlapping{current.Version, now.Add(overlap)}
		}
		sealed, err := s.Box.Seal(ctx, []byte(secret), SecretContext(endpoint, version))
		if err != nil {
			return false, err
		}
		return true, replaceSecret(ctx, tx, endpoint, version, sealed, keep, now)
	})
	if err != nil {
		return Endpoint{}, "", err
	}
	return e, secret, nil
}

// alter runs do in a transaction and returns the endpoint as it is afterwards. When do has
// changed it, alter writes the audit entry, with the URL as its target, and wakes those who
// listen for changes. Faults: NotFound.
func (s Service) alter(ctx context.Context, endpoint id.Endpoint, entry audit.Entry,
	do func(*pg.Tx) (changed bool, err error)) (e Endpoint, err error) {
	err = s.DB.InTx(ctx, func(tx *pg.Tx) error {
		changed, err := do(tx)
		if err != nil {
			return err
		}
		if e, err = selectEndpoint(ctx, tx, entry.Organization, endpoint); err != nil || !changed {
			return err
		}
		wakeEndpoint(tx, endpoint)
		entry.Target = e.URL
		return audit.Write(ctx, tx, entry)
	})
	if pg.None(err) {
		err = errNoEndpoint(endpoint)
	}
	return e, err
}

// Signs says whether secret is the endpoint's current signing secret. It is false also when
// the stored secret can no longer be opened, so that the caller replaces it. Faults: NotFound.
func (s Service) Signs(ctx context.Context, org id.Organization, endpoint id.Endpoint, secret string) (bool, error) {
	current, err := selectSecret(ctx, s.DB, org, endpoint)
	if pg.None(err) {
		return false, errNoEndpoint(endpoint)
	}
	if err != nil {
		return false, err
	}
	opened, err := s.Box.Open(ctx, current.Sealed, SecretContext(endpoint, current.Version))
	return err == nil && seal.Equal(string(opened), secret), nil
}

// Reveal opens the endpoint's current signing secret, for the resource that takes the endpoint over. Faults: NotFound.
func (s Service) Reveal(ctx context.Context, org id.Organization, endpoint id.Endpoint) (string, error) {
	current, err := selectSecret(ctx, s.DB, org, endpoint)
	if pg.None(err) {
		return "", errNoEndpoint(endpoint)
	} else if err != nil {
		return "", err
	}
	opened, err := s.Box.Open(ctx, current.Sealed, SecretContext(endpoint, current.Version))
	return string(opened), err
}

// EndOverlaps removes the replaced signing secrets whose overlap has ended.
func EndOverlaps(ctx context.Context, db *pg.DB, now time.Time) error {
	return db.InTx(ctx, func(tx *pg.Tx) error {
		ended, err := deletePrevious(ctx, tx, now)
		for _, endpoint := range ended {
			wakeEndpoint(tx, endpoint)
		}
		return err
	})
}

// TurnOn switches a URL on and resets its failures: events are delivered from now on.
// Deliveries that were skipped stay skipped until they are recovered. A URL that is on does
// not change. Faults: NotFound.
func (s Service) TurnOn(ctx context.Context, by audit.Actor, org id.Organization, endpoint id.Endpoint, now time.Time) (Endpoint, error) {
	entry := audit.Entry{Organization: org, Actor: by, Action: "turned on webhook URL", At: now}
	return s.turn(ctx, endpoint, entry, func(tx *pg.Tx) (bool, error) { return updateOn(ctx, tx, org, endpoint, now) })
}

// SwitchOff switches a URL off by hand; reason is a sentence for people. Pending deliveries
// are skipped, and so are new ones. A URL that is off already keeps its time and takes the
// new reason. Faults: NotFound.
func (s Service) SwitchOff(ctx context.Context, by audit.Actor, org id.Organization, endpoint id.Endpoint, reason string, now time.Time) (Endpoint, error) {
	entry := audit.Entry{Organization: org, Actor: by, Action: "switched off webhook URL", At: now}
	return s.turn(ctx, endpoint, entry, func(tx *pg.Tx) (bool, error) {
		changed, err := updateOffByHand(ctx, tx, org, endpoint, reason, now)
		if err != nil || !changed {
			return changed, err
		}
		return true, outbox.Add(ctx, tx, task.WebhookSkip, int64(endpoint), org, now)
	})
}

func (s Service) turn(ctx context.Context, endpoint id.Endpoint, entry audit.Entry, change func(*pg.Tx) (bool, error)) (Endpoint, error) {
	return s.alter(ctx, endpoint, entry, func(tx *pg.Tx) (bool, error) {
		// Settle locks in this order too: health, then the endpoint.
		if err := lockOneHealth(ctx, tx, endpoint); err != nil {
			return false, err
		}
		changed, err := change(tx)
		if changed {
			Wake(tx, entry.Organization)
		}
		return changed, err
	})
}

// PingData is the data of the event ping.
type PingData struct {
	Message  string `json:"message"`
	Endpoint struct {
		ID  id.Endpoint `json:"id"`
		URL string      `json:"url"`
	} `json:"endpoint"`
}

// SendTest sends a ping to the URL, also when it is switched off, so that a receiver can be
// tried before it is turned on. The ping overtakes the backlog, is attempted once, and does not
// count when it fails. Faults: NotFound.
func (s Service) SendTest(ctx context.Context, by audit.Actor, org id.Organization, endpoint id.Endpoint, now time.Time) (id.Delivery, error) {
	e, err := s.Find(ctx, org, endpoint)
	if err != nil {
		return id.Delivery{}, err
	}
	ping := PingData{Message: "This is a test event of Registrar."}
	ping.Endpoint.ID, ping.Endpoint.URL = e.ID, e.URL
	data, err := json.Marshal(ping)
	if err != nil {
		return id.Delivery{}, fmt.Errorf("ping: %w", err)
	}
	delivery := id.NewDelivery(now)
	err = s.DB.InTx(ctx, func(tx *pg.Tx) error {
		Wake(tx, org)
		if err := insertPing(ctx, tx, org, endpoint, delivery, eventRow{id: id.NewEvent(now), kind: Ping, data: data}, now); err != nil {
			return err
		}
		return audit.Write(ctx, tx, audit.Entry{Organization: org, Actor: by, Action: "sent test event", Target: e.URL, At: now})
	})
	return delivery, err
}
