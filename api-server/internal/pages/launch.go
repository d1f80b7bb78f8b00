package pages

import (
	"net/http"

	"github.com/registrar-dev/registrar/api-server/internal/edge"
	"github.com/registrar-dev/registrar/internal/domain/catalog"
	"github.com/registrar-dev/registrar/internal/domain/student"
	"github.com/registrar-dev/registrar/internal/flow/launch"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
)

// maxLaunch is the largest form, in bytes, that an LMS posts.
const maxLaunch = 256 << 10

// launch takes the form with which a learner's browser comes from an LMS, and sends the
// browser on to the student's page.
func (s *Server) launch(w http.ResponseWriter, r *http.Request) error {
	v, err := s.takeLaunch(w, r)
	if err != nil {
		return showLaunchFault(w, r, err)
	}
	edge.Annotate(r.Context(), "user", int64(v.Account.ID))
	if err := s.admit(r, v); err != nil {
		return err
	}
	s.Sessions.Flash(r.Context(), "You have been given “"+v.Item.Title+"”.")
	http.Redirect(w, r, home, http.StatusSeeOther)
	return nil
}

// admit signs the learner in, or makes room for who has to sign in by password: whoever
// used the browser before may be somebody else.
func (s *Server) admit(r *http.Request, v launch.Visitor) error {
	if !v.Vouched {
		return s.Sessions.End(r.Context())
	}
	if _, err := student.NoteSignIn(r.Context(), s.DB, v.Account.ID, s.Clock()); err != nil {
		return err
	}
	return s.Sessions.Begin(r.Context(), v.Account.ID)
}

func (s *Server) takeLaunch(w http.ResponseWriter, r *http.Request) (launch.Visitor, error) {
	r.Body = http.MaxBytesReader(w, r.Body, maxLaunch)
	if err := r.ParseForm(); err != nil {
		return launch.Visitor{}, fault.New(fault.Invalid, "not_a_launch", "the form could not be read")
	}
	item, err := edge.IDParam[id.Item](r, "id")
	if err != nil {
		return launch.Visitor{}, err
	}
	l, err := s.LTI.Verify(r.Context(), s.PublicURL+r.URL.EscapedPath(), r.Form, s.Clock())
	if err != nil {
		return launch.Visitor{}, err
	}
	return s.Launches.Take(r.Context(), l, catalog.Kind(edge.Param(r, "kind")), item)
}

// showLaunchFault tells the learner, and whoever set the LMS up, what is wrong.
func showLaunchFault(w http.ResponseWriter, r *http.Request, err error) error {
	if k := fault.KindOf(err); k == fault.Internal || k == fault.Unavailable {
		return err
	}
	status, text := edge.Explain(w, r, err)
	w.Header().Del("WWW-Authenticate")
	return show(w, status, "failed.html", failPage{Title: "This link did not work", Text: "It was refused: " + text + "."})
}
