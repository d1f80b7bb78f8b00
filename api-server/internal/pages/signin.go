package pages

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/registrar-dev/registrar/api-server/internal/edge"
	"github.com/registrar-dev/registrar/api-server/internal/limit"
	"github.com/registrar-dev/registrar/api-server/internal/signin"
	"github.com/registrar-dev/registrar/internal/domain/factor"
	"github.com/registrar-dev/registrar/internal/domain/student"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/id"
)

// How often one may try. The limits of a name and of the account that it leads to are what stops
// guessing at one account; the limit of an address stops trying one password on many, and is wide
// because a school's students may share an address. A browser in which the person has signed in
// before, and one that is signed in, have limits of their own: strangers' tries lock nobody out.
var (
	triesOfName     = limit.Rule{Name: "sign_in_name", Rate: 10, Period: 5 * time.Minute, Burst: 10}
	triesOfAccount  = limit.Rule{Name: "sign_in_account", Rate: 10, Period: 5 * time.Minute, Burst: 10}
	triesOfDevice   = limit.Rule{Name: "sign_in_device", Rate: 10, Period: 5 * time.Minute, Burst: 10}
	triesOfSignedIn = limit.Rule{Name: "signed_in_password", Rate: 10, Period: 5 * time.Minute, Burst: 10}
	triesOfAddress  = limit.Rule{Name: "sign_in_address", Rate: 300, Period: 5 * time.Minute, Burst: 100}
)

// Keys of texts.
const (
	textTooOften = "fault.too_often"
	textWrong    = "sign_in.wrong"

	textNotCurrent = "password.not_current"
)

// home is where a student's sign-in leads, desk where one of an organization's staff does.
const (
	home    = "/my-courses/"
	fixture = "/console/"
)

// homeOf is where a person goes who asked for no page.
func homeOf(p *signin.Person) string {
	switch {
	case len(p.StaffOf()) > 0, p.NeedsProvider() != "":
		return fixture
	case p.NeedsFactor():
		return methodsPath
	}
	return home
}

// showHome leads from the site's bare address to the page that the person is here for.
func (s *Server) showHome(w http.ResponseWriter, r *http.Request) error {
	p := signin.SignedIn(r.Context())
	if p.MustChangePassword {
		http.Redirect(w, r, "/change-password/", http.StatusSeeOther)
		return nil
	}
	http.Redirect(w, r, homeOf(p), http.StatusSeeOther)
	return nil
}

type signInPage struct {
	Brand      brand
	Name, Next string
	Fault      string
	Note       string
	Passkeys   bool // the site can have them
}

func (s *Server) showSignIn(w http.ResponseWriter, r *http.Request) error {
	p, err := s.Sessions.Person(r.Context())
	if err != nil {
		return err
	}
	next := signin.Next(r.URL.Query().Get("next"), "")
	if p != nil {
		if next == "" {
			next = homeOf(p)
		}
		http.Redirect(w, r, next, http.StatusSeeOther) //nolint:gosec // signin.Next lets paths of this site pass alone
		return nil
	}
	page, err := s.newSignIn(r, next)
	if err != nil {
		return err
	}
	page.Note = s.Sessions.Flashed(r.Context())
	return show(w, r, http.StatusOK, "sign-in.html", page)
}

func (s *Server) newSignIn(r *http.Request, next string) (page signInPage, err error) {
	page = signInPage{Next: next, Passkeys: s.Accounts.Factors.Passkeys()}
	page.Brand, err = s.brandAt(r.Context(), r.FormValue(atField), next)
	return page, err
}

func (s *Server) signIn(w http.ResponseWriter, r *http.Request) error {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	page, err := s.newSignIn(r, signin.Next(r.PostFormValue("next"), ""))
	if err != nil {
		return err
	}
	page.Name = r.PostFormValue("name")
	who, err := student.ResolveName(r.Context(), s.DB, page.Name)
	if err != nil {
		return err
	}
	if !s.mayTry(w, r, who) {
		s.refused(r, who.Account, "refused sign-in: too many tries")
		page.Fault = textsOf(r).T(textTooOften)
		return show(w, r, http.StatusTooManyRequests, "sign-in.html", page)
	}
	a, err := who.SignIn(r.Context(), s.DB, r.PostFormValue("password"), s.Clock())
	if errors.Is(err, student.ErrSignIn) {
		s.refused(r, who.Account, "refused sign-in: wrong password")
		page.Fault = textsOf(r).T(textWrong)
		return show(w, r, http.StatusUnauthorized, "sign-in.html", page)
	}
	if err != nil {
		return err
	}
	needs, err := s.awaitSecond(r, a, page.Next, 0)
	if err != nil {
		return err
	}
	if needs {
		http.Redirect(w, r, secondPath, http.StatusSeeOther)
		return nil
	}
	return s.enter(w, r, a, page.Next, false)
}

const secondPath = "/sign-in/second/"

// awaitSecond has a person who has a factor show it before anything opens.
func (s *Server) awaitSecond(r *http.Request, a student.Account, next string, with id.Organization) (bool, error) {
	all, err := factor.Of(r.Context(), s.DB, a.ID)
	if err != nil || len(all) == 0 {
		return false, err
	}
	return true, s.Sessions.Await(r.Context(), a, next, with)
}

