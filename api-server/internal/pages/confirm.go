package pages

import (
	"net/http"
	"slices"
	"strings"

	"github.com/registrar-dev/registrar/api-server/internal/edge"
	"github.com/registrar-dev/registrar/api-server/internal/signin"
	"github.com/registrar-dev/registrar/internal/kit/fault"
)

// confirmField is the field of the password that Confirm asks for; no other form has one of its name.
const confirmField = "confirm_password"

// maxConfirmed bounds the form that waits for the password, in bytes.
const maxConfirmed = 64 << 10

type confirmPage struct {
	Person  *signin.Person
	Fields  []field // what was posted
	Back    string  // a page of this site
	Minutes int     // that a password counts
	Fault   string
}

type field struct{ Name, Value string }

// Confirm lets a form of a signed-in person pass to next if the person gave the password a short
// while ago (signin.Recent). Else it shows a page that asks for it and holds what was posted, and
// goes on with that. back is where the page leads who does not.
func (s *Server) Confirm(w http.ResponseWriter, r *http.Request, back string, next edge.Handler) error {
	if s.Sessions.GavePassword(r.Context()) {
		return next(w, r)
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxConfirmed)
	if err := r.ParseForm(); err != nil {
		return fault.New(fault.Invalid, "invalid_form", "the form is damaged or too large; please fill it in again")
	}
	page := confirmPage{Person: signin.SignedIn(r.Context()), Back: back, Minutes: int(signin.Recent.Minutes())}
	typed, given := r.PostForm[confirmField]
	r.PostForm.Del(confirmField)
	r.Form.Del(confirmField)
	for name, values := range r.PostForm {
		for _, value := range values {
			page.Fields = append(page.Fields, field{name, value})
		}
	}
	slices.SortStableFunc(page.Fields, func(a, b field) int { return strings.Compare(a.Name, b.Name) })
	if !given {
		return show(w, http.StatusOK, "confirm.html", page)
	}
	status, text, err := s.refusePassword(w, r, page.Person.Account, typed[0])
	if err != nil {
		return err
	}
	if page.Fault = text; text != "" {
		return show(w, status, "confirm.html", page)
	}
	s.Sessions.NotePassword(r.Context())
	return next(w, r)
}
