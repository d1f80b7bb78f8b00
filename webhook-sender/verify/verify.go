// Package verify is for receivers of Registrar's webhooks: it checks signatures and tells
// retries from new events. It needs the standard library alone.
package verify

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// The headers of a delivery.
const (
	HeaderEvent     = "X-Service-Event"
	HeaderDelivery  = "X-Service-Delivery" // the event's id
	HeaderSignature = "X-Service-Signature"
)

// Tolerance is how far a signature's time may be from now.
const Tolerance = 5 * time.Minute

// MaxBody is the most that Request reads of a body; events are far smaller.
const MaxBody = 4 << 20

// What can be wrong with a signature.
var (
	ErrMissing = errors.New("the signature is missing or malformed")
	ErrStale   = errors.New("the signature is too old or from the future")
	ErrWrong   = errors.New("the signature does not fit the body and the secret")
)

// Signature checks the value of HeaderSignature ("t=<unix seconds>,v1=<hex digest>") for
// the raw body, exactly as it was received. secrets are the signing secrets to accept, each
// the whole text that was shown, whsec_ included; several while one is being replaced. It
// returns nil, ErrMissing, ErrStale or ErrWrong.
func Signature(header string, body []byte, now time.Time, secrets ...string) error {
	t, digest, err := split(header)
	if err != nil {
		return err
	}
	seconds, err := strconv.ParseInt(t, 10, 64)
	if err != nil {
		return ErrMissing
	}
	if age := now.Sub(time.Unix(seconds, 0)); age > Tolerance || age < -Tolerance {
		return ErrStale
	}
	fits := false
	for _, secret := range secrets {
		mac := hmac.New(sha256.New, []byte(secret))
		mac.Write([]byte(t + "."))
		mac.Write(body)
		fits = hmac.Equal(mac.Sum(nil), digest) || fits
	}
	if !fits {
		return ErrWrong
	}
	return nil
}

func split(header string) (t string, digest []byte, err error) {
	for part := range strings.SplitSeq(header, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		switch name {
		case "t":
			t = value
		case "v1":
			if digest, err = hex.DecodeString(value); err != nil {
				return "", nil, ErrMissing
			}
		}
	}
	if t == "" || len(digest) != sha256.Size {
		return "", nil, ErrMissing
	}
	return t, digest, nil
}

// Event is the body of a delivery.
type Event struct {
	ID           string    `json:"id"`   // the same for every retry
	Type         string    `json:"type"` // "result.final"
	Created      time.Time `json:"created"`
	Organization struct {
		ID   int64  `json:"id"`
		Slug string `json:"slug"`
		Name string `json:"name"`
	} `json:"organization"`
	Data json.RawMessage `json:"data"` // depends on Type
}

// Request reads, checks and decodes a delivery. The errors are Signature's, or say why the
// body could not be read or decoded.
func Request(r *http.Request, secrets ...string) (Event, error) {
	body, err := io.ReadAll(io.LimitReader(r.Body, MaxBody+1))
	if err != nil {
		return Event{}, fmt.Errorf("reading the body: %w", err)
	}
	if len(body) > MaxBody {
		return Event{}, errors.New("the body is too large")
	}
	if err := Signature(r.Header.Get(HeaderSignature), body, time.Now(), secrets...); err != nil {
		return Event{}, err
	}
	var e Event
	if err := json.Unmarshal(body, &e); err != nil {
		return Event{}, fmt.Errorf("decoding the body: %w", err)
	}
	return e, nil
}
