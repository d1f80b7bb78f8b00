// Package verify is for receivers of Registrar's webhooks: it checks signatures and tells
// retries from new events. It needs the standard library alone.
package verify

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
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
	HeaderSequence  = "X-Service-Sequence"

	// Those of Standard Webhooks (https://www.standardwebhooks.com), which every delivery has besides.
	HeaderStandardID        = "Webhook-Id" // the event's id as well
	HeaderStandardTimestamp = "Webhook-Timestamp"
	HeaderStandardSignature = "Webhook-Signature"
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
// the raw body, exactly as it was received. There are two v1 while the sender replaces a secret;
// one of them has to fit. secrets are the signing secrets to accept, each
// the whole text that was shown, whsec_ included; several while one is being replaced. It
// returns nil, ErrMissing, ErrStale or ErrWrong.
func Signature(header string, body []byte, now time.Time, secrets ...string) error {
	t, digests, err := split(header)
	if err != nil {
		return err
	}
	if err := fresh(t, now); err != nil {
		return err
	}
	fits := false
	for _, secret := range secrets {
		want := digestOf([]byte(secret), t+".", body)
		for _, digest := range digests {
			fits = hmac.Equal(want, digest) || fits
		}
	}
	if !fits {
		return ErrWrong
	}
	return nil
}

// Standard checks the headers of Standard Webhooks for the raw body, as the published libraries
// do: id, timestamp and signatures are the values of the three headers. A secret that is not
// whsec_ and standard base64, which only old and chosen ones are, is the key as it stands; to a
// published library it is given as a raw one. It returns nil, ErrMissing, ErrStale or ErrWrong.
func Standard(id, timestamp, signatures string, body []byte, now time.Time, secrets ...string) error {
	if id == "" || signatures == "" {
		return ErrMissing
	}
	if err := fresh(timestamp, now); err != nil {
		return err
	}
	fits := false
	for _, secret := range secrets {
		want := digestOf(standardKey(secret), id+"."+timestamp+".", body)
		for signature := range strings.SplitSeq(signatures, " ") {
			text, v1 := strings.CutPrefix(signature, "v1,")
			digest, err := base64.StdEncoding.DecodeString(text)
			fits = v1 && err == nil && hmac.Equal(want, digest) || fits
		}
	}
	if !fits {
		return ErrWrong
	}
	return nil
}

func standardKey(secret string) []byte {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil || len(key) == 0 {
		return []byte(secret)
	}
	return key
}

func digestOf(key []byte, before string, body []byte) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(before))
	mac.Write(body)
	return mac.Sum(nil)
}

func fresh(timestamp string, now time.Time) error {
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if err != nil {
		return ErrMissing
	}
	if age := now.Sub(time.Unix(seconds, 0)); age > Tolerance || age < -Tolerance {
		return ErrStale
	}
	return nil
}

func split(header string) (t string, digests [][]byte, err error) {
	for part := range strings.SplitSeq(header, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		switch name {
		case "t":
			t = value
		case "v1":
			digest, err := hex.DecodeString(value)
			if err != nil || len(digest) != sha256.Size {
				return "", nil, ErrMissing
			}
			digests = append(digests, digest)
		}
	}
	if t == "" || len(digests) == 0 {
		return "", nil, ErrMissing
	}
	return t, digests, nil
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

	// Sequence is the event's place among those of the organization, from HeaderSequence, which is
	// not signed. Later events have greater ones. 0: Registrar has recorded it before it counted.
	Sequence int64 `json:"-"`
}

// Request reads, checks and decodes a delivery. Without HeaderSignature, which a proxy may have
// taken off, the headers of Standard Webhooks are checked. The errors are Signature's, or say why
// the body could not be read or decoded.
func Request(r *http.Request, secrets ...string) (Event, error) {
	body, err := io.ReadAll(io.LimitReader(r.Body, MaxBody+1))
	if err != nil {
		return Event{}, fmt.Errorf("reading the body: %w", err)
	}
	if len(body) > MaxBody {
		return Event{}, errors.New("the body is too large")
	}
	if err := signed(r.Header, body, time.Now(), secrets); err != nil {
		return Event{}, err
	}
	var e Event
	if err := json.Unmarshal(body, &e); err != nil {
		return Event{}, fmt.Errorf("decoding the body: %w", err)
	}
	e.Sequence, _ = strconv.ParseInt(r.Header.Get(HeaderSequence), 10, 64)
	return e, nil
}

func signed(h http.Header, body []byte, now time.Time, secrets []string) error {
	if header := h.Get(HeaderSignature); header != "" || h.Get(HeaderStandardSignature) == "" {
		return Signature(header, body, now, secrets...)
	}
	return Standard(h.Get(HeaderStandardID), h.Get(HeaderStandardTimestamp), h.Get(HeaderStandardSignature), body, now, secrets...)
}
