package pages

import (
	"net/http"

	"github.com/registrar-dev/registrar/api-server/internal/edge"
)

type failPage struct{ Title, Text string }

// Fail shows a page for an error; of what is internal it shows nothing.
func Fail(w http.ResponseWriter, r *http.Request, err error) {
	status, text := edge.Explain(w, r, err)
	page := failPage{"Something went wrong", "Please try again in a moment."}
	switch {
	case status == http.StatusNotFound:
		page = failPage{"There is nothing here", "The page does not exist, or it is not yours to see."}
	case status == http.StatusForbidden:
		page = failPage{"This was not accepted", "The form did not come from this site. Please open the page again and repeat what you did."}
	case status < http.StatusInternalServerError:
		page.Text = text
	}
	_ = show(w, status, "failed.html", page) // it renders
}

// handle makes an http.HandlerFunc of h whose errors become pages.
func handle(h edge.Handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := h(w, r); err != nil {
			Fail(w, r, err)
		}
	}
}
