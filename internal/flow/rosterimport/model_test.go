package rosterimport_test

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/registrar-dev/registrar/internal/domain/roster"
	"github.com/registrar-dev/registrar/internal/domain/student"
	"github.com/registrar-dev/registrar/internal/kit/id"
)

// world is what the database holds, in memory: a planner over it looks everything up in
// plain loops, so that what the SQL feeds the same rules with can be compared.
type world struct {
	org        id.Organization
	source     id.RosterSource
	had        bool
	accounts   []worldAccount
	members    []worldMember
	identities []worldIdentity
	classes    []worldClass
	seats      []worldSeat
	names      []worldName
}

type worldAccount struct {
	ID                         int64
	Email, FirstName, LastName string
	Managed                    bool // but for memberships elsewhere
}

type worldMember struct {
	Org          id.Organization
	User         int64
	Role, Status string
	Via          string
	UpdatedAt    time.Time
}

type worldIdentity struct {
	Source     id.RosterSource
	ExternalID string
	User       int64
	Present    bool
	LeftAt     *time.Time
}

type worldClass struct {
	ID               int64
	ExternalID, Name string
}

type worldSeat struct {
	Class, User int64
}

// worldName is what the organization calls somebody whom it has or had.
type worldName struct {
	User                int64
	FirstName, LastName string
}

