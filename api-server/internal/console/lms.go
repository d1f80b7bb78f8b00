package console

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/registrar-dev/registrar/api-server/internal/edge"
	"github.com/registrar-dev/registrar/internal/domain/catalog"
	"github.com/registrar-dev/registrar/internal/domain/lms"
	"github.com/registrar-dev/registrar/internal/domain/student"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
)

// lmsPage is the list of LMSes that are registered for LTI 1.3, and a form for one more or for another look of one.
type lmsPage struct {
	frame
	Registrations []lms.Registration
	Form          lms.Registration // ID 0: a new one
	Deployments   string           // as typed: one a line
	Tool          lms.Tool         // what is entered in the LMS
	LinkStart     string           // of the addresses of links
	Courses       []lms.Context
	Marks         []lms.Sent
	Students      map[id.User]student.Account
	Items         map[id.Item]catalog.Item
	GivenUp       bool   // some marks
	Link          string // by which an LMS may register itself, once; "": none was made now
}

const lmsPath = "/lms/"

func (s *Server) showLMSes(w http.ResponseWriter, r *http.Request) error {
	f, err := s.frame(r, "lms", "LMS")
	if err != nil {
		return err
	}
	return s.listLMSes(w, r, http.StatusOK, lmsPage{frame: f})
}

func (s *Server) listLMSes(w http.ResponseWriter, r *http.Request, status int, p lmsPage) (err error) {
	if p.Form.ID == 0 {
		if p.Registrations, err = lms.List(r.Context(), s.DB, p.Here.Organization); err != nil {
			return err
		}
	} else {
		if p.Courses, err = lms.Contexts(r.Context(), s.DB, p.Here.Organization, p.Form.ID); err != nil {
			return err
		}
		if err := s.readMarks(r, &p); err != nil {
			return err
		}
	}
	p.Tool = lms.NewTool(s.PublicURL, p.Here.Slug)
	p.LinkStart = s.PublicURL + "/lti/launch/"
	return show(w, status, "lms.html", p)
}

// readMarks reads the marks for an LMS and their states.
func (s *Server) readMarks(r *http.Request, p *lmsPage) (err error) {
	if p.Marks, err = lms.Marks(r.Context(), s.DB, p.Here.Organization, p.Form.ID); err != nil {
		return err
	}
	var users []id.User
	var items []id.Item
	for _, m := range p.Marks {
		users, items = append(users, m.User), append(items, m.Item)
		p.GivenUp = p.GivenUp || m.State() == "given up"
	}
	if p.Students, err = student.FindAll(r.Context(), s.DB, p.Here.Organization, users); err != nil {
		return err
	}
	p.Items, err = catalog.Load(r.Context(), s.DB, p.Here.Organization, items)
	return err
}

// sendMarksAgain makes the marks due that were given up.
func (s *Server) sendMarksAgain(w http.ResponseWriter, r *http.Request) error {
	f, found, err := s.findLMS(r)
	if err != nil {
		return err
	}
	if err := s.LMS.SendAgain(r.Context(), f.Here.Organization, found.ID, s.Clock()); err != nil {
		return s.refuseLMS(w, r, lmsPage{frame: f, Form: found, Deployments: strings.Join(found.Deployments, "\n")}, err)
	}
	return s.back(w, r, f, lmsPath+strconv.FormatInt(int64(found.ID), 10)+"/", "The marks are sent again.")
}

