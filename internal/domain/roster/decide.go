package roster

import "github.com/registrar-dev/registrar/internal/kit/clock"

// Effects are a set of what a change does.
type Effects int16

// The effects.
const (
	CreateAccount    Effects = 1 << iota // a new account, without a password
	CreateMembership                     // of this organization
	CreateIdentity                       // the external id means the person from now on
	ReplaceIdentity                      // as above; the earlier id no longer does
	ChangeProfile                        // email or names of an account that is the import's own
	Activate                             // a membership that an import ended
	Deactivate                           // a membership that an import made
	MarkPresent                          // in the source
	MarkAbsent                           // from the source
	DropIdentity                         // undoes CreateIdentity
)

// Has says whether e holds all of what.
func (e Effects) Has(what Effects) bool { return e&what == what }

// Action is what a change is called when it is counted and shown.
type Action string

// The actions.
const (
	Create     Action = "create"     // a new student of the organization
	Update     Action = "update"     // of somebody known
	Leave      Action = "deactivate" // missing from a snapshot
	NoteAbsent Action = "absent"     // missing from a snapshot, but not the import's to deactivate
	Skip       Action = "skip"
)

// Duplicates says which other rows of the file a row conflicts with.
type Duplicates struct {
	SameAs      int64 // the first of identical rows of this id, by its number; 0 for the first itself
	Conflicting bool  // rows of this id differ
	EmailShared bool  // rows of other ids have this email
}

// Match is the person whom a row matches: by the source's external id, or else by the email. The
// zero Match means that nobody matches.
type Match struct {
	User      int64
	ByID      bool
	Present   bool   // in the source, as of the last import
	Email     string `db:"account_email"`
	FirstName string `db:"account_first_name"` // as the organization calls the person; "" while it has not Named
	LastName  string `db:"account_last_name"`
	Named     bool   // the organization has, or had, the person, and so has names
	// The account is the import's own: an import made it for this organization, nobody has signed
	// in or set a password, and it belongs to no other organization.
	Managed bool

	Role   string // of the membership; "": none
	Active bool
	Ended  bool // inactive because an import ended it

	EmailTaken     bool   // found by id, and another account has the row's email
	EmailElsewhere bool   // found by id, and a row of another id has the account's email
	OtherID        string // found by email: the id by which the source knew the person
	OtherIDInFile  bool
}

// Decision is what a run does with one row.
type Decision struct {
	Action  Action
	Effects Effects
	LeftOut Code // why the person is left out, and gets no seat either; "": applied
	Issues  []Issue
}

// roleMember is the membership role of students; every other is staff's.
const roleMember = "member"

// Decide decides about a row of the section of people, which is in the file.
func Decide(file string, p Person, r Duplicates, k Match) Decision {
	d := decision{issues: issues{file: file, line: p.Line, person: p.ExternalID, user: k.User}}
	switch {
	case p.Refused == unsaidRole && !k.ByID:
		return d.refuse(UnknownRole, "no role of the person is in the file, which only people whom the source has named before may lack")
	case p.Refused != "" && p.Refused != unsaidRole:
		return d.leaveOut(p.Refused)
	case r.Conflicting:
		return d.refuse(DuplicateExternalID, "rows with this person_external_id differ; none of them was applied")
	case r.EmailShared:
		return d.refuse(DuplicateEmail, "rows of several people have this email; none of them was applied")
	case r.SameAs != 0:
		d.add(DuplicateExternalID, Warning, "the same row is in the file before")
		return d.skip()
	case k.User == 0:
		return d.do(Create, CreateAccount|CreateMembership|CreateIdentity)
	case k.ByID:
		return d.knownByID(p, k)
	}
	return d.knownByEmail(p, k)
}

type decision struct{ issues }

func (d *decision) skip() Decision { return Decision{Action: Skip, Issues: d.all} }

func (d *decision) leaveOut(why Code) Decision {
	return Decision{Action: Skip, LeftOut: why, Issues: d.all}
}

func (d *decision) refuse(code Code, format string, args ...any) Decision {
	d.add(code, Error, format, args...)
	return d.leaveOut(code)
}

