package e2e

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/registrar-dev/registrar/hack/stack"
	"github.com/registrar-dev/registrar/internal/kit/check"
)

// Clients that send slowly, or nothing, or much, are in nobody else's way: whoever calls beside them is
// served, by API, pages and console, and no failure is counted. How fast it is served is the bench's.
func TestSlowSendersAreInNobodysWay(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	address := fmt.Sprintf("127.0.0.1:%d", h.settings.Ports.API)
	for _, attack := range stack.Attacks {
		for _, crowd := range []struct{ addresses, connections int }{{1, 600}, {200, 4}} {
			t.Run(fmt.Sprintf("%s from %d", attack.Name, crowd.addresses), func(t *testing.T) {
				end := attack.Begin(t.Context(), address, crowd.addresses, crowd.connections)
				defer end()
				h.wantServed(t)
			})
		}
	}
	for line := range strings.SplitSeq(h.metrics(h.settings.Ports.APIPrivate), "\n") {
		if strings.HasPrefix(line, "registrar_http_requests_total{") {
			check.Lacks(t, "the counters", line, `status="5`, "nobody failed")
		}
	}
}

// wantServed calls like people and programs do, some of them over connections of their own.
func (h *house) wantServed(t *testing.T) {
	t.Helper()
	fresh := &http.Transport{DisableKeepAlives: true}
	for n, client := range []*http.Client{web, {Transport: fresh, Timeout: longLimit}} {
		for i := range 20 {
			for _, c := range []struct {
				method, path, contentType, body string
				want                            int
			}{
				{"GET", "/api/v1/ping/", "", "", 200},
				{"POST", "/api/v1/provision/student/", "application/json",
					`{"email": "asha@north-institute.org", "first_name": "Asha", "courses": ["ielts"]}`, 0},
				{"GET", "/sign-in/", "", "", 200},
				{"POST", "/forgot-password/", "application/x-www-form-urlencoded", fmt.Sprintf("email=nobody-%d-%d@north-institute.org", n, i), 0},
				{"GET", "/console/", "", "", 0},
			} {
				got, text := h.as(t, client, c.method, c.path, c.contentType, c.body)
				check.OneOf(check.Now(t), "status", got, []int{200, 201, 429}, "%s %s: %.300s", c.method, c.path, text)
				if c.want != 0 {
					check.Equal(t, "status", got, c.want, "%s %s: %.300s", c.method, c.path, text)
				}
			}
		}
	}
	csv := "person_source_id,first_name,last_name,email,role\n1,Asha,Rao,asha-1@north-institute.org,student\n"
	got, text := h.as(t, web, "POST", "/api/v1/roster/import/", "text/csv", csv)
	check.OneOf(t, "status of an import", got, []int{200, 400}, "%.300s", text)
}

func (h *house) as(t *testing.T, client *http.Client, method, path, contentType, body string) (int, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, h.settings.PublicURL()+path, strings.NewReader(body))
	must(t, err)
	if strings.HasPrefix(path, "/api/") {
		req.Header.Set("X-API-Key", h.key)
	}
	req.Header.Set("Content-Type", contentType)
	res, err := client.Do(req)
	must(t, err)
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	must(t, err)
	return res.StatusCode, string(text)
}
