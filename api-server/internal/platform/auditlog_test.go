package platform_test

import (
	"encoding/json"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/api-server/internal/apitest"
	"github.com/registrar-dev/registrar/api-server/internal/server"
	"github.com/registrar-dev/registrar/internal/flow/wire"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/check"
)

func lines(t *testing.T, a *apitest.Answer) (entries []wire.AuditEntry) {
	t.Helper()
	a.Want(t, http.StatusOK)
	for line := range strings.Lines(string(a.Body)) {
		var e wire.AuditEntry
		check.NoError(check.Now(t), json.Unmarshal([]byte(line), &e), "%s", line)
		entries = append(entries, e)
	}
	return entries
}

func TestTheAuditLogIsExportedAsJSONLines(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	e.Organization(t, "north")
	e.Advance(24 * time.Hour)
	e.Organization(t, "south")
	check.Equal(t, "entries of the first day", len(lines(t, e.Platform.Get(t, "audit-log"))), 3, "the second day's are not settled yet")
	e.Advance(2 * time.Minute)
	all := lines(t, e.Platform.Get(t, "audit-log"))
	check.Equal(check.Now(t), "entries", len(all), 6, "%+v", all)
	for i, entry := range all {
		check.True(t, "it is about an organization", entry.Organization != nil, "%+v", entry)
		check.Equal(t, "the kind", entry.Actor.Kind, audit.PlatformKey, "%+v", entry)
		check.True(t, "ids rise", i == 0 || all[i-1].ID < entry.ID, "%+v", entry)
	}
	for query, want := range map[string]int{
		"?organization=south":                        3,
		"?since=2026-11-22":                          3,
		"?until=2026-11-21":                          3,
		"?since=2026-11-21&until=2026-11-22":         6,
		"?since=2026-11-23":                          0,
		"?limit=2":                                   2,
		"?after=" + strconv.FormatInt(all[4].ID, 10): 1,
		"?organization=north&after=" + strconv.FormatInt(all[1].ID, 10): 1,
	} {
		check.Equal(t, "entries", len(lines(t, e.Platform.Get(t, "audit-log"+query))), want, "%s", query)
	}
	e.Platform.Get(t, "audit-log?organization=east").WantFault(t, http.StatusNotFound, "not_found", "")
	e.Platform.Freely().Get(t, "audit-log?since=yesterday").WantFault(t, http.StatusBadRequest, "not_a_date", "since")
	e.Platform.Freely().Get(t, "audit-log?limit=0").WantFault(t, http.StatusBadRequest, "out_of_range", "limit")
}

// refusals are the actions and targets of what was refused, with how often.
func refusals(t *testing.T, e *apitest.Env) map[string]int {
	t.Helper()
	check.NoError(check.Now(t), e.Refusals.Flush(t.Context()), "what was refused")
	e.Advance(2 * time.Minute)
	found := map[string]int{}
	for _, entry := range lines(t, e.Platform.Get(t, "audit-log")) {
		if strings.HasPrefix(entry.Action, "refused") {
			organization := "none"
			if entry.Organization != nil {
				organization = "one"
			}
			check.True(t, "it has an address", entry.Address != nil && *entry.Address == "127.0.0.1", "%+v", entry)
			found[string(entry.Actor.Kind)+" "+organization+" "+entry.Action+": "+entry.Target] = entry.Times
		}
	}
	return found
}

func TestWhatIsRefusedIsInTheAuditLog(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	north := e.Organization(t, "north")
	wrong := "reg_" + strings.Repeat("x", 43)
	for range 3 {
		e.Partner(wrong).Get(t, "ping/").Want(t, http.StatusUnauthorized)
	}
	e.Partner("my password").Get(t, "ping/").Want(t, http.StatusUnauthorized)
	north.ReadOnly.Post(t, "provision/student/", `{}`).Want(t, http.StatusForbidden)
	e.Platform.With("Authorization", "Bearer wrong").Get(t, "audit-log").Want(t, http.StatusUnauthorized)
	found := refusals(t, e)
	for what, times := range map[string]int{
		"unknown none refused API key: reg_xxxxxxxx…":     3,
		"unknown none refused API key: ":                  1,
		"partner_key one refused API call: read_only_key": 1,
		"unknown none refused platform key: ":             1,
	} {
		check.Equal(t, what, found[what], times, "%v", found)
	}
	check.Equal(t, "kinds", len(found), 4, "%v", found)
}

func TestSignInsAreInTheAuditLog(t *testing.T) {
	t.Parallel()
	// Without https the session's cookie may travel over the test's plain HTTP.
	e := apitest.New(t, func(d *server.Deps) { d.PublicURL = "http://registrar.test" })
	north := e.Organization(t, "north")
	const password = "plum-orbit-lantern-42"
	e.Platform.Put(t, "organizations/north/staff/olive@north-institute.org", map[string]any{"first_name": "Olive", "role": "owner", "password": password}).
		Want(t, http.StatusCreated)
	north.Full.Post(t, "provision/student/", map[string]any{"email": "asha@north-institute.org", "first_name": "Asha", "password_mode": "set", "password": password}).
		Want(t, http.StatusCreated)
	signIn := func(name, password string) int {
		t.Helper()
		jar, err := cookiejar.New(nil)
		check.NoError(check.Now(t), err, "a jar")
		browser := &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, e.URL()+"/sign-in/",
			strings.NewReader(url.Values{"name": {name}, "password": {password}}.Encode()))
		check.NoError(check.Now(t), err, "a request")
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Sec-Fetch-Site", "same-origin")
		resp, err := browser.Do(r)
		check.NoError(check.Now(t), err, "signing in")
		_ = resp.Body.Close()
		return resp.StatusCode
	}
	for _, name := range []string{"olive@north-institute.org", "asha@north-institute.org"} {
		check.Equal(t, "the status", signIn(name, password), http.StatusSeeOther, "%s", name)
		check.Equal(t, "the status", signIn(name, "wrong"), http.StatusUnauthorized, "%s", name)
	}
	check.Equal(t, "the status", signIn("plum-orbit-lantern-43", "wrong"), http.StatusUnauthorized, "a password in the wrong field")
	found := refusals(t, e)
	check.Equal(t, "refusals", len(found), 3, "%v", found)
	check.Equal(t, "of no account", found["unknown none refused sign-in: wrong password: no account"], 1, "%v", found)
	var by []string
	for _, entry := range lines(t, e.Platform.Get(t, "audit-log")) {
		if entry.Action == "signed in" {
			by = append(by, string(entry.Actor.Kind)+" "+entry.Actor.Name)
			check.Equal(t, "it is about an organization", entry.Organization != nil, entry.Actor.Kind == audit.Staff, "%+v", entry)
			check.True(t, "it has an address", entry.Address != nil, "%+v", entry)
		}
	}
	check.Slices(t, "sign-ins", by, []string{"staff olive@north-institute.org", "student student"}, "in the order in which they happened")
}