func (d *decision) do(a Action, e Effects) Decision {
	if e == 0 {
		a = Skip
	}
	return Decision{Action: a, Effects: e, Issues: d.all}
}

// knownByID: the source has named this person before.
func (d *decision) knownByID(p Person, k Match) Decision {
	if p.Email != k.Email {
		switch {
		case k.EmailElsewhere:
			return d.refuse(ExternalIDReassigned, "the person known by this id has another id in this file; neither was changed")
		case k.EmailTaken:
			return d.refuse(ExternalIDReassigned, "the id belongs to somebody else than this email; give the new person an id of its own")
		case k.Managed && anotherName(p, k):
			return d.refuse(ExternalIDReassigned, "email and names are all different; give a new person an id of its own")
		}
	}
	e, ok := d.membership(k)
	if !ok {
		return d.leaveOut(NotManaged)
	}
	if !k.Present {
		e |= MarkPresent
	}
	return d.do(Update, e|d.profile(p, k))
}

func anotherName(p Person, k Match) bool {
	return p.FirstName != "" && p.LastName != "" && p.FirstName != k.FirstName && p.LastName != k.LastName
}

// membership is the effect that makes the person active; false when an import may not do that.
func (d *decision) membership(k Match) (Effects, bool) {
	switch {
	case k.Role == "":
		d.add(NotManaged, Warning, "the membership was removed by staff and stays so")
	case k.Role != roleMember:
		d.add(NotManaged, Warning, "the person is staff here, whom an import leaves alone")
	case k.Active:
		return 0, true
	case k.Ended:
		return Activate, true
	default:
		d.add(NotManaged, Warning, "the membership was ended by staff and stays so")
	}
	return 0, false
}

// profile changes email and names to the file's, of an account that is the import's own.
func (d *decision) profile(p Person, k Match) Effects {
	email := p.Email != k.Email
	name := p.FirstName != "" && p.FirstName != k.FirstName || p.LastName != "" && p.LastName != k.LastName
	switch {
	case !email && !name:
		return 0
	case !k.Managed && email:
		d.add(EmailChanged, Warning, "the account keeps its email: the person uses it already, here or elsewhere")
		return 0
	case !k.Managed:
		d.add(NotManaged, Info, "the account keeps its name: it is not the import's own, or in use already")
		return 0
	case email:
		d.add(EmailChanged, Info, "the account has a new email")
	}
	return ChangeProfile
}

// knownByEmail: the platform knows the person, the source does not know it by this id.
func (d *decision) knownByEmail(p Person, k Match) Decision {
	e := CreateIdentity
	if k.OtherID != "" {
		if k.OtherIDInFile {
			return d.refuse(ExternalIDReassigned, "the person with this email is known by the id %s, which is in this file too; neither was changed", cut(k.OtherID, 60))
		}
		d.add(ExternalIDReassigned, Warning, "the person was known by the id %s until now", cut(k.OtherID, 60))
		e = ReplaceIdentity
	}
	if k.Role == "" {
		if k.OtherID != "" {
			d.add(NotManaged, Warning, "the membership was removed by staff and stays so")
			return d.leaveOut(NotManaged)
		}
		if !k.Named { // the file's names are the organization's
			return d.do(Create, e|CreateMembership)
		}
		return d.do(Create, e|CreateMembership|d.profile(p, k))
	}
	back, ok := d.membership(k)
	if !ok {
		return d.leaveOut(NotManaged)
	}
	return d.do(Update, e|back|d.profile(p, k))
}

// Leaver is a person of the source who is missing from a snapshot.
type Leaver struct {
	ExternalID string
	Role       string
	Active     bool
	Imported   bool // the membership was made by an import
	Elsewhere  bool // another source has the person
}

