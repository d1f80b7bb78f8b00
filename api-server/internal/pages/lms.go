package pages

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/registrar-dev/registrar/api-server/internal/edge"
	"github.com/registrar-dev/registrar/api-server/internal/limit"
	"github.com/registrar-dev/registrar/internal/domain/catalog"
	"github.com/registrar-dev/registrar/internal/domain/lms"
	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/flow/launch"
	"github.com/registrar-dev/registrar/internal/flow/wire"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
)

// Launches of LTI 1.3. An LMS sends the browser to beginLaunch, which sends it back to the LMS with a state, and
// takeMessage gets the LMS's signed answer. That both are of one browser is shown by a cookie, or, where a browser keeps
// cookies from pages within pages, by what the LMS has stored for us (lti_storage_target).

// How often an address may begin launches, and bring messages: a launch without cookies brings its own twice.
var (
	loginsOfAddress   = limit.Rule{Name: "lms_login_address", Rate: 300, Period: time.Minute, Burst: 300}
	messagesOfAddress = limit.Rule{Name: "lms_message_address", Rate: 600, Period: time.Minute, Burst: 600}
)

// launchPath begins the addresses of links of work (lti_link of the catalog).
const launchPath = "/lti/launch/"

// publishKeys shows our own keys, which check what we sign.
func (s *Server) publishKeys(w http.ResponseWriter, r *http.Request) error {
	all, err := s.LMSKeys.Published(r.Context(), s.Clock())
	if err != nil {
		return err
	}
	set := struct {
		Keys []json.RawMessage `json:"keys"`
	}{}
	for _, k := range all {
		set.Keys = append(set.Keys, k.Public)
	}
	text, err := json.Marshal(set)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "public, max-age=3600")
	_, _ = w.Write(text) // the LMS may be gone
	return nil
}

// beginLaunch takes the LMS's first request, by GET or POST, and sends the browser back to it.
func (s *Server) beginLaunch(w http.ResponseWriter, r *http.Request) error {
	form, err := s.readLaunch(w, r, loginsOfAddress)
	if form == nil {
		return err
	}
	o, err := org.Find(r.Context(), s.DB, edge.Param(r, "slug"))
	if err != nil {
		return showLaunchFault(w, r, err)
	}
	if form.Get("iss") == "" || form.Get("login_hint") == "" {
		return showLaunchFault(w, r, fault.Field("iss", "not_a_launch", "iss, login_hint: required; this address belongs into an LMS, as the OpenID Connect login URL of LTI 1.3"))
	}
	l, err := s.LMS.Begin(r.Context(), o.ID, form.Get("iss"), form.Get("client_id"), form.Get("lti_storage_target"), s.Clock())
	if err != nil {
		return showLaunchFault(w, r, err)
	}
	to, err := s.authorize(l, o.Slug, form)
	if err != nil {
		return err
	}
	http.SetCookie(w, s.launchCookie(l.State, l.Browser, int(cookieAge.Seconds())))
	if l.Storage == "" {
		http.Redirect(w, r, to.String(), http.StatusSeeOther) //nolint:gosec // where the organization's own registration says
		return nil
	}
	return show(w, r, http.StatusOK, "launch-begin.html", storedLaunch{Frame: l.Storage, Origin: to.Scheme + "://" + to.Host, Key: storageKey(l.State), Value: l.Browser, To: to.String()})
}

// authorize is where the browser goes: to the LMS, with the question that it answers.
func (s *Server) authorize(l lms.Login, slug string, form url.Values) (*url.URL, error) {
	to, err := url.Parse(l.Registration.AuthorizeURL)
	if err != nil {
		return nil, err
	}
	q := to.Query()
	for name, value := range map[string]string{
		"scope": "openid", "response_type": "id_token", "response_mode": "form_post", "prompt": "none",
		"client_id": l.Registration.ClientID, "redirect_uri": lms.NewTool(s.PublicURL, slug).RedirectURL,
		"login_hint": form.Get("login_hint"), "state": l.State, "nonce": l.Nonce,
	} {
		q.Set(name, value)
	}
	for _, name := range []string{"lti_message_hint", "lti_storage_target"} {
		if form.Has(name) {
			q.Set(name, form.Get(name))
		}
	}
	to.RawQuery = q.Encode()
	return to, nil
}

// storedLaunch is for the script that asks the LMS to keep or to give a value.
type storedLaunch struct {
	Frame, Origin, Key, Value string
	To                        string // where to go then
	Token, State              string // what to post then
}

// storageKey names a launch in the LMS's storage.
func storageKey(state string) string { return "registrar_" + short(state) }

func short(state string) string { return state[:min(len(state), 22)] }

