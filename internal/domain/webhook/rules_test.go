package webhook_test

import (
	"encoding/base64"
	"encoding/json"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/id"
)

// Reference: webhooks#delivery-and-retries.
func TestPausesBetweenTries(t *testing.T) {
	minutes := []int{1, 2, 4, 8, 16, 32, 60, 60, 60, 60, 60}
	for i, want := range minutes {
		got, ok := webhook.Pause(i + 1)
		if check.True(t, "ok", ok, "after try %d: %v, %v; want %d minutes", i+1, got, ok, want) {
			check.Equal(t, "got", got, time.Duration(want)*time.Minute, "after try %d: %v, %v; want %d minutes", i+1, got, ok, want)
		}
	}
	if _, ok := webhook.Pause(webhook.MaxTries); ok {
		t.Error("a thirteenth try is planned")
	}
}

// Reference: webhooks#delivery-and-retries.
func TestJudge(t *testing.T) {
	for status, want := range map[int]webhook.Verdict{
		200: webhook.Delivered, 201: webhook.Delivered, 204: webhook.Delivered, 299: webhook.Delivered,
		301: webhook.Retry, 302: webhook.Retry, 307: webhook.Retry, 308: webhook.Retry,
		408: webhook.Retry, 429: webhook.Retry, 500: webhook.Retry, 503: webhook.Retry, 599: webhook.Retry,
		400: webhook.Declined, 401: webhook.Declined, 403: webhook.Declined, 404: webhook.Declined, 410: webhook.Declined, 422: webhook.Declined,
	} {
		got, cause := webhook.Judge(status, false)
		if got != want {
			t.Errorf("%d is %s, want %s", status, got, want)
		}
		if got != webhook.Delivered {
			check.True(t, "the cause has a sentence", strings.HasSuffix(webhook.Explain(cause), "."), "%d: %q", status, webhook.Explain(cause))
		}
		if status == 401 || status == 403 {
			want = webhook.Retry
		}
		got, _ = webhook.Judge(status, true)
		check.Equal(t, "the verdict", got, want, "%d while two secrets sign", status)
	}
}

// Reference: webhooks#causes.
func TestEveryCauseIsDocumentedWithItsSentence(t *testing.T) {
	page, err := os.ReadFile("../../../docs/reference/webhooks.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "## Causes")
	table, _, _ = strings.Cut(table, "\n## ")
	if rows := strings.Count(table, "\n| `"); rows != len(webhook.Causes()) {
		t.Errorf("docs/reference/webhooks.md explains %d causes, and there are %d", rows, len(webhook.Causes()))
	}
	for _, cause := range webhook.Causes() {
		if row := "| `" + cause + "` | " + webhook.Explain(cause) + " |\n"; !strings.Contains(table, row) {
			t.Errorf("docs/reference/webhooks.md lacks the row %s", row)
		}
	}
}

// The digest was computed with Python's hmac module.
// Reference: webhooks#signature.
func TestSign(t *testing.T) {
	got := webhook.Sign(time.Unix(1700000000, 0), []byte(`{"id":"evt_1"}`), "whsec_test")
	want := "t=1700000000,v1=c89214b5b5da833daed6f0b8c5bb6bd58cea9022bd80ccc78230f3942d632925"
	if got != want {
		t.Fatalf("signature = %s, want %s", got, want)
	}
	two := webhook.Sign(time.Unix(1700000000, 0), []byte(`{"id":"evt_1"}`), "whsec_other", "whsec_test")
	check.True(t, "the second secret signs", strings.HasSuffix(two, want[len("t=1700000000"):]), "%s", two)
	check.Equal(t, "digests", strings.Count(two, ",v1="), 2, "%s", two)
}

// Reference: webhooks#standard-webhooks.
func TestSecretsAreThoseOfStandardWebhooks(t *testing.T) {
	for range 100 {
		secret := webhook.NewSecret()
		text, prefixed := strings.CutPrefix(secret, "whsec_")
		key, err := base64.StdEncoding.Strict().DecodeString(text)
		check.True(t, "it has the prefix", prefixed, "%s", secret)
		check.NoError(t, err, "%s", secret)
		check.Equal(t, "number of bytes", len(key), 32, "%s", secret)
		check.Equal(t, "the key", string(webhook.StandardKey(secret)), string(key), "%s", secret)
	}
	for _, secret := range []string{"whsec_chosen-by-somebody-else", "whsec_", "whsec_" + strings.Repeat("A", 43)} {
		check.Equal(t, "the key", string(webhook.StandardKey(secret)), secret, "of a secret that is no standard base64")
	}
}

func TestParseRetryAfter(t *testing.T) {
	now := time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		"": 0, "120": 2 * time.Minute, "-5": 0, "soon": 0, "99999999999": 0,
		"Sat, 21 Nov 2026 08:01:00 GMT": time.Minute, "Sat, 21 Nov 2026 07:00:00 GMT": 0,
	} {
		if got := webhook.ParseRetryAfter(value, now); got != want {
			t.Errorf("%q = %v, want %v", value, got, want)
		}
	}
}

