package pages

import (
	"net/http"
	"slices"
	"strings"

	"github.com/registrar-dev/registrar/api-server/internal/edge"
	"github.com/registrar-dev/registrar/api-server/internal/signin"
	"github.com/registrar-dev/registrar/internal/domain/factor"
	"github.com/registrar-dev/registrar/internal/kit/fault"
)

// The fields that Confirm asks for; no other form has any of their names.
const (
	confirmField  = "confirm_password"
	confirmCode   = "confirm_code"
	confirmAnswer = "confirm_passkey"
)

// maxConfirmed bounds the form that waits for the password, in bytes.
const maxConfirmed = 64 << 10

type confirmPage struct {
	Person  *signin.Person
	Fields  []field // what was posted
	Back    string  // a page of this site
	Minutes int     // that a confirmation counts
	Code    bool    // the password needs a code beside it
	App     bool    // of an authenticator app; else a recovery code
	Passkey string  // the options of a question to the browser's passkeys; "": there are none
	Fault   string

	Institute string // the slug of the organization at whose provider the person signed in and can confirm; "" for none
}

type field struct{ Name, Value string }

// Confirm lets a form of a signed-in person pass to next if the person has shown who they are a short
// while ago (signin.Recent): by the password and, where they have one, a second factor, or by a passkey.
// Else it shows a page that asks for it and holds what was posted, and goes on with that. back is where
// the page leads who does not.
func (s *Server) Confirm(w http.ResponseWriter, r *http.Request, back string, next edge.Handler) error {
	if s.Sessions.GavePassword(r.Context()) {
		return next(w, r)
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxConfirmed)
	if err := r.ParseForm(); err != nil {
		return fault.New(fault.Invalid, "invalid_form", "the form is damaged or too large; please fill it in again")
	}
	page := confirmPage{Person: signin.SignedIn(r.Context()), Back: back, Minutes: int(signin.Recent.Minutes())}
	password, given := taken(r, confirmField)
	code, _ := taken(r, confirmCode)
	answer, answered := taken(r, confirmAnswer)
	for name, values := range r.PostForm {
		for _, value := range values {
			page.Fields = append(page.Fields, field{name, value})
		}
	}
	slices.SortStableFunc(page.Fields, func(a, b field) int { return strings.Compare(a.Name, b.Name) })
	all, err := factor.Of(r.Context(), s.DB, page.Person.ID)
	if err != nil {
		return err
	}
	status := http.StatusOK
	if given || answered {
		var key string
		status, key, err = s.confirms(w, r, page.Person.Account, all, password, code, answer)
		if err != nil {
			return err
		}
		if page.Fault = say(textsOf(r), key); page.Fault == "" {
			s.Sessions.NotePassword(r.Context())
			return next(w, r)
		}
	}
	page.Code, page.App = len(all) > 0, factor.Has(all, factor.TOTP)
	for _, b := range page.Person.Belongings {
		if b.Organization == page.Person.Provider && len(all) == 0 {
			page.Institute = b.Slug
		}
	}
	if page.Passkey, err = s.askPasskey(r, page.Person.Account, all); err != nil {
		return err
	}
	return showScripted(w, r, status, "confirm.html", page)
}

// taken takes a field out of the form, and says whether it was there.
func taken(r *http.Request, name string) (text string, there bool) {
	values, there := r.PostForm[name]
	r.PostForm.Del(name)
	r.Form.Del(name)
	if len(values) > 0 {
		text = values[0]
	}
	return text, there
}
