package pages

import (
	"net/http"

	"github.com/registrar-dev/registrar/api-server/internal/edge"
	"github.com/registrar-dev/registrar/api-server/internal/signin"
	"github.com/registrar-dev/registrar/internal/kit/fault"
)

// failPage may offer a way on, which is a path of this site.
type failPage struct{ Title, Text, Way, WayOn string }

// Fail shows a page for an error; of what is internal it shows nothing.
func Fail(w http.ResponseWriter, r *http.Request, err error) {
	status, text := edge.Explain(w, r, err)
	page := failPage{Title: "Something went wrong", Text: "Please try again in a moment."}
	switch {
	case status == http.StatusNotFound:
		page = failPage{Title: "There is nothing here", Text: "The page does not exist, or it is not yours to see."}
	case fault.Has(err, signin.WrongRole):
		page = failPage{"Your role does not open this page", text, "/console/", "Back to the console"}
	case status == http.StatusForbidden:
		page = failPage{Title: "This was not accepted", Text: "The form did not come from this site. Please open the page again and repeat what you did."}
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
