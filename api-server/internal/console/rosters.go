package console

import (
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/registrar-dev/registrar/api-server/internal/edge"
	"github.com/registrar-dev/registrar/api-server/internal/upload"
	"github.com/registrar-dev/registrar/internal/domain/roster"
	"github.com/registrar-dev/registrar/internal/domain/roster/diff"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

type runsPage struct {
	frame
	Sources []string // that files were sent from, or may be
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

// pageOfRuns is how many runs a page lists, sourcesShown how many sources it offers.
const pageOfRuns, sourcesShown = 50, 50

func (s *Server) showRuns(w http.ResponseWriter, r *http.Request) error {
	f, err := s.frame(r, "roster-runs", "Roster imports")
	if err != nil {
		return err
	}
	return s.listRuns(w, r, http.StatusOK, f)
}

func (s *Server) listRuns(w http.ResponseWriter, r *http.Request, status int, f frame) error {
	runs, err := roster.List(r.Context(), s.DB, f.Here.Organization, id.RosterRun(number(r, "below")), pageOfRuns)
	if err != nil {
		return err
	}
	p := runsPage{frame: f, Runs: runs, Running: running(runs)}
	if len(runs) == pageOfRuns {
		p.Older = runs[len(runs)-1].ID
	}
	if p.Sources, err = roster.Sources(r.Context(), s.DB, f.Here.Organization, sourcesShown); err != nil {
		return err
	}
	return show(w, status, "runs.html", p)
}

// Streams says which requests' bodies are read as they come (edge.Options).
func Streams(r *http.Request) bool {
	slug, found := strings.CutPrefix(strings.TrimSuffix(r.URL.Path, "/"), "/console/")
	return r.Method == http.MethodPost && found && strings.HasSuffix(slug, "/roster-runs")
}

// uploadRoster takes a file that was chosen on the page.
func (s *Server) uploadRoster(w http.ResponseWriter, r *http.Request) error {
	f, err := s.frame(r, "roster-runs", "Roster imports")
	if err != nil {
		return err
	}
	edge.Extend(r.Context(), upload.Time+time.Minute)
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(upload.Time + time.Minute)) // the server's own limit stays where it cannot be moved
	run, err := s.receiveRoster(r, f)
	if text, mine := typed(err); mine {
		return s.refuseRoster(w, r, f, http.StatusBadRequest, text)
	}
	switch fault.KindOf(err) {
	case fault.TooLarge, fault.Forbidden:
		return s.refuseRoster(w, r, f, http.StatusBadRequest, err.Error())
	case fault.Unavailable:
		return s.refuseRoster(w, r, f, http.StatusServiceUnavailable, err.Error())
	case fault.Internal, fault.Invalid, fault.Unauthenticated, fault.NotFound, fault.Conflict:
	}
	if err != nil {
		return err
	}
	done, err := roster.Await(r.Context(), s.DB, s.Rosters, f.Here.Organization, run, runPatience)
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	note := "The file has arrived. This page shows how far it is."
	switch {
	case done.State == roster.Previewed:
		note = "This is what the file would do. Nothing was written. To import it, send it again without the preview."
	case done.State.Over():
		note = "The import is " + string(done.State) + "."
	}
	return s.back(w, r, f, "/roster-runs/"+formatID(run)+"/", note)
}

// receiveRoster takes one of the organization's places for files that arrive, as a call of the API does.
func (s *Server) receiveRoster(r *http.Request, f frame) (id.RosterRun, error) {
	leave, err := edge.Enter(r, s.Imports, f.Here.Organization)
	if err != nil {
		return 0, err
	}
	defer leave()
	return upload.Server{DB: s.DB, Clock: s.Clock}.Receive(r, f.Here.Organization, f.Person.Actor())
}

func (s *Server) refuseRoster(w http.ResponseWriter, r *http.Request, f frame, status int, text string) error {
	upload.Drain(r)
	f.Fault = text
	return s.listRuns(w, r, status, f)
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
	Name, Title string
	Total       int
	Action      roster.Action        // "": changes of classes
	Changes     []roster.Change      // some of them
	Classes     []roster.ClassChange // or these
	Last        int64                // the number of the last one of these; 0: it is the group's last, too
}

// groupsOf are the groups of a run's changes that are not empty.
func groupsOf(run roster.Run) (all []group) {
	c := run.Counts
	for _, g := range []group{
		{Name: "deactivated", Title: "Deactivated", Action: roster.Leave, Total: c.Deactivate},
		{Name: "added", Title: "Added", Action: roster.Create, Total: c.Create},
		{Name: "changed", Title: "Changed", Action: roster.Update, Total: c.Update - c.Deactivate},
		{Name: "classes", Title: "Classes", Total: c.OfClasses()},
	} {
		if g.Total > 0 {
			all = append(all, g)
		}
	}
	return all
}

// read reads up to limit changes of the group, after the one with the number.
func (g *group) read(ctx context.Context, q pg.Querier, run id.RosterRun, after int64, limit int) (err error) {
	g.Last = 0
	if g.Action == "" {
		if g.Classes, err = diff.NextClassChanges(ctx, q, run, after, limit+1); len(g.Classes) > limit {
			g.Classes = g.Classes[:limit]
			g.Last = g.Classes[limit-1].N
		}
		return err
	}
	if g.Changes, err = diff.ChangesOf(ctx, q, run, g.Action, after, limit+1); len(g.Changes) > limit {
		g.Changes = g.Changes[:limit]
		g.Last = g.Changes[limit-1].N
	}
	return err
}

// search reads those of the group that have each word of the text, after the change with the number.
func (g *group) search(ctx context.Context, q pg.Querier, run id.RosterRun, text string, after int64) error {
	found, next, err := diff.Search(ctx, q, run, g.Action, strings.Fields(text), after, shown)
	if err != nil {
		return err
	}
	g.Last = next
	if g.Action == "" {
		g.Classes, err = diff.ClassChangesAt(ctx, q, run, found)
	} else {
		g.Changes, err = diff.ChangesAt(ctx, q, run, found)
	}
	return err
}

// write writes all of the group as CSV.
func (g *group) write(ctx context.Context, q pg.Querier, run id.RosterRun, w *csv.Writer) error {
	if g.Action == "" {
		return diff.WriteClassChanges(ctx, q, run, w)
	}
	return diff.WriteChanges(ctx, q, run, g.Action, w)
}

type runPage struct {
	frame
	Run     roster.Run
	Held    bool
	Applied bool         // and no undoing
	Newer   id.RosterRun // after it, the run is neither approved nor taken back; 0: none
	Running bool
	progress
	Changed int // neither added nor deactivated
	Groups  []group
	Issues  []roster.Issue

	ClassTotal int
}

type changesPage struct {
	frame
	Run    roster.Run
	Group  group
	After  int64  // where the page begins; 0: with the first
	Search string // "": the whole group
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

// shown is how many changes of a group its page shows, and shownOfEach how many of each group, and issues, the run's page does.
const shown, shownOfEach = 200, 50

func (s *Server) showRun(w http.ResponseWriter, r *http.Request) error {
	f, run, err := s.run(r)
	if err != nil {
		return err
	}
	c := run.Counts
	p := runPage{frame: f, Run: run, Held: run.State == roster.Held, Applied: run.State == roster.Applied && run.Undoes == 0,
		Running: !run.State.Over(), progress: progressOf(run), Changed: c.Update - c.Deactivate}
	switch {
	case p.Held:
		p.Newer, err = roster.Newer(r.Context(), s.DB, run)
	case p.Applied:
		p.Newer, err = roster.NewerChange(r.Context(), s.DB, run)
	}
	if err != nil {
		return err
	}
	for _, g := range groupsOf(run) {
		if err := g.read(r.Context(), s.DB, run.ID, 0, shownOfEach); err != nil {
			return err
		}
		p.Groups = append(p.Groups, g)
	}
	p.ClassTotal = c.OfClasses()
	if p.Issues, _, err = diff.Issues(r.Context(), s.DB, run.ID, 0, shownOfEach); err != nil {
		return err
	}
	return show(w, http.StatusOK, "run.html", p)
}

// downloadTime is for a file of a million rows over a slow line.
const downloadTime = 5 * time.Minute

// showChanges shows a group of a run's changes page by page, or all of it as CSV where its name ends so.
func (s *Server) showChanges(w http.ResponseWriter, r *http.Request) error {
	f, run, err := s.run(r)
	if err != nil {
		return err
	}
	name, whole := strings.CutSuffix(edge.Param(r, "group"), ".csv")
	all := groupsOf(run)
	i := slices.IndexFunc(all, func(g group) bool { return g.Name == name })
	if i < 0 {
		return fault.New(fault.NotFound, "not_found", "import %d has no such changes", run.ID)
	}
	g := all[i]
	if whole {
		return g.write(r.Context(), s.DB, run.ID, download(w, r, "roster-import-"+formatID(run.ID)+"-"+g.Name))
	}
	p := changesPage{f, run, g, number(r, "after"), searchText(r.URL.Query().Get("q"))}
	if p.Search != "" {
		err = p.Group.search(r.Context(), s.DB, run.ID, p.Search, p.After)
	} else {
		err = p.Group.read(r.Context(), s.DB, run.ID, p.After, shown)
	}
	if err != nil {
		return err
	}
	p.Title = g.Title
	return show(w, http.StatusOK, "changes.html", p)
}

// download begins a CSV file that may take long.
func download(w http.ResponseWriter, r *http.Request, name string) *csv.Writer {
	edge.Extend(r.Context(), downloadTime)
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(downloadTime)) // the server's own limit stays where it cannot be moved
	w.Header().Set("Content-Type", "text/csv; charset=utf-8")
	w.Header().Set("Content-Disposition", `attachment; filename="`+name+`.csv"`)
	return csv.NewWriter(w)
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
		text := "a new class, " + c.Name
		if days := daysText(c.StartDate, c.EndDate); days != "" {
			text += ", " + days
		}
		return text
	case roster.RenameClass:
		return "is called " + c.Name + ", and was " + c.Before
	case roster.RescheduleClass:
		return "is " + cmp.Or(daysText(c.StartDate, c.EndDate), "without dates") + ", and was " + cmp.Or(daysText(c.BeforeStartDate, c.BeforeEndDate), "without dates")
	case roster.AddSeat:
		return c.Person + " gets a place"
	case roster.RemoveSeat:
		return c.Person + " loses the place"
	}
	return string(c.Action)
}

// daysText are the dates of a class; "" where it has none.
func daysText(start, end clock.Date) string {
	if start.IsZero() {
		return ""
	}
	return "from " + longDay(start) + " to " + longDay(end)
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
	return diff.WriteIssues(r.Context(), s.DB, run.ID, download(w, r, "roster-import-"+formatID(run.ID)+"-issues"))
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