const cookieAge = lms.LoginLife

// launchCookie shows, when the LMS sends the browser back, that it is the same one. It goes along with posts of other sites
// and, as it is partitioned, within the pages of an LMS where browsers would keep others.
func (s *Server) launchCookie(state, value string, age int) *http.Cookie {
	c := &http.Cookie{Name: "registrar_lti_" + short(state), Value: value, Path: "/", MaxAge: age, HttpOnly: true, SameSite: http.SameSiteLaxMode}
	if strings.HasPrefix(s.PublicURL, "https:") {
		c.Name, c.Secure, c.SameSite, c.Partitioned = "__Host-"+c.Name, true, http.SameSiteNoneMode, true
	}
	return c
}

// takeMessage takes the LMS's answer, which the browser posts from the LMS's page or, with what the LMS has stored, from ours.
func (s *Server) takeMessage(w http.ResponseWriter, r *http.Request) error {
	form, err := s.readLaunch(w, r, messagesOfAddress)
	if form == nil {
		return err
	}
	m, err := s.readMessage(w, r, form)
	if err != nil {
		return showLaunchFault(w, r, err)
	}
	if m == nil {
		return nil
	}
	if m.Choice != nil {
		return s.beginChoice(w, r, *m)
	}
	v, err := s.takeWork(r, *m)
	if err != nil {
		return showLaunchFault(w, r, err)
	}
	http.SetCookie(w, s.launchCookie(m.State, "", -1))
	edge.Annotate(r.Context(), "user", int64(v.Account.ID))
	readerOf(r.Context()).account = v.Account.Language
	if _, err := s.brandOf(r.Context(), v.Organization); err != nil {
		return err
	}
	t := lms.Ticket{User: v.Account.ID, LeadsTo: home, Note: textsOf(r).T("courses.given", "Title", v.Item.Title)}
	if v.Result != "" {
		t.LeadsTo, t.Note = wire.ResultURL("", v.Result), ""
	}
	if r.Header.Get("Sec-Fetch-Dest") == "document" {
		return s.open(w, r, v.Organization, t)
	}
	return s.offer(w, r, v, t)
}

// readLaunch reads what an LMS sends; nil where that is answered already.
func (s *Server) readLaunch(w http.ResponseWriter, r *http.Request, rule limit.Rule) (url.Values, error) {
	if !s.mayTake(w, r, rule, s.Proxies.Client(r)) {
		return nil, showTooManyLaunches(w, r)
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxLaunch)
	if err := r.ParseForm(); err != nil {
		return nil, showLaunchFault(w, r, fault.New(fault.Invalid, "not_a_launch", "the form could not be read"))
	}
	return r.Form, nil
}

// takeWork takes the message of a learner.
func (s *Server) takeWork(r *http.Request, m launch.Message) (*launch.Visitor, error) {
	kind, item, err := s.target(m.Message)
	if err != nil {
		return nil, err
	}
	v, err := s.Launches.TakeMessage(r.Context(), m, kind, item)
	if err != nil {
		return nil, err
	}
	return &v, s.LMS.Launched(r.Context(), m.Organization, m.Registration, s.Clock())
}

// readMessage checks the LMS's answer; nil where the browser is asked first to show that it began the launch.
func (s *Server) readMessage(w http.ResponseWriter, r *http.Request, form url.Values) (*launch.Message, error) {
	o, err := org.Find(r.Context(), s.DB, edge.Param(r, "slug"))
	if err != nil {
		return nil, err
	}
	state := form.Get("state")
	l, err := s.LMS.Pending(r.Context(), o.ID, state, s.Clock())
	if err != nil {
		return nil, err
	}
	if reason := form.Get("error"); reason != "" {
		return nil, fault.Field("error", "launch_refused", "error: the LMS did not answer the launch (%s)", word(reason+" "+form.Get("error_description")))
	}
	if !s.mayTake(w, r, launchesOfKey, "lms-"+strconv.FormatInt(int64(l.Registration.ID), 10)) {
		return nil, showTooManyLaunches(w, r)
	}
	name := s.launchCookie(state, "", 0).Name
	shown := form.Get("registrar_browser") // what the LMS has stored; nobody else knows it
	if c, err := r.Cookie(name); err == nil {
		shown = c.Value
	}
	if !l.Same(shown) {
		if shown != "" || l.Storage == "" || form.Has("registrar_browser") {
			return nil, errBrowser
		}
		return nil, s.askStorage(w, r, l, form)
	}
	m, err := s.KeySets.Read(r.Context(), o.ID, l.Registration, form.Get("id_token"))
	if err != nil {
		return nil, err
	}
	if !l.Answers(m) {
		return nil, fault.Field("nonce", "not_a_launch", "nonce: the LMS answers another launch")
	}
	// Also of a message that is refused below: teachers may open links to try them.
	if err := s.LMS.Note(r.Context(), o.ID, l.Registration.ID, m, s.Clock()); err != nil {
		return nil, err
	}
	return &launch.Message{Message: m, Organization: o.ID, Registration: l.Registration.ID, State: state}, nil
}

