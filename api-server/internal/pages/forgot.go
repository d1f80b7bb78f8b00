package pages

import (
	"net/http"
	"time"

	"github.com/registrar-dev/registrar/api-server/internal/limit"
	"github.com/registrar-dev/registrar/api-server/internal/signin"
	"github.com/registrar-dev/registrar/internal/domain/student"
	"github.com/registrar-dev/registrar/internal/flow/reset"
)

// How often a link may be asked for: to one mailbox, and from one address, which a school's
// students may share.
var (
	resetsOfName    = limit.Rule{Name: "reset_name", Rate: 3, Period: time.Hour, Burst: 3}
	resetsOfAddress = limit.Rule{Name: "reset_address", Rate: 120, Period: time.Hour, Burst: 30}
)

type forgotPage struct {
	Email string
	Fault string
	Hours int // that the link works
}

func (s *Server) showForgot(w http.ResponseWriter, r *http.Request) error {
	return show(w, r, http.StatusOK, "forgot-password.html", forgotPage{})
}

// askReset answers the same for every address, at once: the worker finds out whether it
// has an account.
func (s *Server) askReset(w http.ResponseWriter, r *http.Request) error {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	page := forgotPage{Email: r.PostFormValue("email"), Hours: int(student.ResetValid.Hours())}
	address, err := student.ParseEmail(page.Email)
	if err != nil {
		page.Fault = textsOf(r).T("forgot.no_address")
		return show(w, r, http.StatusBadRequest, "forgot-password.html", page)
	}
	return s.ask(w, r, address, page)
}

// sendLink is for who is signed in and sees only what one organization opens.
func (s *Server) sendLink(w http.ResponseWriter, r *http.Request) error {
	address := signin.SignedIn(r.Context()).Email
	return s.ask(w, r, address, forgotPage{Email: string(address), Hours: int(student.ResetValid.Hours())})
}

// ask has a link sent to the address.
func (s *Server) ask(w http.ResponseWriter, r *http.Request, address student.Email, page forgotPage) error {
	if !s.mayTake(w, r, resetsOfAddress, s.Proxies.Client(r)) || !s.mayTake(w, r, resetsOfName, string(address)) {
		page.Fault = textsOf(r).T(textTooOften)
		return show(w, r, http.StatusTooManyRequests, "forgot-password.html", page)
	}
	if err := reset.Ask(r.Context(), s.DB, address, s.Clock()); err != nil {
		return err
	}
	page.Email = string(address)
	return show(w, r, http.StatusOK, "link-asked.html", page)
}
