package console

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/lang"
)

type settingsPage struct {
	frame
	Organization org.Organization
	Languages    []*lang.Texts
	Managed      org.Management
}

func (s *Server) showSettings(w http.ResponseWriter, r *http.Request) error {
	f, err := s.frame(r, "settings", "Settings")
	if err != nil {
		return err
	}
	return s.listSettings(w, r, http.StatusOK, f)
}

func (s *Server) listSettings(w http.ResponseWriter, r *http.Request, status int, f frame) (err error) {
	p := settingsPage{frame: f, Languages: lang.All()}
	if p.Organization, err = org.Find(r.Context(), s.DB, f.Here.Slug); err != nil {
		return err
	}
	if p.Managed, err = org.ManagementOf(r.Context(), s.DB, f.Here.Organization); err != nil {
		return err
	}
	return show(w, status, "settings.html", p)
}

// settle does what a form of the page asks for, and shows the page again: with the note, or with what is wrong.
func (s *Server) settle(w http.ResponseWriter, r *http.Request, note string, do func(context.Context, frame) error) error {
	f, err := s.frame(r, "settings", "Settings")
	if err != nil {
		return err
	}
	err = do(r.Context(), f)
	if text, mine := typed(err); mine {
		f.Fault = text
		return s.listSettings(w, r, http.StatusBadRequest, f)
	}
	if err != nil {
		return err
	}
	return s.back(w, r, f, "/settings/", note)
}

// change makes the form's changes of the organization.
func (s *Server) change(w http.ResponseWriter, r *http.Request, note string, read func() org.Patch) error {
	return s.settle(w, r, note, func(ctx context.Context, f frame) error {
		r.Body = http.MaxBytesReader(w, r.Body, maxForm)
		_, err := org.Change(ctx, s.DB, f.Person.Actor(), f.Here.Slug, read(), s.Clock())
		return err
	})
}

func (s *Server) rename(w http.ResponseWriter, r *http.Request) error {
	return s.change(w, r, "The name is changed.", func() org.Patch {
		name := r.PostFormValue("name")
		return org.Patch{Name: &name}
	})
}

func (s *Server) changeLanguage(w http.ResponseWriter, r *http.Request) error {
	return s.change(w, r, "The language is changed. It holds for students who have chosen none.", func() org.Patch {
		code := r.PostFormValue("language")
		return org.Patch{Language: &code}
	})
}

// changeDefaults changes those that a call of the partner API could also say for each student, and how students are welcomed.
// How much of the catalog a student sees is the platform's to say.
func (s *Server) changeDefaults(w http.ResponseWriter, r *http.Request) error {
	return s.change(w, r, "The defaults are changed. They hold from the next call on.", func() org.Patch {
		mails := r.PostFormValue("send_welcome_email") != ""
		p := org.Patch{SendWelcomeEmail: &mails}
		for field, into := range map[string]**int{"access_months": &p.AccessMonths, "grace_period_days": &p.GracePeriodDays,
			"starter_tests_per_course": &p.StarterTestsPerCourse, "set_password_link_valid_days": &p.SetPasswordLinkValidDays} {
			n, err := strconv.Atoi(strings.TrimSpace(r.PostFormValue(field)))
			if err != nil {
				n = -1 // which is refused with what may be sent
			}
			*into = &n
		}
		return p
	})
}

func (s *Server) changeLogo(w http.ResponseWriter, r *http.Request) error {
	return s.settle(w, r, "The logo is changed.", func(ctx context.Context, f frame) error {
		file, err := logoIn(w, r)
		if err != nil {
			return err
		}
		return org.PutLogo(ctx, s.DB, f.Person.Actor(), f.Here.Organization, file, s.Clock())
	})
}

func (s *Server) removeLogo(w http.ResponseWriter, r *http.Request) error {
	return s.settle(w, r, "The logo is removed.", func(ctx context.Context, f frame) error {
		return org.DropLogo(ctx, s.DB, f.Person.Actor(), f.Here.Organization, s.Clock())
	})
}

// logoIn reads the file of the form; one that is too large comes as no picture.
func logoIn(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	r.Body = http.MaxBytesReader(w, r.Body, org.MaxLogo+maxForm)
	part, _, err := r.FormFile("logo")
	if over := (*http.MaxBytesError)(nil); errors.As(err, &over) {
		return nil, fault.Field("logo", "invalid", "The file has more than %d KiB.", org.MaxLogo>>10)
	}
	if err != nil {
		return nil, fault.Field("logo", "missing", "Choose a file.")
	}
	defer func() { _ = part.Close() }()
	return io.ReadAll(part)
}
