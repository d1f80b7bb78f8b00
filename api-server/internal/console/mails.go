package console

import (
	"net/http"
	"slices"

	"github.com/registrar-dev/registrar/internal/domain/email"
	"github.com/registrar-dev/registrar/internal/kit/fault"
)

type mailsPage struct {
	frame
	Kinds []mailKind
}

// mailKind is a kind of mails that the person may do without.
type mailKind struct {
	email.Type
	Wanted bool
}

// showMails is where owners and admins choose which mails of the organization they get.
func (s *Server) showMails(w http.ResponseWriter, r *http.Request) error {
	f, err := s.frame(r, "mails", "Mails to you")
	if err != nil {
		return err
	}
	ended, err := email.Ended(r.Context(), s.DB, f.Here.Organization, f.Person.ID)
	if err != nil {
		return err
	}
	p := mailsPage{frame: f}
	for _, t := range email.Alerts() {
		p.Kinds = append(p.Kinds, mailKind{t, !slices.Contains(ended, t)})
	}
	return show(w, http.StatusOK, "mails.html", p)
}

func (s *Server) chooseMails(w http.ResponseWriter, r *http.Request) error {
	f, err := s.frame(r, "mails", "Mails to you")
	if err != nil {
		return err
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		return fault.New(fault.Invalid, "invalid_form", "the form is damaged or too large; please fill it in again")
	}
	var wanted []email.Type
	for _, t := range r.PostForm["wanted"] {
		wanted = append(wanted, email.Type(t))
	}
	if err := email.Choose(r.Context(), s.DB, f.Here.Organization, f.Person.ID, wanted, s.Clock()); err != nil {
		return err
	}
	return s.back(w, r, f, "/mails/", "Your choice is saved.")
}
