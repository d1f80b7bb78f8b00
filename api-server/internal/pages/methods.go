package pages

import (
	"encoding/base64"
	"errors"
	"net/http"
	"strconv"

	"github.com/google/uuid"

	"github.com/registrar-dev/registrar/api-server/internal/edge"
	"github.com/registrar-dev/registrar/api-server/internal/signin"
	"github.com/registrar-dev/registrar/internal/domain/factor"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/lang"
)

const methodsPath = "/sign-in-methods/"

// methodsPage lists how a person signs in.
type methodsPage struct {
	Person   *signin.Person
	Factors  []methodLine
	Left     int      // recovery codes
	Codes    []string // new ones, shown once
	Passkeys bool     // the site can have them
	Staff    bool
	Note     string
	Fault    string

	FactorDue string // the day from which an organization demands a second factor; "": none does
}

type methodLine struct {
	ID         uuid.UUID
	Kind, Name string
	Used       string // a sentence
}

func (s *Server) showMethods(w http.ResponseWriter, r *http.Request) error {
	return s.listMethods(w, r, http.StatusOK, nil, "")
}

func (s *Server) listMethods(w http.ResponseWriter, r *http.Request, status int, codes []string, text string) error {
	p := signin.SignedIn(r.Context())
	page := methodsPage{Person: p, Codes: codes, Passkeys: s.Accounts.Factors.Passkeys(), Staff: len(p.StaffOf()) > 0, Note: s.Sessions.Flashed(r.Context()), Fault: text}
	all, err := factor.Of(r.Context(), s.DB, p.ID)
	if err != nil {
		return err
	}
	if page.Left, err = factor.Left(r.Context(), s.DB, p.ID); err != nil {
		return err
	}
	t := textsOf(r)
	if !p.FactorDue.IsZero() {
		page.FactorDue = t.DayOf(p.FactorDue, p.FactorDue.Location())
	}
	for _, f := range all {
		line := methodLine{ID: f.ID, Kind: t.T("methods.passkey"), Name: f.Name, Used: t.T("methods.unused", "Added", t.MomentAt(f.CreatedAt, s.Zone))}
		if f.Kind == factor.TOTP {
			line.Kind = t.T("methods.app")
		}
		if f.LastUsedAt != nil {
			line.Used = t.T("methods.used", "Added", t.MomentAt(f.CreatedAt, s.Zone), "Used", t.MomentAt(*f.LastUsedAt, s.Zone))
		}
		page.Factors = append(page.Factors, line)
	}
	return show(w, r, status, "methods.html", page)
}

// sure lets a form pass to next after the person has confirmed who they are (Confirm).
func (s *Server) sure(next edge.Handler) edge.Handler {
	return func(w http.ResponseWriter, r *http.Request) error { return s.Confirm(w, r, methodsPath, next) }
}

// appPage shows a seed to an authenticator app.
type appPage struct {
	Person *signin.Person
	Seed   factor.Seed
	QR     factor.QR
	Name   string
	Fault  string
}

// seedName is what a session keeps a seed under that is not in use yet, sealed.
const seedName = "seed"

func seedPlace(p *signin.Person) string { return "sessions/seed/" + strconv.FormatInt(int64(p.ID), 10) }

func (s *Server) beginApp(w http.ResponseWriter, r *http.Request) error {
	p := signin.SignedIn(r.Context())
	seed := s.Accounts.Factors.NewSeed(string(p.Email))
	sealed, err := s.Accounts.Factors.Box.Seal(r.Context(), []byte(seed.Secret), seedPlace(p))
	if err != nil {
		return err
	}
	s.Sessions.Keep(r.Context(), seedName, base64.StdEncoding.EncodeToString(sealed))
	return s.showApp(w, r, http.StatusOK, appPage{Person: p, Seed: seed})
}

func (s *Server) showApp(w http.ResponseWriter, r *http.Request, status int, page appPage) (err error) {
	if page.QR, err = page.Seed.QR(); err != nil {
		return err
	}
	return show(w, r, status, "app.html", page)
}

func (s *Server) addApp(w http.ResponseWriter, r *http.Request) error {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	p := signin.SignedIn(r.Context())
	sealed, err := base64.StdEncoding.DecodeString(s.Sessions.Kept(r.Context(), seedName))
	if err != nil || len(sealed) == 0 {
		return s.listMethods(w, r, http.StatusBadRequest, nil, textsOf(r).T("methods.again"))
	}
	secret, err := s.Accounts.Factors.Box.Open(r.Context(), sealed, seedPlace(p))
	if err != nil {
		return err
	}
	page := appPage{Person: p, Seed: s.Accounts.Factors.SeedOf(string(secret), string(p.Email)), Name: r.PostFormValue("name")}
	codes, err := s.Accounts.AddTOTP(r.Context(), p.Account, page.Name, page.Seed, r.PostFormValue("code"), signin.Visit(r.Context()))
	if errors.Is(err, factor.ErrRefused) {
		page.Fault = textsOf(r).T("app.wrong")
		return s.showApp(w, r, http.StatusBadRequest, page)
	}
	if k := fault.KindOf(err); k == fault.Invalid || k == fault.Conflict {
		page.Fault = refusedMethod(textsOf(r), err)
		return s.showApp(w, r, http.StatusBadRequest, page)
	}
	if err != nil {
		return err
	}
	s.Sessions.Keep(r.Context(), seedName, "")
	return s.added(w, r, codes)
}

