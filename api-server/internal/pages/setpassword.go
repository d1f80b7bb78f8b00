package pages

import (
	"errors"
	"net/http"
	"strings"

	"github.com/registrar-dev/registrar/api-server/internal/edge"
	"github.com/registrar-dev/registrar/internal/domain/student"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// setPasswordPage is what the template shows.
type setPasswordPage struct {
	Email student.Email
	Fault string // what was wrong with the password; "" at first
}

// showSetPassword shows the form and consumes nothing: mail scanners open links.
func (s *Server) showSetPassword(w http.ResponseWriter, r *http.Request) error {
	a, err := student.FindLink(r.Context(), s.DB, edge.Param(r, "token"), s.Clock())
	if err != nil {
		return linkOver(w, err)
	}
	return show(w, http.StatusOK, "set-password.html", setPasswordPage{Email: a.Email})
}

// maxForm is the largest form, in bytes: two passwords of 128 characters, encoded.
const maxForm = 16 << 10

func (s *Server) setPassword(w http.ResponseWriter, r *http.Request) error {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	token := edge.Param(r, "token")
	a, err := student.FindLink(r.Context(), s.DB, token, s.Clock())
	if err != nil {
		return linkOver(w, err)
	}
	password := r.PostFormValue("password")
	if err := check(a, password, r.PostFormValue("again")); err != nil {
		return show(w, http.StatusBadRequest, "set-password.html", setPasswordPage{a.Email, err.Error()})
	}
	hash, err := student.HashPassword(r.Context(), password)
	if err != nil {
		return err
	}
	err = s.DB.InTx(r.Context(), func(tx *pg.Tx) error {
		return student.SetOwnPassword(r.Context(), tx, token, hash, s.Clock())
	})
	if err != nil {
		return linkOver(w, err)
	}
	return show(w, http.StatusOK, "password-set.html", a)
}

// check gives a text for the student: without the name of a request's field.
func check(a student.Account, password, again string) error {
	if password != again {
		return errors.New("The two passwords are not the same. Please type the same password twice.") //nolint:staticcheck // a sentence for a page
	}
	err := student.CheckPassword(password, a.Email, a.Username, a.FirstName, a.LastName)
	if err == nil {
		return nil
	}
	text := strings.TrimPrefix(err.Error(), "password: ")
	return errors.New("This password is not accepted: " + text + ".") //nolint:staticcheck // a sentence for a page
}

// linkOver shows a page for a link that is no good any more.
func linkOver(w http.ResponseWriter, err error) error {
	if fault.KindOf(err) != fault.NotFound {
		return err
	}
	return show(w, http.StatusGone, "link-over.html", nil)
}
