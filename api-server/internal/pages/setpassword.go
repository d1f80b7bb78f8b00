package pages

import (
	"context"
	"net/http"

	"github.com/registrar-dev/registrar/api-server/internal/edge"
	"github.com/registrar-dev/registrar/api-server/internal/signin"
	"github.com/registrar-dev/registrar/internal/domain/student"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/lang"
)

// setPasswordPage is what the template shows.
type setPasswordPage struct {
	Brand brand
	Email student.Email
	Fault string // what was wrong with the password; "" at first
}

// showSetPassword shows the form and consumes nothing: mail scanners open links.
func (s *Server) showSetPassword(w http.ResponseWriter, r *http.Request) error {
	a, _, err := student.FindLink(r.Context(), s.DB, edge.Param(r, "token"), s.Clock())
	if err != nil {
		return linkOver(w, r, err)
	}
	b, err := s.brandOfLink(r.Context(), edge.Param(r, "token"))
	if err != nil {
		return err
	}
	readerOf(r.Context()).account = a.Language
	return show(w, r, http.StatusOK, "set-password.html", setPasswordPage{Brand: b, Email: a.Email})
}

// maxForm is the largest form, in bytes: two passwords of 128 characters, encoded.
const maxForm = 16 << 10

func (s *Server) setPassword(w http.ResponseWriter, r *http.Request) error {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	token := edge.Param(r, "token")
	a, proof, err := student.FindLink(r.Context(), s.DB, token, s.Clock())
	if err != nil {
		return linkOver(w, r, err)
	}
	b, err := s.brandOfLink(r.Context(), token)
	if err != nil {
		return err
	}
	readerOf(r.Context()).account = a.Language
	if v := s.Limits.Take(r.Context(), triesOfAddress, s.Proxies.Client(r)); !v.Allowed {
		edge.RetryAfter(w, v.RetryAfter)
		return show(w, r, http.StatusTooManyRequests, "set-password.html", setPasswordPage{b, a.Email, textsOf(r).T(textTooOften)})
	}
	password := r.PostFormValue("password")
	text, err := refuse(r.Context(), textsOf(r), a, proof, password, r.PostFormValue("again"))
	if err != nil {
		return err
	}
	if text != "" {
		return show(w, r, http.StatusBadRequest, "set-password.html", setPasswordPage{b, a.Email, text})
	}
	hash, err := student.HashPassword(r.Context(), password)
	if err != nil {
		return err
	}
	if a, proof, err = s.Accounts.SetOwnPassword(r.Context(), a, token, hash, signin.Visit(r.Context())); err != nil {
		return linkOver(w, r, err)
	}
	if err := s.Devices.Remember(w, r, a); err != nil { // however many strangers try passwords meanwhile
		return err
	}
	page := passwordSetPage{Brand: b, Account: a}
	if proof == student.Mailbox { // by the link: the mailbox is theirs
		if page.Second, err = s.awaitSecond(r, a, "", 0); err != nil {
			return err
		}
		if page.SignedIn = !page.Second; page.SignedIn {
			if err := s.Sessions.Begin(r.Context(), a, false); err != nil {
				return err
			}
			if err := s.keepLanguage(r, a); err != nil {
				return err
			}
		}
	}
	return show(w, r, http.StatusOK, "password-set.html", page)
}

type passwordSetPage struct {
	student.Account
	Brand    brand
	SignedIn bool
	Second   bool // a second factor is still to come
}

// refuse says, in a sentence for the student, why the link does not set the password; "" when it
// does. The password that the student has may be confirmed, unless an organization may know it: with
// proof of the mailbox it would open what is others'.
func refuse(ctx context.Context, t *lang.Texts, a student.Account, proof student.Proof, password, again string) (string, error) {
	text := wrong(t, a, password, again)
	if text != "" || proof != student.Mailbox || !a.HasPassword() || a.Proof() == student.Mailbox {
		return text, nil
	}
	known, err := a.Owns(ctx, password)
	if known {
		text = t.T("password.known")
	}
	return text, err
}

// wrong says, in a sentence for the student, why the password is not taken; "" when it is.
func wrong(t *lang.Texts, a student.Account, password, again string) string {
	if password != again {
		return t.T("password.not_same")
	}
	err := student.CheckPassword(password, a.Email, a.Username, a.FirstName, a.LastName)
	if err == nil {
		return ""
	}
	return explained(t, err)
}

// linkOver shows a page for a link that is no good any more.
func linkOver(w http.ResponseWriter, r *http.Request, err error) error {
	if fault.KindOf(err) != fault.NotFound {
		return err
	}
	return show(w, r, http.StatusGone, "link-over.html", nil)
}