// enter signs a person in who has given the password and, where there is one, a factor.
func (s *Server) enter(w http.ResponseWriter, r *http.Request, a student.Account, next string, withFactor bool) error {
	if err := s.noteDevice(r, a); err != nil {
		return err
	}
	if err := s.begin(w, r, a, withFactor); err != nil {
		return err
	}
	return s.lead(w, r, a, next, a.MustChangePassword)
}

func (s *Server) noteDevice(r *http.Request, a student.Account) error {
	if s.Devices.Known(r, a) != "" {
		return nil
	}
	return s.Accounts.NoteNewDevice(r.Context(), a, signin.Visit(r.Context()))
}

// lead goes where a sign-in leads.
func (s *Server) lead(w http.ResponseWriter, r *http.Request, a student.Account, next string, mustChange bool) error {
	edge.Annotate(r.Context(), "user", int64(a.ID))
	if err := s.keepLanguage(r, a); err != nil {
		return err
	}
	switch {
	case mustChange:
		next = "/change-password/"
	case next == "":
		p, err := s.Sessions.Person(r.Context())
		if err != nil {
			return err
		}
		next = homeOf(p)
	}
	http.Redirect(w, r, next, http.StatusSeeOther)
	return nil
}

// refused counts a try at a password for the audit log. What was typed for a name may be anything, even a
// password, and is not kept.
func (s *Server) refused(r *http.Request, a student.Account, action string) {
	target := "no account"
	if a.ID != 0 {
		target = "user " + strconv.FormatInt(int64(a.ID), 10)
	}
	s.Refusals.Note(audit.Refusal{Actor: audit.Unknown, Action: action, Target: target, Address: s.Proxies.Client(r)})
}

// begin signs a person in who gave the password, in a browser that is known from now on.
func (s *Server) begin(w http.ResponseWriter, r *http.Request, a student.Account, withFactor bool) error {
	if err := s.Sessions.Begin(r.Context(), a, withFactor); err != nil {
		return err
	}
	return s.Devices.Remember(w, r, a)
}

// mayTry counts a try at a password; what stops it does not depend on whether there is
// such an account.
func (s *Server) mayTry(w http.ResponseWriter, r *http.Request, who student.Candidate) bool {
	if device := s.Devices.Known(r, who.Account); device != "" {
		return s.mayTake(w, r, triesOfDevice, device)
	}
	keys := who.Keys()
	return s.mayTake(w, r, triesOfAddress, s.Proxies.Client(r)) &&
		s.mayTake(w, r, triesOfName, keys[0]) && s.mayTake(w, r, triesOfAccount, keys[1])
}

func (s *Server) signOut(w http.ResponseWriter, r *http.Request) error {
	if err := s.Sessions.End(r.Context()); err != nil {
		return err
	}
	http.Redirect(w, r, signin.Path, http.StatusSeeOther)
	return nil
}

type changePage struct {
	Person *signin.Person
	Fault  string
}

func (s *Server) showChangePassword(w http.ResponseWriter, r *http.Request) error {
	return show(w, r, http.StatusOK, "change-password.html", changePage{Person: signin.SignedIn(r.Context())})
}

func (s *Server) changePassword(w http.ResponseWriter, r *http.Request) error {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	page := changePage{Person: signin.SignedIn(r.Context())}
	status, text, err := s.refuseChange(w, r, page.Person.Account)
	if err != nil {
		return err
	}
	if page.Fault = text; text != "" {
		return show(w, r, status, "change-password.html", page)
	}
	hash, err := student.HashPassword(r.Context(), r.PostFormValue("password"))
	if err != nil {
		return err
	}
	a, err := s.Accounts.ChangePassword(r.Context(), page.Person.Account, hash, signin.Visit(r.Context()))
	if errors.Is(err, student.ErrSignIn) {
		page.Fault = textsOf(r).T(textNotCurrent)
		return show(w, r, http.StatusBadRequest, "change-password.html", page)
	}
	if err != nil {
		return err
	}
	if err := s.begin(w, r, a, s.Sessions.GaveFactor(r.Context())); err != nil {
		return err
	}
	s.Sessions.Flash(r.Context(), textsOf(r).T("password.is_set"))
	http.Redirect(w, r, homeOf(page.Person), http.StatusSeeOther)
	return nil
}

// refuseChange says why a new password is not taken, "" when it is.
func (s *Server) refuseChange(w http.ResponseWriter, r *http.Request, a student.Account) (status int, text string, err error) {
	current, password := r.PostFormValue("current"), r.PostFormValue("password")
	t := textsOf(r)
	if status, text, err = s.refusePassword(w, r, a, current); text != "" || err != nil {
		return status, say(t, text), err
	}
	if password == current {
		return http.StatusBadRequest, t.T("password.no_change"), nil
	}
	return http.StatusBadRequest, wrong(t, a, password, r.PostFormValue("again")), nil
}

// refusePassword is the key of the text that says why a signed-in person's own password is not taken, "" when it is.
func (s *Server) refusePassword(w http.ResponseWriter, r *http.Request, a student.Account, typed string) (status int, text string, err error) {
	if !s.mayTake(w, r, triesOfSignedIn, strconv.FormatInt(int64(a.ID), 10)) {
		return http.StatusTooManyRequests, textTooOften, nil
	}
	return s.comparePassword(r, a, typed)
}

func (s *Server) comparePassword(r *http.Request, a student.Account, typed string) (status int, text string, err error) {
	owns, err := a.Owns(r.Context(), typed)
	if err != nil || owns {
		return 0, "", err
	}
	s.refused(r, a, "refused current password")
	return http.StatusBadRequest, textNotCurrent, nil
}
