package console

import (
	"context"
	"encoding/csv"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/registrar-dev/registrar/api-server/internal/edge"
	"github.com/registrar-dev/registrar/internal/domain/roster"
	"github.com/registrar-dev/registrar/internal/domain/roster/diff"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/id"
)

type runsPage struct {
	frame
	Runs    []roster.Run
	Running []runningRun
	Older   id.RosterRun // where the next page begins; 0: there is none
}

type runningRun struct {
	ID id.RosterRun
	progress
}

// running are those of the runs that have not come to an end.
func running(runs []roster.Run) (all []runningRun) {
	for _, run := range runs {
		if !run.State.Over() {
			all = append(all, runningRun{run.ID, progressOf(run)})
		}
	}
	return all
}

// pageOfRuns is how many runs a page lists.
const pageOfRuns = 50

func (s *Server) showRuns(w http.ResponseWriter, r *http.Request) error {
	f, err := s.frame(r, "roster-runs", "Roster imports")
	if err != nil {
		return err
	}
	runs, err := roster.List(r.Context(), s.DB, f.Here.Organization, id.RosterRun(number(r, "below")), pageOfRuns)
	if err != nil {
		return err
	}
	p := runsPage{frame: f, Runs: runs, Running: running(runs)}
	if len(runs) == pageOfRuns {
		p.Older = runs[len(runs)-1].ID
	}
	return show(w, http.StatusOK, "runs.html", p)
}

// number reads a query parameter that continues a list; whatever is none begins it.
func number(r *http.Request, name string) (n int64) {
	for _, d := range r.URL.Query().Get(name) {
		if d < '0' || d > '9' || n > 1<<53 {
			return 0
		}
		n = 10*n + int64(d-'0')
	}
	return n
}

// group is the changes of one kind.
type group struct {
	Title   string
	Total   int
	Changes []roster.Change
}

type runPage struct {
	frame
	Run     roster.Run
	Held    bool
	Applied bool // and can be taken back
	Running bool
	progress
	Changed int // neither added nor deactivated
	Groups  []group
	Classes []roster.ClassChange // the first ones
	Issues  []roster.Issue

	ClassTotal int
}

// progress is how far a running import is.
type progress struct {
	Total, Done int64 // changes to carry out, and carried out; Total 0: not known yet
}

func progressOf(run roster.Run) progress {
	if run.State != roster.Applying {
		return progress{}
	}
	return progress{max(int64(run.Create+run.Update), run.PeopleDone), run.PeopleDone}
}

// shown is how many changes of a kind, and issues, a page shows.
const shown = 200

func (s *Server) showRun(w http.ResponseWriter, r *http.Request) error {
	f, run, err := s.run(r)
	if err != nil {
		return err
	}
	c := run.Counts
	p := runPage{frame: f, Run: run, Held: run.State == roster.Held, Applied: run.State == roster.Applied && run.Undoes == 0,
		Running: !run.State.Over(), progress: progressOf(run), Changed: c.Update - c.Deactivate}
	for _, g := range []struct {
		title  string
		action roster.Action
		total  int
	}{{"Deactivated", roster.Leave, c.Deactivate}, {"Added", roster.Create, c.Create}, {"Changed", roster.Update, p.Changed}} {
		if g.total == 0 {
			continue
		}
		changes, err := diff.ChangesOf(r.Context(), s.DB, run.ID, g.action, 0, shown)
		if err != nil {
			return err
		}
		p.Groups = append(p.Groups, group{g.title, g.total, changes})
	}
	if p.ClassTotal = c.ClassesCreated + c.ClassesRenamed + c.SeatsAdded + c.SeatsRemoved; p.ClassTotal > 0 {
		if p.Classes, err = diff.NextClassChanges(r.Context(), s.DB, run.ID, 0, shown); err != nil {
			return err
		}
	}
	if p.Issues, _, err = diff.Issues(r.Context(), s.DB, run.ID, 0, shown); err != nil {
		return err
	}
	return show(w, http.StatusOK, "run.html", p)
}