// DecideLeaver decides about a person who is missing from the section of people in a snapshot (reference:
// students#membership). Nobody is deleted.
func DecideLeaver(file string, l Leaver) Decision {
	d := decision{issues: issues{file: file, person: l.ExternalID}}
	switch {
	case !l.Active || l.Elsewhere:
		return d.do(NoteAbsent, MarkAbsent)
	case !l.Imported || l.Role != roleMember:
		d.add(NotManaged, Info, "missing from the file, but the membership was not made by an import and stays")
		return d.do(NoteAbsent, MarkAbsent)
	}
	return d.do(Leave, MarkAbsent|Deactivate)
}

// SeatHolder is what is known of the person of a row of enrollments.csv.
type SeatHolder struct {
	InFile   bool   // people.csv has the person
	Refused  Code   // and why it was not applied; "": it was
	Leaves   bool   // the person leaves the source with this snapshot
	InSource bool   // the source has the person
	Role     string // of the membership; "": none
	Active   bool
	Seated   bool // the person is in the class already
}

// DecideSeat says whether a row of enrollments.csv adds a student to a class.
func DecideSeat(s Seat, h SeatHolder) (sit bool, found []Issue) {
	t := issues{file: EnrollmentsFile, line: s.Line, person: s.Person}
	switch {
	case h.Leaves:
		t.add(UnknownPerson, Error, "the person leaves with this snapshot, whose people lack it or call it withdrawn")
	case h.Refused == TeacherReported:
		t.add(TeacherReported, Warning, "a teacher; an import puts no teacher into a class")
	case h.Refused != "":
		// Its row of people.csv has the reason.
	case !h.InFile && !h.InSource:
		t.add(UnknownPerson, Error, "nobody has this id, neither in this file nor from earlier imports")
	case h.InFile: // whom its row makes or leaves an active student
		return !h.Seated, nil
	case h.Role == "" || h.Role == roleMember && !h.Active:
		t.add(NotManaged, Warning, "the person is no active member, and only those get a place in a class")
	case h.Role != roleMember:
		t.add(NotManaged, Warning, "the person is staff here; an import puts no staff into a class")
	default:
		return !h.Seated, nil
	}
	return false, t.all
}

// ClassRow is a class as the file has it.
type ClassRow struct {
	Line        int
	ExternalID  string
	Name        string // where the class comes first; "": none
	CurrentName string // its name so far; "" for a new class
	Days               // zero: the file says none
	// Its dates so far; zero: it has none.
	CurrentStartDate, CurrentEndDate clock.Date
	Conflicting                      bool // rows give it several names
	Listed                           bool // a row of classes.csv is the first to name it
	Unlisted                         bool // the file has a classes.csv, which lacks it
}

// DecideClass decides about a class: it is created where it is new, renamed to a new name that all its rows have, and
// rescheduled to new dates. No change leaves it as it is.
func DecideClass(c ClassRow) (changes []ClassChange, found []Issue) {
	t := issues{file: EnrollmentsFile, line: c.Line}
	if c.Listed {
		t.file = ClassesFile
	}
	name := c.Name
	if name == "" {
		name = c.ExternalID
	}
	if c.Conflicting {
		kept := c.CurrentName
		if kept == "" {
			kept = name
		}
		t.add(ClassNameConflict, Warning, "class %s has several names; it is called %s", cut(c.ExternalID, 60), cut(kept, 60))
	}
	if c.CurrentName == "" {
		if c.Unlisted {
			t.add(UnknownClass, Warning, "class %s is neither in %s nor from earlier imports; it is called by its id", cut(c.ExternalID, 60), ClassesFile)
		}
		return []ClassChange{{Action: CreateClass, Class: c.ExternalID, Name: name, Days: c.Days}}, t.all
	}
	if !c.Conflicting && c.Name != "" && c.Name != c.CurrentName {
		changes = append(changes, ClassChange{Action: RenameClass, Class: c.ExternalID, Name: c.Name, Before: c.CurrentName})
	}
	if c.Days != (Days{}) && c.Days != (Days{c.CurrentStartDate, c.CurrentEndDate}) {
		changes = append(changes, ClassChange{Action: RescheduleClass, Class: c.ExternalID, Name: c.CurrentName, Days: c.Days,
			BeforeStartDate: c.CurrentStartDate, BeforeEndDate: c.CurrentEndDate})
	}
	return changes, t.all
}
