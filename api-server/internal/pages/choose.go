package pages

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/registrar-dev/registrar/api-server/internal/edge"
	"github.com/registrar-dev/registrar/internal/domain/catalog"
	"github.com/registrar-dev/registrar/internal/domain/lms"
	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/flow/launch"
	"github.com/registrar-dev/registrar/internal/flow/wire"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
)

// Deep Linking of LTI 1.3: a teacher in an LMS chooses from the catalog. The page may stand in the LMS's, where there are no cookies: each
// step is a form that brings the choice's secret and what is chosen so far. Nobody is signed in by it.

var errTeacher = fault.New(fault.Forbidden, "no_teacher", "the LMS did not send you as a teacher or administrator, and choosing work for a course is for them")

// beginChoice takes the message of a teacher, and shows the catalog.
func (s *Server) beginChoice(w http.ResponseWriter, r *http.Request, m launch.Message) error {
	if !m.Teaches() {
		return showLaunchFault(w, r, errTeacher)
	}
	token, err := s.LMS.Choose(r.Context(), m.Organization, m.Registration, m.State, *m.Choice, s.Clock())
	if err != nil {
		return showLaunchFault(w, r, err)
	}
	http.SetCookie(w, s.launchCookie(m.State, "", -1))
	if err := s.LMS.Launched(r.Context(), m.Organization, m.Registration, s.Clock()); err != nil {
		return err
	}
	return s.showChoice(w, r, http.StatusOK, choosing{organization: m.Organization, request: *m.Choice, Token: token, Page: 1})
}

// choosing is a step of a choice.
type choosing struct {
	organization id.Organization
	request      lms.ChoiceRequest
	items        map[id.Item]catalog.Item // that are chosen
	order        []id.Item                // of items

	Brand         brand
	Action        string
	Token         string
	Search        string
	Page          int
	More          bool
	Fault         string
	Chosen, Found []choiceLine
}

// choiceLine is an item to be chosen.
type choiceLine struct {
	ID               id.Item
	Title, Type, Max string
	Several, Checked bool
}

// maxSearch is in characters.
const maxSearch = 200

// goOnChoosing takes a step of a choice: it looks for items, turns pages, and ends it.
func (s *Server) goOnChoosing(w http.ResponseWriter, r *http.Request) error {
	form, err := s.readLaunch(w, r, messagesOfAddress)
	if form == nil {
		return err
	}
	o, err := org.Find(r.Context(), s.DB, edge.Param(r, "slug"))
	if err != nil {
		return showLaunchFault(w, r, err)
	}
	token := form.Get("choice")
	c, err := s.LMS.Choosing(r.Context(), o.ID, token, s.Clock())
	if err != nil {
		return showLaunchFault(w, r, err)
	}
	step := choosing{organization: o.ID, request: c.ChoiceRequest, Token: token}
	if err := s.readChoice(r, &step, form); err != nil {
		return showLaunchFault(w, r, err)
	}
	t, do := textsOf(r), form.Get("do")
	switch limit := step.limit(); {
	case do == "cancel":
		return s.endChoice(w, r, step, c, nil, t.T("choose.cancelled"))
	case len(step.order) > limit:
		step.Fault = t.T("choose.many", "Count", limit)
	case do == "add" && len(step.order) == 0:
		step.Fault = t.T("choose.nothing")
	case do == "add":
		return s.endChoice(w, r, step, c, s.links(step), "")
	}
	if step.Fault != "" {
		return s.showChoice(w, r, http.StatusBadRequest, step)
	}
	return s.showChoice(w, r, http.StatusOK, step)
}

func (c choosing) limit() int {
	if c.request.Multiple {
		return lms.MaxChosen
	}
	return 1
}

