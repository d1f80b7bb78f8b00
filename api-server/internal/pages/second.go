package pages

import (
	"errors"
	"net/http"
	"strconv"

	"github.com/registrar-dev/registrar/api-server/internal/signin"
	"github.com/registrar-dev/registrar/internal/domain/factor"
	"github.com/registrar-dev/registrar/internal/domain/student"
)

// scripted is policy for pages that ask the browser for a passkey, which needs the site's own script.
const scripted = policy + "; script-src 'self'"

func showScripted(w http.ResponseWriter, r *http.Request, status int, name string, data any) error {
	w.Header().Set("Content-Security-Policy", scripted)
	return show(w, r, status, name, data)
}

// Keys of texts.
const (
	textWrongCode    = "second.wrong_code"
	textWrongPasskey = "second.wrong_passkey"
	textAgain        = "sign_in.again"
)

// secondPage asks for the second factor after the password.
type secondPage struct {
	Email   student.Email
	Passkey string // the options of a question to the browser's passkeys; "": there are none
	App     bool   // the person has an authenticator app
	Fault   string
}

func (s *Server) showSecond(w http.ResponseWriter, r *http.Request) error {
	a, _, err := s.Sessions.Awaited(r.Context())
	if err != nil {
		return err
	}
	if a.ID == 0 {
		return show(w, r, http.StatusOK, "sign-in.html", signInPage{Note: textsOf(r).T(textAgain), Passkeys: s.Accounts.Factors.Passkeys()})
	}
	return s.askSecond(w, r, a, http.StatusOK, "")
}

// askSecond says the text of the key beside it, if any.
func (s *Server) askSecond(w http.ResponseWriter, r *http.Request, a student.Account, status int, key string) error {
	readerOf(r.Context()).account = a.Language
	page := secondPage{Email: a.Email, Fault: say(textsOf(r), key)}
	all, err := factor.Of(r.Context(), s.DB, a.ID)
	if err != nil {
		return err
	}
	page.App = factor.Has(all, factor.TOTP)
	if page.Passkey, err = s.askPasskey(r, a, all); err != nil {
		return err
	}
	return showScripted(w, r, status, "second.html", page)
}

// askPasskey gives the options of a question to the browser for one of the person's passkeys; "" for who has none.
func (s *Server) askPasskey(r *http.Request, a student.Account, all []factor.Factor) (string, error) {
	if !s.Accounts.Factors.Passkeys() || !factor.Has(all, factor.Passkey) {
		return "", nil
	}
	c, err := s.Accounts.Factors.Ask(r.Context(), a.ID)
	if err == nil {
		s.Sessions.Ask(r.Context(), c)
	}
	return c.Options, err
}

func (s *Server) giveSecond(w http.ResponseWriter, r *http.Request) error {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	a, next, err := s.Sessions.Awaited(r.Context())
	if err != nil {
		return err
	}
	if a.ID == 0 {
		return show(w, r, http.StatusUnauthorized, "sign-in.html", signInPage{Fault: textsOf(r).T(textAgain), Passkeys: s.Accounts.Factors.Passkeys()})
	}
	if !s.mayTake(w, r, triesOfAddress, s.Proxies.Client(r)) {
		return s.askSecond(w, r, a, http.StatusTooManyRequests, textTooOften)
	}
	text, err := s.refuseFactor(r, a, r.PostFormValue("code"), r.PostFormValue("passkey"))
	if err != nil {
		return err
	}
	if text != "" {
		s.refused(r, a, "refused sign-in: wrong second factor")
		return s.askSecond(w, r, a, http.StatusUnauthorized, text)
	}
	if with := s.Sessions.AwaitedWith(r.Context()); with != 0 {
		return s.enterByProvider(w, r, a, with, next, true)
	}
	return s.enter(w, r, a, next, true)
}

