package verify_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/webhook-sender/verify"
)

const secret = "whsec_c2VjcmV0LW9mLXRoZS1kZW1v"

func sign(secret string, at time.Time, body string) string {
	t := fmt.Sprint(at.Unix())
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(t + "." + body))
	return "t=" + t + ",v1=" + hex.EncodeToString(mac.Sum(nil))
}

// Reference: webhooks#signature.
func TestSignature(t *testing.T) {
	t.Parallel()
	now, body := time.Unix(1_800_000_000, 0), `{"id":"evt_1"}`
	good, other := sign(secret, now, body), strings.Repeat("5f", 32)
	for name, c := range map[string]struct {
		header, body string
		secrets      []string
		want         error
	}{
		"right":                     {good, body, []string{secret}, nil},
		"right, with spaces":        {strings.Replace(good, ",", ", ", 1), body, []string{secret}, nil},
		"the second secret":         {good, body, []string{"whsec_new", secret}, nil},
		"two digests, the first":    {good + ",v1=" + other, body, []string{secret}, nil},
		"two digests, the second":   {strings.Replace(good, ",v1=", ",v1="+other+",v1=", 1), body, []string{secret}, nil},
		"two digests, none":         {"t=1800000000,v1=" + other + ",v1=" + other, body, []string{secret}, verify.ErrWrong},
		"two digests, one broken":   {good + ",v1=00", body, []string{secret}, verify.ErrMissing},
		"four minutes old":          {sign(secret, now.Add(-4*time.Minute), body), body, []string{secret}, nil},
		"six minutes old":           {sign(secret, now.Add(-6*time.Minute), body), body, []string{secret}, verify.ErrStale},
		"six minutes ahead":         {sign(secret, now.Add(6*time.Minute), body), body, []string{secret}, verify.ErrStale},
		"another secret":            {good, body, []string{"whsec_other"}, verify.ErrWrong},
		"no secret":                 {good, body, nil, verify.ErrWrong},
		"another body":              {good, body + " ", []string{secret}, verify.ErrWrong},
		"another time":              {strings.Replace(good, "t=1800000000", "t=1800000001", 1), body, []string{secret}, verify.ErrWrong},
		"nothing":                   {"", body, []string{secret}, verify.ErrMissing},
		"no digest":                 {"t=1800000000", body, []string{secret}, verify.ErrMissing},
		"half a digest":             {good[:len(good)-32], body, []string{secret}, verify.ErrMissing},
		"a digest that is no hex":   {"t=1800000000,v1=" + strings.Repeat("z", 64), body, []string{secret}, verify.ErrMissing},
		"a time that is no number":  {strings.Replace(good, "t=1", "t=x", 1), body, []string{secret}, verify.ErrMissing},
		"an empty digest for empty": {"t=1800000000,v1=", body, []string{secret}, verify.ErrMissing},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := verify.Signature(c.header, []byte(c.body), now, c.secrets...); !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
	}
}

// Reference: webhooks#standard-webhooks. The digests are those of the published libraries, which
// hack/e2e compares with whole deliveries.
func TestStandard(t *testing.T) {
	t.Parallel()
	now, body := time.Unix(1_800_000_000, 0), `{"id":"evt_1"}`
	with := func(key []byte, text string) string {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(text))
		return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	}
	const at, chosen = "1800000000", "whsec_chosen-by-somebody-else"
	decoded, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	good := with(decoded, "evt_1."+at+"."+body)
	for name, c := range map[string]struct {
		id, at, signatures, body string
		secrets                  []string
		want                     error
	}{
		"right":                           {"evt_1", at, good, body, []string{secret}, nil},
		"the second signature":            {"evt_1", at, "v1a,abc v1,eHg= " + good, body, []string{secret}, nil},
		"the second secret":               {"evt_1", at, good, body, []string{"whsec_bmV3", secret}, nil},
		"a secret that is no base64":      {"evt_1", at, with([]byte(chosen), "evt_1."+at+"."+body), body, []string{chosen}, nil},
		"the key of the other header":     {"evt_1", at, with([]byte(secret), "evt_1."+at+"."+body), body, []string{secret}, verify.ErrWrong},
		"another event":                   {"evt_2", at, good, body, []string{secret}, verify.ErrWrong},
		"another body":                    {"evt_1", at, good, body + " ", []string{secret}, verify.ErrWrong},
		"another time":                    {"evt_1", "1800000001", good, body, []string{secret}, verify.ErrWrong},
		"another secret":                  {"evt_1", at, good, body, []string{"whsec_bmV3"}, verify.ErrWrong},
		"another version":                 {"evt_1", at, "v2" + good[2:], body, []string{secret}, verify.ErrWrong},
		"six minutes old":                 {"evt_1", "1799999640", with(decoded, "evt_1.1799999640."+body), body, []string{secret}, verify.ErrStale},
		"no id":                           {"", at, good, body, []string{secret}, verify.ErrMissing},
		"no time":                         {"evt_1", "", good, body, []string{secret}, verify.ErrMissing},
		"no signature":                    {"evt_1", at, "", body, []string{secret}, verify.ErrMissing},
		"an empty secret is no empty key": {"evt_1", at, with(nil, "evt_1."+at+"."+body), body, []string{"whsec_"}, verify.ErrWrong},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := verify.Standard(c.id, c.at, c.signatures, []byte(c.body), now, c.secrets...); !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
	}
}

