package logtest_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/obs/logtest"
)

// judge keeps what Check and Errors say instead of failing.
type judge struct {
	testing.TB
	said []string
}

func (*judge) Helper()           {}
func (j *judge) Log(args ...any) { j.said = append(j.said, fmt.Sprint(args...)) }
func (j *judge) Errorf(format string, args ...any) {
	j.said = append(j.said, fmt.Sprintf(format, args...))
}

func TestASecretInALogIsFound(t *testing.T) {
	t.Parallel()
	for name, line := range map[string]string{
		"known":          `{"msg":"sign-in","with":"plum-orbit-lantern"}`,
		"API key":        `{"key":"reg_2tjovVqa4btEl40scMAmT"}`,
		"signing secret": `sending with whsec_c2VjcmV0c2VjcmV0c2VjcmV0`,
		"link":           `{"path":"/set-password/4vYp2mXcQn8sLw0aBz7Rt/"}`,
		"hash":           `$argon2id$v=19$m=19456`,
		"header":         `Authorization: Bearer abcdefghijklmnopqrst`,
	} {
		j := &judge{TB: t}
		logtest.Check(j, "a line\n"+line+"\nanother\n", "plum-orbit-lantern")
		if check.Equal(t, "number of complaints", len(j.said), 1, "%s: %q", name, j.said) &&
			check.Contains(t, "the first complaint", j.said[0], "<SECRET>", "%s: %q", name, j.said) {
			check.Lacks(t, "the first complaint", j.said[0], "plum-orbit", "%s: %q", name, j.said)
		}
	}
	j := &judge{TB: t}
	logtest.Check(j, `{"path":"/set-password/{token}","api_key":7,"event":"evt_019abc","note":"secret"}`, "", "secret")
	if len(j.said) > 0 {
		t.Errorf("nothing secret is found: %q", j.said)
	}
}

func TestErrorsAreShownWithoutSecrets(t *testing.T) {
	t.Parallel()
	j := &judge{TB: t}
	logtest.Errors(j, `{"level":"INFO","msg":"fine"}`+"\n"+`{"level":"ERROR","msg":"broken","with":"plum-orbit-lantern"}`+"\n", "plum-orbit-lantern")
	check.Slices(t, "what is shown", j.said, []string{`{"level":"ERROR","msg":"broken","with":"<SECRET>"}`}, "")
}

func TestSecretsAreRememberedAsTheyPass(t *testing.T) {
	t.Parallel()
	var secrets logtest.Secrets
	var arrived string
	h := secrets.Watch(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		arrived = r.Form.Get("password")
		http.SetCookie(w, &http.Cookie{Name: "session", Value: "id-of-a-session"})
	}))
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/sign-in", strings.NewReader("name=ana&password=plum-orbit-lantern"))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Authorization", "Bearer key-of-the-platform")
	h.ServeHTTP(httptest.NewRecorder(), r)
	if arrived != "plum-orbit-lantern" {
		t.Errorf("the handler got %q", arrived)
	}
	seen := strings.Join(secrets.Seen(), " ")
	for _, want := range []string{"plum-orbit-lantern", "id-of-a-session", "key-of-the-platform"} {
		if !strings.Contains(seen, want) {
			t.Errorf("%s is not remembered", want)
		}
	}
}