var errBrowser = fault.Field("state", "launch_refused",
	"state: the launch was not begun in this browser, or the browser has kept nothing of it. Open the link in the LMS again; if that does not help, allow cookies, or let the LMS open this tool in a new window")

// askStorage lets a script ask the LMS for what it has stored, and post the message again with it.
func (s *Server) askStorage(w http.ResponseWriter, r *http.Request, l lms.Login, form url.Values) error {
	at, err := url.Parse(l.Registration.AuthorizeURL)
	if err != nil {
		return err
	}
	return show(w, r, http.StatusOK, "launch-check.html", storedLaunch{Frame: l.Storage, Origin: at.Scheme + "://" + at.Host, Key: storageKey(l.State), Token: form.Get("id_token"), State: l.State})
}

// target is the work that a link means: what was chosen for it, or else the item whose lti_link is its address. No browser is sent there.
func (s *Server) target(m lms.Message) (catalog.Kind, id.Item, error) {
	rest, ours := strings.CutPrefix(m.Target, s.PublicURL+launchPath)
	if m.Item != "" && strings.HasPrefix(m.Target, s.PublicURL+"/") { // some LMSes send one address of the tool for all of its links
		rest, ours = m.Item, true
	}
	kind, number, found := strings.Cut(strings.TrimSuffix(rest, "/"), "/")
	n, err := strconv.ParseInt(number, 10, 64)
	if !ours || !found || err != nil || n < 1 {
		return "", 0, fault.Field("target_link_uri", "not_a_launch",
			"target_link_uri: it is not the lti_link of an item of the catalog, which begins with %s; use that as the address of the link in the LMS", s.PublicURL+launchPath)
	}
	return catalog.Kind(kind), id.Item(n), nil
}

// offer is a button for a window of its own: within another site's page a browser keeps no session of ours.
func (s *Server) offer(w http.ResponseWriter, r *http.Request, v *launch.Visitor, t lms.Ticket) error {
	text, err := s.LMS.Issue(r.Context(), v.Organization, t, s.Clock())
	if err != nil {
		return err
	}
	return show(w, r, http.StatusOK, "launch-open.html", struct{ Title, Slug, Ticket string }{v.Item.Title, edge.Param(r, "slug"), text})
}

// openTicket begins the session of a launch that was taken within the LMS's page.
func (s *Server) openTicket(w http.ResponseWriter, r *http.Request) error {
	o, err := org.Find(r.Context(), s.DB, edge.Param(r, "slug"))
	if err != nil {
		return showLaunchFault(w, r, err)
	}
	t, err := s.LMS.Redeem(r.Context(), o.ID, r.PostFormValue("ticket"), s.Clock())
	if err != nil {
		return showLaunchFault(w, r, err)
	}
	edge.Annotate(r.Context(), "user", int64(t.User))
	return s.open(w, r, o.ID, t)
}

func (s *Server) open(w http.ResponseWriter, r *http.Request, o id.Organization, t lms.Ticket) error {
	if err := s.Sessions.Launch(r.Context(), t.User, o); err != nil {
		return err
	}
	if t.Note != "" {
		s.Sessions.Flash(r.Context(), t.Note)
	}
	http.Redirect(w, r, t.LeadsTo, http.StatusSeeOther)
	return nil
}

// framed lets the pages of a launch stand in an LMS's, and run the site's script. There is nothing on them to be pressed by
// mistake: the one button opens a window.
func framed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", strings.Replace(policy, "frame-ancestors 'none'", "frame-ancestors *", 1)+"; script-src 'self'")
		next.ServeHTTP(w, r)
	})
}

// word is a text of an LMS's as it may be shown.
func word(text string) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return -1
		}
		return r
	}, strings.TrimSpace(text))
	return text[:min(len(text), 200)]
}

// refuseLaunchVisit is for who opens an address of LTI 1.3 without an LMS.
func (*Server) refuseLaunchVisit(w http.ResponseWriter, r *http.Request) error {
	t := textsOf(r)
	w.Header().Set("Allow", http.MethodPost)
	return show(w, r, http.StatusMethodNotAllowed, "failed.html",
		failPage{Title: t.T("launch.visit_title"), Text: t.T("launch.redirect")})
}
