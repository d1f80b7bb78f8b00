package pages

import (
	"net/http"
	"strings"

	"github.com/registrar-dev/registrar/api-server/internal/edge"
	"github.com/registrar-dev/registrar/api-server/internal/signin"
	"github.com/registrar-dev/registrar/internal/kit/fault"
)

// failPage offers a way on, which is a path of this site.
type failPage struct{ Title, Text, Way, WayOn string }

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
	page := failPage{"Something went wrong", "Please try again in a moment.", "/", "Back to the start"}
	switch {
	case fault.Has(err, signin.NeedsMailbox):
		_ = show(w, status, "needs-mailbox.html", nil) // it renders
		return
	case fault.Has(err, signin.NeedsFactor):
		page = failPage{"Set up a second factor", "Your institute opens its pages only to staff who show more than a password. " +
			"Add an authenticator app or a passkey; it takes a minute.", methodsPath, "Set it up now"}
	case fault.Has(err, signin.NeedsProvider):
		page = failPage{"Sign in at your institute", "Your institute lets its staff in only over its own sign-in.", "/sign-in/with/" + text + "/", "Sign in there"}
	case status == http.StatusNotFound:
		page.Title, page.Text = "There is nothing here", "The page does not exist, or it is not yours to see."
	case fault.Has(err, signin.WrongRole):
		page = failPage{"Your role does not open this page", text, "/console/", "Back to the console"}
	case status == http.StatusForbidden:
		page.Title, page.Text = "This was not accepted", "The form did not come from this site. Please open the page again and repeat what you did."
	case status < http.StatusInternalServerError:
		page.Title, page.Text = "This was not done", text
	}
	_ = show(w, status, "failed.html", page) // it renders
}

// Handle makes an http.HandlerFunc of h whose errors become pages.
func Handle(h edge.Handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := h(w, r); err != nil {
			Fail(w, r, err)
		}
	}
}
