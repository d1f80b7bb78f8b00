package monitor

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/registrar-dev/registrar/internal/kit/check"
)

func TestSignIn(t *testing.T) {
	page := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	for _, c := range []struct {
		name, password, user, given string
		want                        int
	}{
		{"right", "hush", userName, "hush", 418},
		{"wrong password", "hush", userName, "rush", 401},
		{"wrong name", "hush", "root", "hush", 401},
		{"nothing", "hush", "", "", 401},
		{"none is asked for", "", "", "", 418},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/asynq", nil)
			if c.user != "" {
				r.SetBasicAuth(c.user, c.given)
			}
			w := httptest.NewRecorder()
			SignIn(c.password, page).ServeHTTP(w, r)
			check.Equal(check.Now(t), "w.Code", w.Code, c.want, "%d %v", w.Code, w.Header())
			check.Equal(check.Now(t), "there is a WWW-Authenticate", w.Header().Get("WWW-Authenticate") != "", c.want == 401, "%d %v", w.Code, w.Header())
		})
	}
}