// pullLMSCourse turns the roster of a course on or off, or has it pulled now.
func (s *Server) pullLMSCourse(w http.ResponseWriter, r *http.Request) error {
	f, found, err := s.findLMS(r)
	if err != nil {
		return err
	}
	course, err := edge.IDParam[id.LMSContext](r, "course")
	if err != nil {
		return err
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	by, org, note := f.Person.Actor(), f.Here.Organization, "The roster is being pulled; look again in a moment."
	switch r.PostFormValue("do") {
	case "on":
		_, err = s.LMS.SetPull(r.Context(), by, org, found.ID, course, true, s.Clock())
	case "off":
		note = "The roster is pulled no more. Its students stay."
		_, err = s.LMS.SetPull(r.Context(), by, org, found.ID, course, false, s.Clock())
	default:
		_, err = s.LMS.AskPull(r.Context(), by, org, found.ID, course, s.Clock())
	}
	if err != nil {
		return s.refuseLMS(w, r, lmsPage{frame: f, Form: found, Deployments: strings.Join(found.Deployments, "\n")}, err)
	}
	return s.back(w, r, f, lmsPath+strconv.FormatInt(int64(found.ID), 10)+"/", note)
}

// showLMS has the settings of one.
func (s *Server) showLMS(w http.ResponseWriter, r *http.Request) error {
	f, found, err := s.findLMS(r)
	if err != nil {
		return err
	}
	return s.listLMSes(w, r, http.StatusOK, lmsPage{frame: f, Form: found, Deployments: strings.Join(found.Deployments, "\n")})
}

func (s *Server) findLMS(r *http.Request) (f frame, found lms.Registration, err error) {
	if f, err = s.frame(r, "lms", "LMS"); err != nil {
		return f, found, err
	}
	which, err := edge.IDParam[id.Registration](r, "id")
	if err != nil {
		return f, found, err
	}
	found, err = lms.Find(r.Context(), s.DB, f.Here.Organization, which)
	return f, found, err
}

func (p *lmsPage) read(r *http.Request) {
	text := func(field string) string { return strings.TrimSpace(r.PostFormValue(field)) }
	p.Deployments = r.PostFormValue("deployments")
	p.Form.Name, p.Form.Issuer, p.Form.ClientID = text("name"), text("issuer"), text("client_id")
	p.Form.AuthorizeURL, p.Form.TokenURL, p.Form.Audience, p.Form.KeysURL = text("authorize_url"), text("token_url"), text("token_audience"), text("keys_url")
	p.Form.Deployments = strings.Split(p.Deployments, "\n")
}

func (s *Server) addLMS(w http.ResponseWriter, r *http.Request) error {
	f, err := s.frame(r, "lms", "LMS")
	if err != nil {
		return err
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	p := lmsPage{frame: f}
	p.read(r)
	if _, err = s.LMS.Add(r.Context(), f.Person.Actor(), f.Here.Organization, p.Form, s.Clock()); err != nil {
		return s.refuseLMS(w, r, p, err)
	}
	return s.back(w, r, f, lmsPath, "The LMS is registered. Open a link in it to try it.")
}

func (s *Server) changeLMS(w http.ResponseWriter, r *http.Request) error {
	f, found, err := s.findLMS(r)
	if err != nil {
		return err
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	p := lmsPage{frame: f, Form: found}
	p.read(r)
	if _, err = s.LMS.Change(r.Context(), f.Person.Actor(), f.Here.Organization, p.Form, s.Clock()); err != nil {
		return s.refuseLMS(w, r, p, err)
	}
	return s.back(w, r, f, lmsPath, "The LMS’s settings are changed.")
}

// linkLMS makes the link by which an LMS may register itself.
func (s *Server) linkLMS(w http.ResponseWriter, r *http.Request) error {
	f, err := s.frame(r, "lms", "LMS")
	if err != nil {
		return err
	}
	p := lmsPage{frame: f}
	token, err := s.LMS.Invite(r.Context(), f.Person.Actor(), f.Here.Organization, s.Clock())
	if err != nil {
		return s.refuseLMS(w, r, p, err)
	}
	p.Link = s.PublicURL + lms.RegisterPath + f.Here.Slug + "/" + token + "/"
	return s.listLMSes(w, r, http.StatusCreated, p)
}

// refuseLMS shows the form again with what is wrong.
func (s *Server) refuseLMS(w http.ResponseWriter, r *http.Request, p lmsPage, err error) error {
	status := http.StatusBadRequest
	switch fault.KindOf(err) {
	case fault.Invalid:
	case fault.Conflict, fault.NotFound:
		status = http.StatusConflict
	default:
		return err
	}
	p.Fault = err.Error()
	return s.listLMSes(w, r, status, p)
}

func (s *Server) removeLMS(w http.ResponseWriter, r *http.Request) error {
	f, found, err := s.findLMS(r)
	if err != nil {
		return err
	}
	if err := s.LMS.Remove(r.Context(), f.Person.Actor(), f.Here.Organization, found.ID, s.Clock()); err != nil {
		return err
	}
	return s.back(w, r, f, lmsPath, found.Name+" is removed: it opens nothing any more.")
}

// forgetLMSUser lets a student come from the LMS as another of its users.
func (s *Server) forgetLMSUser(w http.ResponseWriter, r *http.Request) error {
	f, found, err := s.findLMS(r)
	if err != nil {
		return err
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	user, err := s.studentCalled(r, f, r.PostFormValue("email"))
	if err == nil {
		err = s.LMS.Forget(r.Context(), f.Person.Actor(), f.Here.Organization, found.ID, user, s.Clock())
	}
	if err != nil {
		return s.refuseLMS(w, r, lmsPage{frame: f, Form: found, Deployments: strings.Join(found.Deployments, "\n")}, err)
	}
	return s.back(w, r, f, lmsPath, "The student’s next launch is taken from whichever user of the LMS has the address.")
}

// studentCalled finds who has the address among the organization's own. NotFound says no more of others.
func (s *Server) studentCalled(r *http.Request, f frame, text string) (id.User, error) {
	address, err := student.ParseEmail(text)
	if err != nil {
		return 0, err
	}
	return lms.Called(r.Context(), s.DB, f.Here.Organization, string(address))
}