// readChoice reads what is chosen so far, and where in the catalog the person is. NotFound for items that the organization does not
// offer.
func (s *Server) readChoice(r *http.Request, step *choosing, form url.Values) error {
	step.Search = strings.ToValidUTF8(strings.ReplaceAll(form.Get("search"), "\x00", ""), "")
	if utf8.RuneCountInString(step.Search) > maxSearch {
		step.Search = string([]rune(step.Search)[:maxSearch])
	}
	page, _ := strconv.Atoi(form.Get("page")) // 0 for what is no number
	switch form.Get("do") {
	case "search":
		page = 1
	case "next":
		page = min(page, 1<<20) + 1
	case "previous":
		page--
	}
	step.Page = max(page, 1)
	if sent := form["item"]; len(sent) <= 2*lms.MaxChosen {
		for _, text := range sent {
			n, err := strconv.ParseInt(text, 10, 64)
			if err != nil || n < 1 {
				return errChosen
			}
			step.order = append(step.order, id.Item(n))
		}
	} else {
		return errChosen
	}
	slices.Sort(step.order)
	step.order = slices.Compact(step.order)
	items, err := catalog.Load(r.Context(), s.DB, step.organization, step.order)
	if err != nil {
		return err
	}
	for _, which := range step.order {
		if i, found := items[which]; !found || !i.Active {
			return errChosen
		}
	}
	step.items = items
	return nil
}

var errChosen = fault.New(fault.NotFound, "item_not_found", "the institute’s catalog does not have what was chosen; begin it in the LMS again")

// showChoice shows a page of the catalog, after what is chosen already and is not on it.
func (s *Server) showChoice(w http.ResponseWriter, r *http.Request, status int, step choosing) (err error) {
	if step.Brand, err = s.brandOf(r.Context(), step.organization); err != nil {
		return err
	}
	found, more, err := catalog.Search(r.Context(), s.DB, step.organization, step.Search, step.Page)
	if err != nil {
		return err
	}
	step.Action, step.More = lms.DeepLinkPath+step.Brand.Slug+"/", more
	t := textsOf(r)
	line := func(i catalog.Item, checked bool) choiceLine {
		return choiceLine{i.ID, i.Title, catalog.TypeLabel(i.Type), t.Digits(i.MaxScore.String()), step.request.Multiple, checked}
	}
	shown := map[id.Item]bool{}
	for _, i := range found {
		shown[i.ID] = true
		step.Found = append(step.Found, line(i, slices.Contains(step.order, i.ID)))
	}
	for _, which := range step.order {
		if !shown[which] {
			step.Chosen = append(step.Chosen, line(step.items[which], true))
		}
	}
	return show(w, r, status, "choose.html", step)
}

// links are what the LMS is to make.
func (s *Server) links(step choosing) (all []lms.ChosenItem) {
	for _, which := range step.order {
		i := step.items[which]
		all = append(all, lms.ChosenItem{Name: fmt.Sprintf("%s/%d", i.Kind, i.ID), Title: i.Title, Link: wire.NewCatalogItem(i, s.PublicURL).LTILink, MaxScore: i.MaxScore})
	}
	return all
}

// endChoice sends the browser back to the LMS with the answer, which it may post there and nowhere else.
func (s *Server) endChoice(w http.ResponseWriter, r *http.Request, step choosing, c lms.Choice, items []lms.ChosenItem, text string) error {
	to, err := url.Parse(c.ReturnURL)
	if err != nil {
		return err
	}
	signed, err := s.LMSKeys.Sign(r.Context(), c.Answer(items, text, s.Clock()), s.Clock())
	if err != nil {
		return err
	}
	if err := s.LMS.Chosen(r.Context(), step.organization, step.Token, s.Clock()); err != nil {
		return showLaunchFault(w, r, err)
	}
	h := w.Header()
	h.Set("Content-Security-Policy", strings.Replace(h.Get("Content-Security-Policy"), "form-action 'self'", "form-action "+to.Scheme+"://"+to.Host, 1))
	return show(w, r, http.StatusOK, "choose-back.html", struct{ To, Token string }{c.ReturnURL, signed})
}