// described says in words what a change does.
func described(c roster.Change) string {
	var words []string
	say := func(when bool, text string) {
		if when {
			words = append(words, text)
		}
	}
	say(c.Effects.Has(roster.CreateAccount), "a new account")
	say(c.Effects.Has(roster.CreateMembership) && !c.Effects.Has(roster.CreateAccount), "has an account already")
	say(c.Effects.Has(roster.Activate), "active again")
	say(c.Effects.Has(roster.Deactivate), "becomes inactive")
	if c.Effects.Has(roster.ChangeProfile) {
		say(c.BeforeEmail != c.Email, "the email was "+c.BeforeEmail)
		say(c.BeforeFirst != c.FirstName || c.BeforeLast != c.LastName, "the name was "+strings.TrimSpace(c.BeforeFirst+" "+c.BeforeLast))
	}
	say(c.Effects.Has(roster.ReplaceIdentity), "the id was "+c.BeforeID)
	say(c.Effects.Has(roster.CreateIdentity) && c.Action == roster.Update, "a student already, and known by this id from now on")
	say(c.Effects.Has(roster.DropIdentity), "not known by this id any more")
	say(c.Effects == roster.MarkPresent, "in the source again")
	say(c.Effects == roster.MarkAbsent, "in the source no more")
	return strings.Join(words, "; ")
}

// classChangeText says in words what a change of a class does.
func classChangeText(c roster.ClassChange) string {
	switch c.Action {
	case roster.CreateClass:
		return "a new class, " + c.Name
	case roster.RenameClass:
		return "is called " + c.Name + ", and was " + c.Before
	case roster.AddSeat:
		return c.Person + " gets a place"
	case roster.RemoveSeat:
		return c.Person + " loses the place"
	}
	return string(c.Action)
}

// run is the one that the path names.
func (s *Server) run(r *http.Request) (frame, roster.Run, error) {
	f, err := s.frame(r, "roster-runs", "Roster import")
	if err != nil {
		return f, roster.Run{}, err
	}
	which, err := edge.IDParam[id.RosterRun](r, "id")
	if err != nil {
		return f, roster.Run{}, err
	}
	run, err := roster.Find(r.Context(), s.DB, f.Here.Organization, which)
	return f, run, err
}

func (s *Server) downloadIssues(w http.ResponseWriter, r *http.Request) error {
	_, run, err := s.run(r)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/csv; charset=utf-8")
	w.Header().Set("Content-Disposition", `attachment; filename="roster-import-`+formatID(run.ID)+`-issues.csv"`)
	return diff.WriteIssues(r.Context(), s.DB, run.ID, csv.NewWriter(w))
}

func (s *Server) approveRun(w http.ResponseWriter, r *http.Request) error {
	return s.decide(w, r, func(ctx context.Context, by audit.Actor, run roster.Run) (id.RosterRun, error) {
		return run.ID, roster.Approve(ctx, s.DB, by, run.Organization, run.ID, s.Clock())
	})
}

func (s *Server) discardRun(w http.ResponseWriter, r *http.Request) error {
	return s.decide(w, r, func(ctx context.Context, by audit.Actor, run roster.Run) (id.RosterRun, error) {
		return run.ID, roster.Discard(ctx, s.DB, by, run.Organization, run.ID, s.Clock())
	})
}

func (s *Server) undoRun(w http.ResponseWriter, r *http.Request) error {
	return s.decide(w, r, func(ctx context.Context, by audit.Actor, run roster.Run) (id.RosterRun, error) {
		return roster.Undo(ctx, s.DB, by, run.Organization, run.ID, s.Clock())
	})
}

// runPatience is how long a page waits for a run that it has set going: a small one is over
// by then, of another one the run's own page shows how far it is.
const runPatience = 2 * time.Second

// decide does what the visitor decided and shows the run that it led to.
func (s *Server) decide(w http.ResponseWriter, r *http.Request, do func(context.Context, audit.Actor, roster.Run) (id.RosterRun, error)) error {
	ctx := r.Context()
	f, run, err := s.run(r)
	if err != nil {
		return err
	}
	next, err := do(ctx, f.Person.Actor(), run)
	if err != nil {
		return err
	}
	done, err := roster.Await(ctx, s.DB, s.Rosters, run.Organization, next, runPatience)
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	note := "The import is " + string(done.State) + "."
	if !done.State.Over() {
		note = "The import has begun. This page shows how far it is."
	}
	return s.back(w, r, f, "/roster-runs/"+formatID(next)+"/", note)
}
