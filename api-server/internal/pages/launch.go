package pages

import (
	"errors"
	"net/http"
	"time"

	"github.com/registrar-dev/registrar/api-server/internal/edge"
	"github.com/registrar-dev/registrar/api-server/internal/limit"
	"github.com/registrar-dev/registrar/internal/domain/catalog"
	"github.com/registrar-dev/registrar/internal/flow/launch"
	"github.com/registrar-dev/registrar/internal/flow/wire"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/lang"
)

// maxLaunch is the largest form, in bytes, that an LMS posts.
const maxLaunch = 256 << 10

// How often an LMS may send learners, whatever comes of it. A whole school may sit behind one
// address and open the link at once; a key and an address that want more learn when.
var (
	launchesOfAddress = limit.Rule{Name: "launch_address", Rate: 300, Period: time.Minute, Burst: 300}
	launchesOfKey     = limit.Rule{Name: "launch_key", Rate: 600, Period: time.Minute, Burst: 600}
)

// launch takes the form with which a learner's browser comes from an LMS, and sends the
// browser on to the student's page, or to the result of work that is finished.
func (s *Server) launch(w http.ResponseWriter, r *http.Request) error {
	if !s.mayTake(w, r, launchesOfAddress, s.Proxies.Client(r)) {
		return showTooManyLaunches(w, r)
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxLaunch)
	if err := r.ParseForm(); err != nil {
		return showLaunchFault(w, r, fault.New(fault.Invalid, "not_a_launch", "the form could not be read"))
	}
	if !s.mayTake(w, r, launchesOfKey, r.PostForm.Get("oauth_consumer_key")) {
		return showTooManyLaunches(w, r)
	}
	v, err := s.takeLaunch(r)
	if err != nil {
		return showLaunchFault(w, r, err)
	}
	edge.Annotate(r.Context(), "user", int64(v.Account.ID))
	if err := s.Sessions.Launch(r.Context(), v.Account.ID, v.Organization); err != nil {
		return err
	}
	if v.Result != "" {
		http.Redirect(w, r, wire.ResultURL("", v.Result), http.StatusSeeOther)
		return nil
	}
	readerOf(r.Context()).account = v.Account.Language
	if _, err := s.brandOf(r.Context(), v.Organization); err != nil {
		return err
	}
	s.Sessions.Flash(r.Context(), textsOf(r).T("courses.given", "Title", v.Item.Title))
	http.Redirect(w, r, home, http.StatusSeeOther)
	return nil
}

// refuseVisit is for who opens the address of a link without an LMS.
func (*Server) refuseVisit(w http.ResponseWriter, r *http.Request) error {
	t := textsOf(r)
	w.Header().Set("Allow", http.MethodPost)
	return show(w, r, http.StatusMethodNotAllowed, "failed.html",
		failPage{Title: t.T("launch.visit_title"), Text: t.T("launch.visit_text")})
}

func (s *Server) takeLaunch(r *http.Request) (launch.Visitor, error) {
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

// mayTake counts one more; when it is too much, Retry-After says when the next one may come.
func (s *Server) mayTake(w http.ResponseWriter, r *http.Request, rule limit.Rule, key string) bool {
	v := s.Limits.Take(r.Context(), rule, key)
	if !v.Allowed {
		edge.RetryAfter(w, v.RetryAfter)
	}
	return v.Allowed
}

func showTooManyLaunches(w http.ResponseWriter, r *http.Request) error {
	t := textsOf(r)
	return show(w, r, http.StatusTooManyRequests, "failed.html",
		failPage{Title: t.T("launch.crowd_title"), Text: t.T("launch.crowd_text")})
}

// showLaunchFault tells the learner, and whoever set the LMS up, what is wrong.
func showLaunchFault(w http.ResponseWriter, r *http.Request, err error) error {
	if k := fault.KindOf(err); k == fault.Internal || k == fault.Unavailable {
		return err
	}
	status, text := edge.Explain(w, r, err)
	w.Header().Del("WWW-Authenticate")
	t := textsOf(r)
	page := failPage{Title: t.T("launch.title"), Text: t.T("launch.refused", "Reason", text)}
	var f *fault.Error
	if errors.As(err, &f) && len(f.Also) == 0 {
		key := "launch." + f.Code
		if f.Field != "" {
			key += "." + f.Field
		}
		if lang.Has(key) {
			page.Text = t.T(key)
		}
	}
	return show(w, r, status, "failed.html", page)
}
