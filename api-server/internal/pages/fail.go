package pages

import (
	"net/http"
	"strings"

	"github.com/registrar-dev/registrar/api-server/internal/edge"
	"github.com/registrar-dev/registrar/api-server/internal/signin"
	"github.com/registrar-dev/registrar/internal/kit/fault"
)

// failPage offers a way on, which is a path of this site. Its Detail is in English.
type failPage struct{ Title, Text, Detail, Way, WayOn string }

// Stray answers a browser that asked for what is no page, or could not be answered at all.
// It reports false, and does nothing, for callers of an API.
func Stray(w http.ResponseWriter, r *http.Request, err error) bool {
	if strings.HasPrefix(r.URL.Path, "/api/") || !strings.Contains(r.Header.Get("Accept"), "text/html") {
		return false
	}
	setHeaders(w.Header())
	Fail(w, r, err)
	return true
}

// Fail shows a page for an error; of what is internal it shows nothing.
func Fail(w http.ResponseWriter, r *http.Request, err error) {
	status, text := edge.Explain(w, r, err)
	if status == edge.StatusGone {
		w.WriteHeader(status)
		return
	}
	t := textsOf(r)
	page := failPage{Title: t.T("failed.title"), Text: t.T("failed.text"), Way: "/", WayOn: t.T("nav.start")}
	switch {
	case fault.Has(err, signin.NeedsMailbox):
		_ = show(w, r, status, "needs-mailbox.html", nil) // it renders
		return
	case fault.Has(err, signin.NeedsFactor):
		page = failPage{Title: t.T("failed.factor_title"), Text: t.T("failed.factor_text"), Way: methodsPath, WayOn: t.T("failed.factor_way")}
	case fault.Has(err, signin.NeedsProvider):
		page = failPage{Title: t.T("sign_in.institute"), Text: t.T("failed.provider_text"), Way: "/sign-in/with/" + text + "/", WayOn: t.T("failed.provider_way")}
	case status == http.StatusNotFound:
		page.Title, page.Text = t.T("failed.nothing_title"), t.T("failed.nothing_text")
	case fault.Has(err, signin.WrongRole):
		page = failPage{Title: t.T("failed.role_title"), Detail: text, Way: "/console/", WayOn: t.T("failed.role_way")}
	case status == http.StatusForbidden:
		page.Title, page.Text = t.T("failed.forbidden_title"), t.T("failed.forbidden_text")
	case status < http.StatusInternalServerError:
		page.Title, page.Text, page.Detail = t.T("failed.not_done"), "", text
		if known := explained(t, err); known != text {
			page.Text, page.Detail = known, ""
		}
	}
	_ = show(w, r, status, "failed.html", page) // it renders
}

// Handle makes an http.HandlerFunc of h whose errors become pages.
func Handle(h edge.Handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := h(w, r); err != nil {
			Fail(w, r, err)
		}
	}
}
