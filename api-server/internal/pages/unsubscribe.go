package pages

import (
	"net/http"

	"github.com/registrar-dev/registrar/api-server/internal/edge"
	"github.com/registrar-dev/registrar/internal/domain/email"
	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/lang"
)

// unsubscribePage is where the link of a mail leads that its recipient can do without.
type unsubscribePage struct {
	Organization, Slug, When string
}

func (s *Server) subscription(r *http.Request) (email.Subscription, unsubscribePage, error) {
	sub, err := email.ReadToken(r.Context(), s.Accounts.Mail.Box, edge.Param(r, "token"))
	if err != nil {
		return sub, unsubscribePage{}, err
	}
	all, err := org.ReadAll(r.Context(), s.DB, sub.Organization)
	if err != nil {
		return sub, unsubscribePage{}, err
	}
	o, known := all[sub.Organization]
	if !known {
		return sub, unsubscribePage{}, fault.New(fault.NotFound, "not_found", "this link ends no mails")
	}
	return sub, unsubscribePage{Organization: o.Name, Slug: o.Slug, When: sub.Of.When()}, nil
}

// showUnsubscribe changes nothing: mail scanners open links.
func (s *Server) showUnsubscribe(w http.ResponseWriter, r *http.Request) error {
	_, page, err := s.subscription(r)
	if err != nil {
		return err
	}
	return languages[lang.English].show(w, http.StatusOK, "unsubscribe.html", page, chooser{}) // as the mail
}

// unsubscribe is for the page's form and for mail clients, which post without having seen the page (RFC 8058).
func (s *Server) unsubscribe(w http.ResponseWriter, r *http.Request) error {
	sub, page, err := s.subscription(r)
	if err != nil {
		return err
	}
	if err := sub.End(r.Context(), s.DB, s.Clock()); err != nil {
		return err
	}
	return languages[lang.English].show(w, http.StatusOK, "unsubscribed.html", page, chooser{})
}