func load[T any](t testing.TB, h *house, sql string, args ...any) []T {
	t.Helper()
	rows, err := h.DB.Query(t.Context(), sql, args...)
	if err != nil {
		t.Fatal(err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[T])
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func (h *house) world(t testing.TB, u upload) *world {
	t.Helper()
	source, err := roster.PutSource(t.Context(), h.DB, tester, h.org, u.source, nil, h.now)
	if err != nil {
		t.Fatal(err)
	}
	return &world{org: h.org, source: source.ID, had: source.HadEnrollments,
		accounts: load[worldAccount](t, h, `SELECT id, email, first_name, last_name, created_via = 'roster' AND coalesce(created_by_organization = $1, false)
			AND last_login IS NULL AND NOT own_password AND password_hash IS NULL FROM accounts`, h.org),
		members:    load[worldMember](t, h, `SELECT organization_id, user_id, role, status, created_via, updated_at FROM members`),
		identities: load[worldIdentity](t, h, `SELECT source_id, external_id, user_id, present, left_at FROM roster_identities`),
		classes:    load[worldClass](t, h, `SELECT id, external_id, name FROM roster_classes WHERE source_id = $1 ORDER BY id`, source.ID),
		seats:      load[worldSeat](t, h, `SELECT class_id, user_id FROM roster_class_members WHERE active`),
		names: load[worldName](t, h, `SELECT d.user_id, coalesce(d.first_name, a.first_name), coalesce(d.last_name, a.last_name)
			FROM directory d JOIN accounts a ON a.id = d.user_id WHERE d.organization_id = $1`, h.org)}
}

// first finds the first of all that is so; nil when none is.
func first[T any](all []T, so func(*T) bool) *T {
	if i := slices.IndexFunc(all, func(v T) bool { return so(&v) }); i >= 0 {
		return &all[i]
	}
	return nil
}

func (w *world) byEmail(email string) *worldAccount {
	return first(w.accounts, func(a *worldAccount) bool { return a.Email == email })
}

func (w *world) account(user int64) *worldAccount {
	return first(w.accounts, func(a *worldAccount) bool { return a.ID == user })
}

func (w *world) member(user int64) *worldMember {
	return first(w.members, func(m *worldMember) bool { return m.Org == w.org && m.User == user })
}

func (w *world) identity(external string) *worldIdentity {
	return first(w.identities, func(i *worldIdentity) bool { return i.Source == w.source && i.ExternalID == external })
}

func (w *world) identityOf(user int64) *worldIdentity {
	return first(w.identities, func(i *worldIdentity) bool { return i.Source == w.source && i.User == user })
}

// plan decides the file by the same rules as a run.
func (w *world) plan(u upload) string {
	p := &memoryPlan{world: w, out: map[string]roster.Code{}, replaced: map[string]string{}, gone: map[string]bool{}}
	if err := p.read(u.file); err != nil {
		return "refused: " + err.Error()
	}
	usable := slices.ContainsFunc(p.people, func(r roster.Person) bool { return r.Usable })
	if !usable && (len(p.people) > 0 || u.mode == roster.Additive) {
		return "refused: no_usable_people"
	}
	for _, row := range p.people {
		p.person(row)
	}
	if u.mode == roster.Snapshot {
		p.leavers()
	}
	if p.hasSeats {
		p.planClasses()
		if u.mode == roster.Snapshot {
			p.lostSeats()
		}
		p.planSeats()
	}
	if u.mode == roster.Snapshot {
		p.guards()
	}
	return p.String()
}

type memoryPlan struct {
	*world
	planned

	people    []roster.Person
	seatRows  []roster.Seat
	seatCount int // rows of enrollments.csv
	hasSeats  bool
	lost      int
	replaced  map[string]string // the ids that the file replaces, and by what
	gone      map[string]bool   // the ids of those who leave with the file
	noSeat    int               // rows of enrollments.csv that give no place
	out       map[string]roster.Code
}

func (p *memoryPlan) read(file []byte) error {
	f, err := roster.Open(bytes.NewReader(file), int64(len(file)), roster.AnyForm)
	if err != nil {
		return err
	}
	people, err := f.People(roster.Rules{Name: student.CheckName, Email: func(text string) (string, error) {
		e, err := student.ParseEmail(text)
		return string(e), err
	}})
	if err != nil {
		return err
	}
	for {
		row, notified, err := people.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		p.people, p.issues = append(p.people, row), append(p.issues, notified...)
	}
	p.lost = people.Unreadable
	if p.hasSeats = f.HasEnrollments(); !p.hasSeats {
		return nil
	}
	seats, err := f.Seats(roster.Rules{})
	for err == nil {
		row, notified, ok, failed := seats.Next()
		if err = failed; err != nil {
			break
		}
		p.seatCount++
		if p.issues = append(p.issues, notified...); ok {
			p.seatRows = append(p.seatRows, row)
		} else {
			p.noSeat++
		}
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

func (p *memoryPlan) repeats(row roster.Person) (r roster.Duplicates) {
	for _, o := range p.people {
		if row.ExternalID != "" && o.ExternalID == row.ExternalID {
			if o.N < row.N && r.SameAs == 0 {
				r.SameAs = o.N
			}
			r.Conflicting = r.Conflicting || o.Email != row.Email || o.FirstName != row.FirstName || o.LastName != row.LastName || o.Refused != row.Refused
		}
		for _, other := range p.people {
			shared := o.Email != "" && o.Refused == "" && other.Refused == "" && o.Email == other.Email && o.ExternalID != other.ExternalID
			r.EmailShared = r.EmailShared || shared && o.Email == row.Email
		}
	}
	return r
}

func (p *memoryPlan) known(row roster.Person) (k roster.Match) {
	named, owner := p.identity(row.ExternalID), p.byEmail(row.Email)
	var a *worldAccount
	switch {
	case named != nil:
		a, k.ByID, k.Present = p.account(named.User), true, named.Present
	case owner != nil:
		a = owner
	default:
		return k
	}
	k.User, k.Email = a.ID, a.Email
	if n := first(p.names, func(n *worldName) bool { return n.User == a.ID }); n != nil {
		k.Named, k.FirstName, k.LastName = true, n.FirstName, n.LastName
	}
	if a.Email != row.Email || a.FirstName != row.FirstName || a.LastName != row.LastName {
		elsewhere := first(p.members, func(m *worldMember) bool { return m.User == a.ID && m.Org != p.org })
		k.Managed = a.Managed && elsewhere == nil
	}
	if m := p.member(a.ID); m != nil {
		k.Role, k.Active = m.Role, m.Status == "active"
		k.Ended = !k.Active && first(p.identities, func(i *worldIdentity) bool {
			return i.User == a.ID && i.LeftAt != nil && i.LeftAt.Equal(m.UpdatedAt)
		}) != nil
	}
	inFile := func(so func(roster.Person) bool) bool { return slices.ContainsFunc(p.people, so) }
	if named != nil {
		k.EmailTaken = owner != nil && owner.ID != named.User
		k.EmailElsewhere = a.Email != row.Email && inFile(func(o roster.Person) bool { return o.Email == a.Email && o.N != row.N })
	} else if other := p.identityOf(a.ID); other != nil {
		k.OtherID = other.ExternalID
		k.OtherIDInFile = inFile(func(o roster.Person) bool { return o.ExternalID == other.ExternalID })
	}
	return k
}

func (p *memoryPlan) count(a roster.Action) {
	switch a {
	case roster.Create:
		p.counts.Create++
	case roster.Update:
		p.counts.Update++
	case roster.Leave:
		p.counts.Update++
		p.counts.Deactivate++
	case roster.Skip:
		p.counts.Skip++
	case roster.NoteAbsent:
	}
}

func (p *memoryPlan) person(row roster.Person) {
	k := p.known(row)
	d := roster.Decide(roster.PeopleFile, row, p.repeats(row), k)
	p.count(d.Action)
	p.issues = append(p.issues, d.Issues...)
	if known, ok := p.out[row.ExternalID]; d.LeftOut != "" && row.ExternalID != "" && (!ok || d.LeftOut < known) {
		p.out[row.ExternalID] = d.LeftOut
	}
	if d.Effects == 0 {
		return
	}
	c := roster.Change{N: row.N, Line: row.Line, Action: d.Action, Effects: d.Effects, User: id.User(k.User), ExternalID: row.ExternalID}
	if d.Effects.Has(roster.ReplaceIdentity) {
		c.BeforeID = k.OtherID
		p.replaced[k.OtherID] = row.ExternalID
	}
	p.changes = append(p.changes, c)
}

func (p *memoryPlan) leavers() {
	gone := slices.DeleteFunc(slices.Clone(p.identities), func(i worldIdentity) bool {
		return i.Source != p.source || !i.Present || slices.ContainsFunc(p.people, func(r roster.Person) bool {
			return r.ExternalID == i.ExternalID || r.Email == p.account(i.User).Email
		})
	})
	slices.SortFunc(gone, func(a, b worldIdentity) int { return bytes.Compare([]byte(a.ExternalID), []byte(b.ExternalID)) })
	for n, i := range gone {
		p.gone[i.ExternalID] = true
		l := roster.Leaver{ExternalID: i.ExternalID, Elsewhere: first(p.identities, func(o *worldIdentity) bool {
			return o.User == i.User && o.Source != p.source && o.Present
		}) != nil}
		if m := p.member(i.User); m != nil {
			l.Role, l.Active, l.Imported = m.Role, m.Status == "active", m.Via == "roster"
		}
		d := roster.DecideLeaver(roster.PeopleFile, l)
		p.count(d.Action)
		p.issues = append(p.issues, d.Issues...)
		p.changes = append(p.changes, roster.Change{N: int64(len(p.people) + n + 1), Action: d.Action, Effects: d.Effects, User: id.User(i.User), ExternalID: i.ExternalID})
	}
}

func (p *memoryPlan) class(external string) *worldClass {
	return first(p.world.classes, func(k *worldClass) bool { return k.ExternalID == external })
}

func (p *memoryPlan) addClass(c roster.ClassChange) {
	p.planned.classes = append(p.planned.classes, c)
	switch c.Action {
	case roster.CreateClass:
		p.counts.ClassesCreated++
	case roster.RenameClass:
		p.counts.ClassesRenamed++
	case roster.RescheduleClass: // no file of the model has dates
	case roster.AddSeat:
		p.counts.SeatsAdded++
	case roster.RemoveSeat:
		p.counts.SeatsRemoved++
	}
}

func (p *memoryPlan) planClasses() {
	done := map[string]bool{}
	for _, row := range p.seatRows {
		if done[row.Class] {
			continue
		}
		done[row.Class] = true
		c := roster.ClassRow{Line: row.Line, ExternalID: row.Class, Name: row.ClassName}
		if k := p.class(row.Class); k != nil {
			c.CurrentName = k.Name
		}
		var names []string
		for _, o := range p.seatRows {
			if o.Class == row.Class && o.ClassName != "" && !slices.Contains(names, o.ClassName) {
				names = append(names, o.ClassName)
			}
		}
		c.Conflicting = len(names) > 1
		changes, notified := roster.DecideClass(c)
		p.issues = append(p.issues, notified...)
		for _, d := range changes {
			p.addClass(d)
		}
	}
}

func (p *memoryPlan) lostSeats() {
	for _, s := range p.seats {
		k := first(p.world.classes, func(k *worldClass) bool { return k.ID == s.Class })
		i := p.identityOf(s.User)
		if k == nil || i == nil {
			continue
		}
		person := i.ExternalID
		if after, ok := p.replaced[person]; ok {
			person = after
		}
		if !slices.ContainsFunc(p.seatRows, func(r roster.Seat) bool { return r.Class == k.ExternalID && r.Person == person }) {
			p.addClass(roster.ClassChange{Action: roster.RemoveSeat, Class: k.ExternalID, Person: person})
		}
	}
}

// identityAfter is who has the id after the file: nobody has one that it replaces.
func (p *memoryPlan) identityAfter(external string) *worldIdentity {
	if _, gone := p.replaced[external]; gone {
		return nil
	}
	for before, after := range p.replaced {
		if after == external {
			external = before
		}
	}
	return p.identity(external)
}

func (p *memoryPlan) planSeats() {
	type place struct{ person, class string }
	done := map[place]bool{}
	for _, row := range p.seatRows {
		if done[place{row.Person, row.Class}] {
			continue
		}
		done[place{row.Person, row.Class}] = true
		held := roster.SeatHolder{Refused: p.out[row.Person], InFile: slices.ContainsFunc(p.people, func(r roster.Person) bool { return r.ExternalID == row.Person })}
		if i := p.identityAfter(row.Person); i != nil {
			held.InSource, held.Leaves = i.Present, p.gone[row.Person]
			if m := p.member(i.User); m != nil {
				held.Role, held.Active = m.Role, m.Status == "active"
			}
			if k := p.class(row.Class); k != nil {
				held.Seated = slices.Contains(p.seats, worldSeat{k.ID, i.User})
			}
		}
		sit, notified := roster.DecideSeat(row, held)
		if p.issues = append(p.issues, notified...); sit {
			p.addClass(roster.ClassChange{Action: roster.AddSeat, Class: row.Class, Person: row.Person})
		}
	}
}

func (p *memoryPlan) guards() {
	t := roster.Totals{PeopleFile: roster.PeopleFile, Rows: len(p.people), Deactivate: p.counts.Deactivate, HadEnrollments: p.had, HasEnrollments: p.hasSeats, SeatRows: p.seatCount, Unreadable: p.lost,
		SeatsRemoved: p.counts.SeatsRemoved, SeatRowsUnreadable: p.noSeat}
	for _, i := range p.identities {
		m := p.member(i.User)
		if i.Source == p.source && i.Present && m != nil && m.Status == "active" && m.Role == "member" {
			t.Active++
		}
	}
	for _, s := range p.seats {
		if first(p.world.classes, func(k *worldClass) bool { return k.ID == s.Class }) != nil {
			t.Seats++
		}
	}
	p.reasons = roster.Guards(t)
}
