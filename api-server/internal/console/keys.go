package console

import (
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/registrar-dev/registrar/api-server/internal/edge"
	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
)

type keysPage struct {
	frame
	Keys    []org.Key
	Beside  int // keys that work beside any one that does, without those of the sandbox
	Now     time.Time
	Sandbox bool // the organization has one
	Form    keyForm
	Made    *org.Key // just now
	Text    string   // its text, shown once
}

// keyForm is what a person chooses of a key, as typed.
type keyForm struct {
	Name, Access, Networks, ExpiresOn string
	Scopes                            []org.Scope // the ticked ones
	Sandbox                           bool        // it is for the sandbox
}

// AllScopes are to tick.
func (keyForm) AllScopes() []org.Scope { return org.Scopes() }

// Ticked says whether the box of the scope is ticked.
func (f keyForm) Ticked(s org.Scope) bool { return slices.Contains(f.Scopes, s) }

// ScopeMeaning says in words what a key with the scope may do.
func (keyForm) ScopeMeaning(s org.Scope) string {
	switch s {
	case org.ScopeProvision:
		return "take students in; end, suspend and resume their access"
	case org.ScopeRoster:
		return "import rosters"
	case org.ScopeStudentsRead:
		return "look students up and list them"
	case org.ScopeCatalogRead:
		return "list courses and the catalog"
	case org.ScopeAssignments:
		return "assign and withdraw work, and list assignments"
	case org.ScopeAssignmentsRead:
		return "list assignments"
	case org.ScopeResultsRead:
		return "list results"
	case org.ScopeReportsRead:
		return "daily activity and progress"
	case org.ScopeEventsRead:
		return "list events"
	case org.ScopeExplainRead:
		return "ask what happened to a student, an event or a delivery, and why"
	case org.ScopeWebhooks:
		return "add, change and delete webhook URLs, and see and repeat their deliveries"
	case org.ScopeWebhooksRead:
		return "see webhook URLs and their deliveries"
	}
	return ""
}

// key is what the form asks for. A day to expire on is the last one on which the key works. Faults are Invalid.
func (f keyForm) key(zone *time.Location) (k org.Key, err error) {
	var faults fault.List
	k = org.Key{Name: f.Name, Access: org.Access(f.Access), Sandbox: f.Sandbox}
	if k.Access == org.Scoped {
		k.Scopes = f.Scopes
	}
	networks := strings.FieldsFunc(f.Networks, func(r rune) bool { return r == ',' || unicode.IsSpace(r) })
	if k.Networks, err = org.ParseNetworks(networks); err != nil {
		_ = faults.Add(err)
	}
	if f.ExpiresOn != "" {
		last, err := clock.ParseDate(f.ExpiresOn)
		if err != nil {
			_ = faults.Add(fault.Field("expires_on", "not_a_date", "Write the last day as YYYY-MM-DD."))
		}
		k.ExpiresAt = clock.DayStart(last.AddDays(1), zone)
	}
	return k, faults.Err()
}

func readKeyForm(w http.ResponseWriter, r *http.Request) keyForm {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	f := keyForm{Name: strings.TrimSpace(r.PostFormValue("name")), Access: r.PostFormValue("access"),
		Networks: strings.TrimSpace(r.PostFormValue("networks")), ExpiresOn: strings.TrimSpace(r.PostFormValue("expires_on")),
		Sandbox: r.PostFormValue("sandbox") != ""}
	if f.Access == "" {
		f.Access = string(org.Full)
	}
	for _, name := range r.PostForm["scopes"] {
		if s := org.Scope(name); slices.Contains(org.Scopes(), s) {
			f.Scopes = append(f.Scopes, s)
		}
	}
	return f
}

func (s *Server) showKeys(w http.ResponseWriter, r *http.Request) error {
	f, err := s.frame(r, "api-keys", "API keys")
	if err != nil {
		return err
	}
	return s.listKeys(w, r, http.StatusOK, keysPage{frame: f, Form: keyForm{Access: string(org.Full)}})
}

func (s *Server) listKeys(w http.ResponseWriter, r *http.Request, status int, p keysPage) (err error) {
	if p.Keys, err = org.Keys(r.Context(), s.DB, p.Here.Organization); err != nil {
		return err
	}
	if p.Sandbox, err = s.hasSandbox(r.Context(), p.Here.Organization); err != nil {
		return err
	}
	p.Now = s.Clock()
	p.Beside = max(workingKeys(p.Keys, p.Now)-1, 0)
	return show(w, status, "keys.html", p)
}

// workingKeys counts the keys that reach the organization itself.
func workingKeys(all []org.Key, now time.Time) (n int) {
	for _, k := range all {
		if k.Works(now) && !k.Sandbox {
			n++
		}
	}
	return n
}

func (s *Server) createKey(w http.ResponseWriter, r *http.Request) error {
	f, err := s.frame(r, "api-keys", "API keys")
	if err != nil {
		return err
	}
	p := keysPage{frame: f, Form: readKeyForm(w, r)}
	wanted, err := p.Form.key(s.Zone)
	if err == nil {
		var key org.Key
		if key, p.Text, err = s.Accounts.CreateKey(r.Context(), f.Person.Actor(), f.organization(), wanted); err == nil {
			p.Made, p.Form = &key, keyForm{Access: string(org.Full)}
			return s.listKeys(w, r, http.StatusCreated, p)
		}
	}
	if kind := fault.KindOf(err); kind == fault.Invalid || kind == fault.NotFound { // its sandbox was deleted meanwhile
		p.Fault = err.Error()
		return s.listKeys(w, r, http.StatusBadRequest, p)
	}
	return err
}

func (s *Server) revokeKey(w http.ResponseWriter, r *http.Request) error {
	f, err := s.frame(r, "api-keys", "API keys")
	if err != nil {
		return err
	}
	which, err := edge.IDParam[id.APIKey](r, "id")
	if err != nil {
		return err
	}
	key, err := org.RevokeKey(r.Context(), s.DB, f.Person.Actor(), f.Here.Organization, which, s.Clock())
	if err != nil {
		return err
	}
	s.Keys.Forget(f.Here.Organization)
	return s.back(w, r, f, "/api-keys/", "The key "+key.Name+" is revoked: calls with it are refused from now on.")
}
