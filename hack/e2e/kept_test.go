package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"time"
)

// kept is what people and programs around a dumped database had in hand. It is stored beside the dump: with it a
// later version shows that everything goes on. Its secrets were made for the dump and open nothing else.
type kept struct {
	At       time.Time         `json:"at"`       // when the dump was made
	Public   string            `json:"public"`   // PUBLIC_URL
	Receiver string            `json:"receiver"` // the base of the webhook URLs
	Keyset   json.RawMessage   `json:"keyset"`
	Key      string            `json:"key"`     // the partner's, with full access
	Secrets  map[string]string `json:"secrets"` // of webhook URLs, by path
	Session  string            `json:"session"` // the cookie of an owner who is signed in
	Link     string            `json:"link"`    // of a mail, to set a password
	Consumer ltiConsumer       `json:"consumer"`
	Order    order             `json:"order"`
	Cursors  map[string]string `json:"cursors"` // of the second page, by list

	Partner  map[string]json.RawMessage `json:"partner"`  // what the partner API answered, by path
	Platform map[string]json.RawMessage `json:"platform"` // what the platform API answered, by path
}

type ltiConsumer struct {
	Key    string `json:"consumer_key"`
	Secret string `json:"shared_secret"`
	Link   string `json:"link"` // of an item
}

// order is a call with an Idempotency-Key, and its answer.
type order struct {
	Key, Body, Answer string
	Status            int
}

func (h *house) newKept() kept {
	return kept{Secrets: map[string]string{"/hook": h.secrets[0]}, Cursors: map[string]string{},
		Partner: map[string]json.RawMessage{}, Platform: map[string]json.RawMessage{}}
}

// downPath is a webhook URL that fails as long as the dump is being made.
const downPath = "/down"

// fillFailing adds a webhook URL whose deliveries wait for their next attempt.
func (h *house) fillFailing(k *kept) {
	h.t.Helper()
	h.receiver.SetRespond(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == downPath {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	var made struct {
		Secret string `json:"signing_secret"`
	}
	h.platform(http.MethodPost, "organizations/demo/webhook-endpoints", fmt.Sprintf(`{"url": %q}`, h.receiver.URL(downPath)), &made)
	h.secrets = append(h.secrets, made.Secret)
	h.receiver.Trust(downPath, made.Secret)
	k.Secrets[downPath] = made.Secret
}

// Roster runs of the dump: one that was applied and may be undone, and one that is held.
const (
	sisSource = "sis"
	sisHeader = "person_external_id,email,first_name,last_name\n"
	sisPeople = 8
)

func sisRow(i int) string {
	return fmt.Sprintf("x%d,x%d@sis-institute.org,Given%d,Family\n", i, i, i)
}

func (h *house) fillHeld() {
	h.t.Helper()
	h.platform(http.MethodPut, "organizations/demo/roster-sources/"+sisSource, `{"authoritative_enabled": true}`, nil)
	all := sisHeader
	for i := range sisPeople {
		all += sisRow(i)
	}
	for _, file := range []struct {
		rows string
		want int
	}{{all, http.StatusOK}, {sisHeader + sisRow(0), http.StatusAccepted}} {
		status, text, _ := h.exchange(http.MethodPost, h.settings.PublicURL()+"/api/v1/roster/import/", file.rows, "X-API-Key", h.key,
			"Content-Type", "text/csv", "X-Roster-Source", sisSource, "X-Roster-Mode", "authoritative_snapshot")
		if status != file.want {
			h.t.Fatalf("the import: %d %s, want %d", status, text, file.want)
		}
	}
}

// exchange makes a request with such headers, whose names and values take turns, and follows no redirect.
func (h *house) exchange(method, address, body string, headers ...string) (int, string, http.Header) {
	h.t.Helper()
	req, err := http.NewRequestWithContext(h.t.Context(), method, address, strings.NewReader(body))
	must(h.t, err)
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	client := &http.Client{Timeout: limit, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	must(h.t, err)
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	must(h.t, err)
	return resp.StatusCode, string(text), resp.Header
}

// place makes the call and notes its answer.
func (h *house) place(o order) order {
	h.t.Helper()
	o.Status, o.Answer, _ = h.exchange(http.MethodPost, h.settings.PublicURL()+"/api/v1/provision/student/", o.Body,
		"X-API-Key", h.key, "Content-Type", "application/json", "Idempotency-Key", o.Key)
	return o
}

// signInAs gives the cookies of somebody who signs in.
func (h *house) signInAs(name, password string) string {
	h.t.Helper()
	status, page, header := h.exchange(http.MethodPost, h.settings.PublicURL()+"/sign-in", url.Values{"name": {name}, "password": {password}}.Encode(),
		"Content-Type", "application/x-www-form-urlencoded", "Sec-Fetch-Site", "same-origin")
	if status != http.StatusSeeOther {
		h.t.Fatalf("%s signs in: %d %s", name, status, page)
	}
	var cookies []string
	for _, c := range (&http.Response{Header: header}).Cookies() {
		cookies = append(cookies, c.Name+"="+c.Value)
	}
	return strings.Join(cookies, "; ")
}

// Lists of the partner API, which also give cursors, and what else is read before the dump and after its upgrade.
var (
	keptLists    = []string{"students/", "assignments/", "results/"}
	keptPartner  = []string{"organization/", "courses/", "catalog/", "students/", "assignments/", "results/", "students/?email=asha@north-institute.org"}
	keptPlatform = []string{"organizations/demo/webhook-endpoints", "organizations/demo/roster-runs"}
)

var mailedLink = regexp.MustCompile(`/set-password/[A-Za-z0-9_-]+/?`)

// keep gathers what is in hand before the work that stays pending.
func (h *house) keep(k *kept) {
	h.t.Helper()
	keyset, err := os.ReadFile(h.settings.KeysetFile)
	must(h.t, err)
	k.At, k.Public, k.Receiver, k.Keyset, k.Key = time.Now().UTC(), h.settings.PublicURL(), h.receiver.URL(""), keyset, h.key
	k.Session = h.signInAs("olive@north-institute.org", filledPassword)
	mail := strings.ReplaceAll(string(h.awaitMail("binod@north-institute.org", 1)[0].Data), "=\r\n", "")
	if k.Link = mailedLink.FindString(mail); k.Link == "" {
		h.t.Fatalf("no link in:\n%s", mail)
	}
	k.Order = h.place(order{Key: "order-3", Body: `{"email": "esha@north-institute.org", "first_name": "Esha", "courses": "ielts"}`})
	for _, list := range keptLists {
		var page struct {
			Next *string `json:"next_cursor"`
		}
		h.partnerGet(list+"?limit=1", &page)
		if page.Next == nil {
			h.t.Fatalf("%s has one page", list)
		}
		k.Cursors[list] = *page.Next
	}
}

// keepAnswers reads what a later version must still say.
func (h *house) keepAnswers(k *kept) {
	h.t.Helper()
	day := k.At.Add(-time.Hour).In(time.FixedZone("Asia/Kolkata", 19800)).Format(time.DateOnly)
	day = "?from=" + day + "&to=" + day
	for _, path := range append([]string{"activity/daily/" + day, "progress/daily/" + day}, keptPartner...) {
		var answer json.RawMessage
		h.partnerGet(path, &answer)
		k.Partner[path] = answer
	}
	for _, path := range keptPlatform {
		var answer json.RawMessage
		h.platform(http.MethodGet, path, "", &answer)
		k.Platform[path] = answer
	}
}