// Reference: webhooks#switching-off, limits#webhook-limits.
func TestHealthSwitchesOffAtExactlyFifty(t *testing.T) {
	at := time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)
	h := webhook.Health{Allowance: 40}
	for round := range 2 { // the second after a success
		for n := 1; n <= 60; n++ {
			var off bool
			h, off = h.After(false, at.Add(time.Duration(n)*time.Second), h.Run())
			if off != (n == webhook.SwitchOffAfter) {
				t.Fatalf("round %d, failure %d: off = %v", round, n, off)
			}
			if h.Probing() != (n >= 5) {
				t.Fatalf("round %d, failure %d: probing = %v", round, n, h.Probing())
			}
		}
		h, _ = h.After(true, at, h.Run())
		check.Equal(check.Now(t), "h.Failures", h.Failures, 0, "a success leaves %+v", h)
		check.False(check.Now(t), "the endpoint is probing", h.Probing(), "a success leaves %+v", h)
		check.True(check.Now(t), "no probe is due", h.NextProbeAt.IsZero(), "a success leaves %+v", h)
	}
}

// Whatever is in flight when a receiver stumbles, in whatever order it fails, and whatever is handed out
// meanwhile: before a probe has failed, the URL stays on. From then on each failed probe counts.
// Reference: webhooks#switching-off.
func TestNoBurstSwitchesAURLOff(t *testing.T) {
	rounds := 3000
	if testing.Short() {
		rounds = 300
	}
	random := rand.New(rand.NewPCG(21, 4))
	at := time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)
	for round := range rounds {
		h := webhook.Health{Allowance: float64(1 + random.IntN(webhook.MaxAllowance)), Runs: random.IntN(3)}
		var flying []int // what Run was when they were handed out
		handOut := func() {
			for len(flying) < h.Limit() && !h.Probing() {
				flying = append(flying, h.Run())
			}
		}
		handOut()
		counted := 0
		for len(flying) > 0 {
			i := random.IntN(len(flying))
			run := flying[i]
			flying = append(flying[:i], flying[i+1:]...)
			var off bool
			before := h.Failures
			if h, off = h.After(false, at, run); off {
				t.Fatalf("round %d: one burst switches the URL off: %+v", round, h)
			}
			counted += h.Failures - before
			if run != 0 && h.Failures == before {
				t.Fatalf("round %d: a failure of what was handed out in trouble does not count: %+v", round, h)
			}
			if random.IntN(2) == 0 {
				handOut()
			}
		}
		if h.Failures != counted || h.Early > webhook.MaxEarly {
			t.Fatalf("round %d: %+v after %d counted", round, h, counted)
		}
		for n := h.Failures + 1; n <= webhook.SwitchOffAfter; n++ {
			var off bool
			if h, off = h.After(false, at, h.Run()); off != (n == webhook.SwitchOffAfter) || h.Failures != n {
				t.Fatalf("round %d, probe with failure %d: off = %v, %+v", round, n, off, h)
			}
		}
	}
}

func TestTheAllowanceStaysWithinItsBounds(t *testing.T) {
	h := webhook.Health{Allowance: 8}
	for range 300 {
		h, _ = h.After(true, time.Unix(0, 0), h.Run())
	}
	if h.Allowance != webhook.MaxAllowance {
		t.Fatalf("allowance = %v", h.Allowance)
	}
	for range 100 {
		h, _ = h.After(false, time.Unix(0, 0), h.Run())
	}
	if h.Allowance != 1 {
		t.Fatalf("allowance = %v, want 1", h.Allowance)
	}
}

func TestEnvelopeWritesTimestampsInTheURLsZone(t *testing.T) {
	kolkata, err := time.LoadLocation("Asia/Kolkata")
	if err != nil {
		t.Fatal(err)
	}
	event := id.Event(uuid.MustParse("0192f0c0000070008000000000000001"))
	stored := webhook.Stored{ID: event, Type: webhook.StudentJoined,
		CreatedAt: time.Date(2026, 11, 21, 18, 45, 0, 0, time.UTC),
		Data: []byte(`{"user_id":9007199254740993,"first_name":"2026-01-01T00:00:00+00:00","joined_at":"2026-11-21T18:45:00+00:00",` +
			`"last_login":null,"enrollments":[{"start_date":"2026-11-21","started_at":"2026-11-21T00:00:00+00:00","score":7.50}],"previous":{}}`)}
	from := webhook.Sender{ID: 3, Slug: "demo", Name: "Demo"}
	body, err := webhook.Envelope(stored, from, kolkata)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"id":"evt_0192f0c0000070008000000000000001","type":"student.joined","created":"2026-11-22T00:15:00+05:30",` +
		`"organization":{"id":3,"slug":"demo","name":"Demo"},"data":{"user_id":9007199254740993,` +
		`"first_name":"2026-01-01T00:00:00+00:00","joined_at":"2026-11-22T00:15:00+05:30","last_login":null,` +
		`"enrollments":[{"start_date":"2026-11-21","started_at":"2026-11-21T05:30:00+05:30","score":7.50}],"previous":{}}}`
	if string(body) != want {
		t.Fatalf("got  %s\nwant %s", body, want)
	}
	utc, err := webhook.Envelope(stored, from, time.UTC)
	check.NoError(check.Now(t), err, "in UTC: %s, %v", utc, err)
	check.True(check.Now(t), "the body is JSON", json.Valid(utc), "in UTC: %s, %v", utc, err)
	check.Contains(check.Now(t), "the body", string(utc), `"created":"2026-11-21T18:45:00+00:00"`, "in UTC: %s, %v", utc, err)
}