func TestARequestWithTheStandardHeadersAloneIsTaken(t *testing.T) {
	t.Parallel()
	body, at := `{"id":"evt_1","created":"2026-11-21T10:00:00+00:00"}`, fmt.Sprint(time.Now().Unix())
	key, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte("evt_1." + at + "." + body))
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
	r.Header.Set("webhook-id", "evt_1")
	r.Header.Set("webhook-timestamp", at)
	r.Header.Set("webhook-signature", "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	if e, err := verify.Request(r, secret); err != nil || e.ID != "evt_1" {
		t.Errorf("%+v, %v", e, err)
	}
	r.Header.Set(verify.HeaderSignature, sign("whsec_other", time.Now(), body))
	r.Body = io.NopCloser(strings.NewReader(body))
	if _, err := verify.Request(r, secret); !errors.Is(err, verify.ErrWrong) {
		t.Errorf("a wrong signature beside a right one: %v", err)
	}
}

func post(h http.Handler, body, signature string) int {
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
	r.Header.Set(verify.HeaderSignature, signature)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code
}

func TestAnEventIsTakenOnceAndARetryAfterAFailureIsTaken(t *testing.T) {
	t.Parallel()
	var taken []string
	fail := true
	h := verify.Handler(verify.NewMemory(2), func(e verify.Event) error {
		if fail {
			return errors.New("no room")
		}
		taken = append(taken, e.ID)
		return nil
	}, secret)
	send := func(id string) int {
		body := fmt.Sprintf(`{"id":%q,"type":"ping","created":"2026-11-21T10:00:00+00:00","data":{}}`, id)
		return post(h, body, sign(secret, time.Now(), body))
	}
	if got := send("evt_1"); got != 500 {
		t.Errorf("a failure answers %d", got)
	}
	fail = false
	for _, id := range []string{"evt_1", "evt_1", "evt_2", "evt_3", "evt_2"} {
		if got := send(id); got != 200 {
			t.Errorf("%s: %d", id, got)
		}
	}
	if got := strings.Join(taken, " "); got != "evt_1 evt_2 evt_3" {
		t.Errorf("taken: %s", got)
	}
	if send("evt_1"); len(taken) != 4 {
		t.Error("what fell out of the memory is new again")
	}
}

func TestTheHandlerRefuses(t *testing.T) {
	t.Parallel()
	h := verify.Handler(verify.NewMemory(10), func(verify.Event) error { t.Error("an unsigned event was taken"); return nil }, secret)
	if got := post(h, "{}", ""); got != 400 {
		t.Errorf("unsigned: %d", got)
	}
	if got := post(h, "{}", sign(secret, time.Now().Add(-time.Hour), "{}")); got != 400 {
		t.Errorf("stale: %d", got)
	}
	if got := post(h, "{}", sign("whsec_other", time.Now(), "{}")); got != 401 {
		t.Errorf("wrong: %d", got)
	}
	if got := post(h, "no json", sign(secret, time.Now(), "no json")); got != 400 {
		t.Errorf("signed, and no JSON: %d", got)
	}
	w := httptest.NewRecorder()
	if h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil)); w.Code != 405 {
		t.Errorf("GET: %d", w.Code)
	}
}

func ExampleHandler() {
	h := verify.Handler(verify.NewMemory(10_000), func(e verify.Event) error {
		fmt.Println(e.Type, string(e.Data))
		return nil
	}, secret)
	body := `{"id":"evt_1","type":"result.final","created":"2026-11-21T10:00:00+00:00","organization":{"id":1,"slug":"north","name":"North"},"data":{"id":"test:7"}}`
	fmt.Println(post(h, body, sign(secret, time.Now(), body)))
	fmt.Println(post(h, body, sign(secret, time.Now(), body))) // a retry
	// Output:
	// result.final {"id":"test:7"}
	// 200
	// 200
}

func ExampleSignature() {
	body := []byte(`{"id":"evt_1"}`)
	header := sign(secret, time.Now(), string(body)) // r.Header.Get(verify.HeaderSignature)
	fmt.Println(verify.Signature(header, body, time.Now(), secret))
	fmt.Println(verify.Signature(header, []byte(`{"id":"evt_2"}`), time.Now(), secret))
	// Output:
	// <nil>
	// the signature does not fit the body and the secret
}