// refuseFactor is the key of the text that says why neither the code nor the passkey's answer is taken, "" when one is.
func (s *Server) refuseFactor(r *http.Request, a student.Account, code, answer string) (string, error) {
	if answer != "" {
		user, err := s.Accounts.Factors.CheckPasskey(r.Context(), s.Sessions.Asked(r.Context()), answer, s.Clock())
		if err == nil && user == a.ID {
			return "", nil
		}
		if err == nil || errors.Is(err, factor.ErrRefused) {
			return textWrongPasskey, nil
		}
		return "", err
	}
	err := s.Accounts.CheckCode(r.Context(), a, code, signin.Visit(r.Context()))
	switch {
	case errors.Is(err, factor.ErrTooMany):
		return textTooOften, nil
	case errors.Is(err, factor.ErrRefused):
		return textWrongCode, nil
	}
	return "", err
}

// passkeyPage asks the browser for a passkey.
type passkeyPage struct{ Options, Next, Fault string }

// beginPasskey is for who signs in with a passkey and nothing else.
func (s *Server) beginPasskey(w http.ResponseWriter, r *http.Request) error {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if !s.mayTake(w, r, triesOfAddress, s.Proxies.Client(r)) {
		return show(w, r, http.StatusTooManyRequests, "sign-in.html", signInPage{Fault: textsOf(r).T(textTooOften)})
	}
	c, err := s.Accounts.Factors.Ask(r.Context(), 0)
	if err != nil {
		return err
	}
	s.Sessions.Ask(r.Context(), c)
	return showScripted(w, r, http.StatusOK, "passkey.html", passkeyPage{Options: c.Options, Next: signin.Next(r.PostFormValue("next"), "")})
}

func (s *Server) signInByPasskey(w http.ResponseWriter, r *http.Request) error {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	page := signInPage{Next: signin.Next(r.PostFormValue("next"), ""), Fault: textsOf(r).T(textWrongPasskey), Passkeys: s.Accounts.Factors.Passkeys()}
	if !s.mayTake(w, r, triesOfAddress, s.Proxies.Client(r)) {
		page.Fault = textsOf(r).T(textTooOften)
		return show(w, r, http.StatusTooManyRequests, "sign-in.html", page)
	}
	user, err := s.Accounts.Factors.CheckPasskey(r.Context(), s.Sessions.Asked(r.Context()), r.PostFormValue("passkey"), s.Clock())
	if errors.Is(err, factor.ErrRefused) {
		s.refused(r, student.Account{}, "refused sign-in: wrong passkey")
		return show(w, r, http.StatusUnauthorized, "sign-in.html", page)
	}
	if err != nil {
		return err
	}
	a, err := student.NoteSignIn(r.Context(), s.DB, user, s.Clock())
	if err != nil {
		return err
	}
	if err := s.noteDevice(r, a); err != nil {
		return err
	}
	if err := s.Sessions.BeginByPasskey(r.Context(), a); err != nil {
		return err
	}
	if err := s.Devices.Remember(w, r, a); err != nil {
		return err
	}
	return s.lead(w, r, a, page.Next, false)
}

// confirms says whether the form confirms who the person is (Confirm): by a passkey, or by the password and,
// where the person has a factor, a code. It gives the key of what to say if not.
func (s *Server) confirms(w http.ResponseWriter, r *http.Request, a student.Account, all []factor.Factor, password, code, answer string) (status int, text string, err error) {
	if !s.mayTake(w, r, triesOfSignedIn, strconv.FormatInt(int64(a.ID), 10)) {
		return http.StatusTooManyRequests, textTooOften, nil
	}
	if answer == "" {
		if status, text, err = s.comparePassword(r, a, password); text != "" || err != nil || len(all) == 0 {
			return status, text, err
		}
	}
	text, err = s.refuseFactor(r, a, code, answer)
	if text != "" {
		s.refused(r, a, "refused second factor")
	}
	return http.StatusBadRequest, text, err
}