// added shows the methods after one was added.
func (s *Server) added(w http.ResponseWriter, r *http.Request, codes []string) error {
	s.Sessions.NoteFactor(r.Context())
	if codes != nil {
		return s.listMethods(w, r, http.StatusCreated, codes, "")
	}
	s.Sessions.Flash(r.Context(), textsOf(r).T("methods.added"))
	http.Redirect(w, r, methodsPath, http.StatusSeeOther)
	return nil
}

// newPasskeyPage asks the browser to make a passkey.
type newPasskeyPage struct {
	Person  *signin.Person
	Options string
	Name    string
	Fault   string
}

func (s *Server) newPasskey(w http.ResponseWriter, r *http.Request) error {
	return s.askNewPasskey(w, r, http.StatusOK, newPasskeyPage{})
}

func (s *Server) askNewPasskey(w http.ResponseWriter, r *http.Request, status int, page newPasskeyPage) error {
	page.Person = signin.SignedIn(r.Context())
	c, err := s.Accounts.Factors.AskNew(r.Context(), page.Person.ID, string(page.Person.Email))
	if err != nil {
		return err
	}
	s.Sessions.Ask(r.Context(), c)
	page.Options = c.Options
	return showScripted(w, r, status, "new-passkey.html", page)
}

func (s *Server) addPasskey(w http.ResponseWriter, r *http.Request) error {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	p := signin.SignedIn(r.Context())
	page := newPasskeyPage{Name: r.PostFormValue("name")}
	codes, err := s.Accounts.AddPasskey(r.Context(), p.Account, page.Name, s.Sessions.Asked(r.Context()), r.PostFormValue("passkey"), signin.Visit(r.Context()))
	if errors.Is(err, factor.ErrRefused) {
		page.Fault = textsOf(r).T("passkey.refused")
		return s.askNewPasskey(w, r, http.StatusBadRequest, page)
	}
	if k := fault.KindOf(err); k == fault.Invalid || k == fault.Conflict {
		page.Fault = refusedMethod(textsOf(r), err)
		return s.askNewPasskey(w, r, http.StatusBadRequest, page)
	}
	if err != nil {
		return err
	}
	return s.added(w, r, codes)
}

// refusedMethod says why a way to sign in was not added or removed.
func refusedMethod(t *lang.Texts, err error) string {
	var f *fault.Error
	if errors.As(err, &f) && f.Field == "name" {
		return t.T("fault.factor_name")
	}
	return explained(t, err)
}

func (s *Server) removeMethod(w http.ResponseWriter, r *http.Request) error {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	which, err := uuid.Parse(r.PostFormValue("method"))
	if err != nil {
		return s.listMethods(w, r, http.StatusBadRequest, nil, textsOf(r).T("methods.which"))
	}
	f, err := s.Accounts.RemoveFactor(r.Context(), signin.SignedIn(r.Context()).Account, which, signin.Visit(r.Context()))
	switch fault.KindOf(err) {
	case fault.NotFound:
		return s.listMethods(w, r, http.StatusBadRequest, nil, textsOf(r).T("methods.gone"))
	case fault.Conflict:
		return s.listMethods(w, r, http.StatusBadRequest, nil, refusedMethod(textsOf(r), err))
	}
	if err != nil {
		return err
	}
	key := "methods.removed_passkey"
	if f.Kind == factor.TOTP {
		key = "methods.removed_app"
	}
	s.Sessions.Flash(r.Context(), textsOf(r).T(key, "Name", f.Name))
	http.Redirect(w, r, methodsPath, http.StatusSeeOther)
	return nil
}

func (s *Server) newRecoveryCodes(w http.ResponseWriter, r *http.Request) error {
	p := signin.SignedIn(r.Context())
	all, err := factor.Of(r.Context(), s.DB, p.ID)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		return s.listMethods(w, r, http.StatusBadRequest, nil, textsOf(r).T("methods.no_codes"))
	}
	codes, err := s.Accounts.ReplaceRecoveryCodes(r.Context(), p.Account, signin.Visit(r.Context()))
	if err != nil {
		return err
	}
	return s.listMethods(w, r, http.StatusCreated, codes, "")
}
