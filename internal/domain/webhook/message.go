package webhook

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/id"
)

// Header names of a delivery (reference: webhooks#event-request).
const (
	HeaderEvent     = "X-Service-Event"
	HeaderDelivery  = "X-Service-Delivery"
	HeaderSignature = "X-Service-Signature"
	HeaderSequence  = "X-Service-Sequence"

	// Those of Standard Webhooks, which say the same.
	HeaderStandardID        = "Webhook-Id"
	HeaderStandardTimestamp = "Webhook-Timestamp"
	HeaderStandardSignature = "Webhook-Signature"
)

// Sign computes the value of HeaderSignature: for each secret the HMAC-SHA256 over "<t>.<body>".
// The key is the whole text of the secret, with its prefix. There are two secrets while one
// replaces the other, the new one first.
func Sign(at time.Time, body []byte, secrets ...string) string {
	t := strconv.FormatInt(at.Unix(), 10)
	value := "t=" + t
	for _, secret := range secrets {
		value += ",v1=" + hex.EncodeToString(digest([]byte(secret), t+".", body))
	}
	return value
}

// SignStandard computes the value of HeaderStandardSignature: for each secret the HMAC-SHA256 over
// "<id>.<t>.<body>", keyed by StandardKey.
func SignStandard(event id.Event, at time.Time, body []byte, secrets ...string) string {
	before := event.String() + "." + strconv.FormatInt(at.Unix(), 10) + "."
	values := make([]string, len(secrets))
	for i, secret := range secrets {
		values[i] = "v1," + base64.StdEncoding.EncodeToString(digest(StandardKey(secret), before, body))
	}
	return strings.Join(values, " ")
}

func digest(key []byte, before string, body []byte) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(before))
	mac.Write(body)
	return mac.Sum(nil)
}

// StandardKey is the key of Standard Webhooks: what the secret's base64 stands for, as the
// published libraries read it, and the whole text of a secret that is not standard base64,
// which they take as a raw one.
func StandardKey(secret string) []byte {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, SecretPrefix))
	if err != nil || len(key) == 0 {
		return []byte(secret)
	}
	return key
}

// Stored is an event as Record wrote it, with its timestamps in UTC.
type Stored struct {
	ID        id.Event
	Type      Type
	CreatedAt time.Time
	Data      []byte // JSON object
	Sequence  int64  // its place among the organization's events; 0 for one of before there were any

	Traceparent string // the span that recorded it; "" when it was not traced
}

// Sender is the organization as an envelope names it.
type Sender struct {
	ID   id.Organization `json:"id"`
	Slug string          `json:"slug"`
	Name string          `json:"name"`
}

// Envelope makes the request body, with its timestamps in zone. The same arguments give the
// same bytes, so that a retry sends the same message.
func Envelope(e Stored, from Sender, zone *time.Location) ([]byte, error) {
	data := e.Data
	if zone != time.UTC && zone.String() != "UTC" {
		var err error
		if data, err = inZone(e.Data, zone); err != nil {
			return nil, fmt.Errorf("event %s: %w", e.ID, err)
		}
	}
	return envelope(e, from, zone, data)
}

// envelope writes the members around data, which must be JSON already.
func envelope(e Stored, from Sender, zone *time.Location, data []byte) ([]byte, error) {
	sender, err := json.Marshal(from)
	if err != nil {
		return nil, err
	}
	out := make([]byte, 0, len(data)+len(sender)+160)
	out = append(out, `{"id":"`...)
	out = append(out, e.ID.String()...)
	out = append(out, `","type":"`...)
	out = append(out, e.Type...)
	out = append(out, `","created":"`...)
	out = append(out, clock.Format(e.CreatedAt, zone)...)
	out = append(out, `","organization":`...)
	out = append(out, sender...)
	out = append(out, `,"data":`...)
	out = append(out, data...)
	return append(out, '}'), nil
}

// timestamps are the members of data that hold a timestamp. No others are rewritten, because
// a person's name could look like a time.
var timestamps = map[string]bool{
	"joined_at": true, "last_login": true, "assigned_at": true, "due_date": true,
	"started_at": true, "completed_at": true, "released_at": true,
}

// inZone rewrites the timestamps of data. All other values and the order of members stay.
func inZone(data []byte, zone *time.Location) ([]byte, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var out bytes.Buffer
	if err := copyValue(dec, &out, "", zone); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

func copyValue(dec *json.Decoder, out *bytes.Buffer, key string, zone *time.Location) error {
	token, err := dec.Token()
	if err != nil {
		return err
	}
	if open, ok := token.(json.Delim); ok {
		return copyInside(dec, out, key, zone, byte(open))
	}
	if s, ok := token.(string); ok && timestamps[key] {
		if at, err := time.Parse(time.RFC3339, s); err == nil {
			token = clock.Format(at, zone)
		}
	}
	b, err := json.Marshal(token)
	out.Write(b)
	return err
}

// copyInside copies an object or a list whose opening bracket has been read.
func copyInside(dec *json.Decoder, out *bytes.Buffer, key string, zone *time.Location, open byte) error {
	out.WriteByte(open)
	for first := true; dec.More(); first = false {
		if !first {
			out.WriteByte(',')
		}
		if open == '{' {
			name, err := dec.Token()
			if err != nil {
				return err
			}
			key, _ = name.(string)
			b, _ := json.Marshal(key)
			out.Write(append(b, ':'))
		}
		if err := copyValue(dec, out, key, zone); err != nil {
			return err
		}
	}
	end, err := dec.Token()
	if err != nil {
		return err
	}
	fmt.Fprint(out, end)
	return nil
}
