package roster

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/registrar-dev/registrar/internal/kit/clock"
)

// Limits of single values, in characters.
const (
	maxID   = 255
	maxName = 150
	maxText = 200 // of a class's name
)

// Person is one row of the section of people.
type Person struct {
	N          int64 // number of the row, from 1
	Line       int
	ExternalID string // "": missing or unreadable
	Email      string // in its canonical form; "": missing or invalid
	FirstName  string
	LastName   string
	Refused    Code // why the row is not applied, which an issue says; "" for a usable one
	Usable     bool // a person, if perhaps one the import does not grant anything to
}

// People reads the section of people.
type People struct {
	layout     *layout
	table      *table // nil: there are none
	rules      Rules
	roles      *roleBook // what roles.csv says; nil: there is none
	n          int64
	Unreadable int // rows whose person is unknown
}

var (
	peopleColumns     = []string{"person_external_id", "email", "first_name", "last_name", "role"}
	enrollmentColumns = []string{"person_external_id", "class_external_id", "class_name"}
)

// Rules are those of the values that the section of people shares with other ways in, and what reading goes by.
type Rules struct {
	Email func(text string) (string, error) // gives an address its canonical form or refuses it
	Name  func(column, name string) error   // refuses a name
	Mode  Mode
	Today clock.Date // by which a place in a class may have ended
	// Pause is called between pauseRows rows that are read at once; nil: it is not.
	Pause func() error
}

const pauseRows = 4000

// People begins to read the section of people. Invalid when the header is missing, damaged or lacks a column
// that is needed.
func (f *File) People(rules Rules) (*People, error) {
	if f.layout == oneRoster {
		return f.users(rules)
	}
	t, err := newTable(PeopleFile, f, f.people, peopleColumns, peopleColumns[:2])
	if err != nil {
		return nil, err
	}
	return &People{layout: f.layout, table: t, rules: rules}, nil
}

// Close ends the reading.
func (p *People) Close() error { return closeTable(p.table) }

func closeTable(t *table) error {
	if t == nil {
		return nil
	}
	return t.close()
}

// Next reads one row and its issues; io.EOF after the last. Invalid when the rest of the file
// cannot be read.
func (p *People) Next() (Person, []Issue, error) {
	if p.table == nil {
		return Person{}, nil, io.EOF
	}
	r, err := p.table.next()
	if err != nil {
		return Person{}, nil, err
	}
	p.n++
	id := p.table.value(r, p.layout.id)
	kind, word := p.role(r, id)
	if kind == roleGuardian && r.wrong == "" {
		return Person{Refused: PassedOver}, p.roles.found(), nil
	}
	row, found := p.rowOf(r, id, kind, word)
	return row, append(p.roles.found(), found...), nil
}

// role is the role of a row, and what the file calls it.
func (p *People) role(r record, id string) (role, string) {
	if kind, said := p.roles.of(id); said {
		return kind, roleWords[kind]
	}
	word := p.table.value(r, p.layout.role)
	if word == "" && p.layout == oneRoster {
		return roleUnsaid, ""
	}
	return p.layout.words(word), word
}

func (p *People) rowOf(r record, id string, kind role, word string) (Person, []Issue) {
	l, assumed := p.layout, p.table.assumed
	row := Person{N: p.n, Line: r.line, ExternalID: id}
	first, last := p.table.value(r, l.first), p.table.value(r, l.last)
	row.FirstName, row.LastName = oneLine(first), oneLine(last)
	found := issues{file: l.people, line: r.line, person: row.ExternalID}
	email := p.email(r)
	if !assumed && p.table.assumed {
		found.add(EncodingAssumed, Warning, "the file is not UTF-8 from here on and was read as Windows-1252; look at the names and save it as UTF-8")
	}
	if r.wrong == "" {
		r.wrong = unfit(named{l.id, row.ExternalID, maxID}, named{"email", email, 320},
			named{l.first, row.FirstName, maxName}, named{l.last, row.LastName, maxName}, named{"role", word, maxName})
	}
	if r.wrong == "" {
		r.wrong = p.wrongName(row)
	}
	if r.wrong == "" && (swallowed(first) || swallowed(last)) {
		r.wrong, r.lost = "a name holds a line break and an address; a quotation mark seems to be missing, and other rows to be in it", true
	}
	gone := ""
	if r.wrong == "" {
		gone, r.wrong = p.table.withdrawn(r)
	}
	if r.wrong != "" {
		return p.bad(row, r, &found), found.all
	}
	if gone != "" && row.ExternalID != "" {
		if row.Refused, row.Usable = Withdrawn, true; p.rules.Mode == Additive {
			found.add(Withdrawn, Warning, "%s: the source has the person no more; %s makes nobody inactive", gone, Additive)
		}
		return row, found.all
	}
	found.broken(l.first, first, row.FirstName)
	found.broken(l.last, last, row.LastName)
	found.suspicious(l.id, row.ExternalID)
	found.suspicious(l.first, row.FirstName)
	found.suspicious(l.last, row.LastName)
	found.suspicious("email", email)
	row.Email, row.Refused, row.Usable = p.judge(row, email, kind, word, &found)
	return row, found.all
}

// email is a row's address. Systems without one for each person have it as the username.
func (p *People) email(r record) string {
	email := p.table.value(r, p.layout.email)
	if email == "" && p.layout == oneRoster {
		if name := p.table.value(r, "username"); strings.Contains(name, "@") {
			return name
		}
	}
	return email
}

// wrongName says which name is refused and why; "" when none is.
func (p *People) wrongName(row Person) string {
	err := p.rules.Name(p.layout.first, row.FirstName)
	if err == nil {
		err = p.rules.Name(p.layout.last, row.LastName)
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

// oneLine puts a blank where a name that was written over several lines breaks.
func oneLine(name string) string {
	if !strings.ContainsFunc(name, breaks) {
		return name
	}
	return strings.Join(strings.FieldsFunc(name, func(r rune) bool { return r == ' ' || breaks(r) }), " ")
}

// swallowed says whether a name holds other rows.
func swallowed(name string) bool {
	return strings.ContainsFunc(name, breaks) && strings.Contains(name, "@")
}

func breaks(r rune) bool {
	return r == '\n' || r == '\r' || r == '\u0085' || r == '\u2028' || r == '\u2029'
}

// bad keeps the id of a bad row where it can be read, so that its person does not count as
// missing.
func (p *People) bad(row Person, r record, found *issues) Person {
	found.person = clean(row.ExternalID)
	row.ExternalID, row.FirstName, row.LastName, row.Refused = found.person, "", "", BadRow
	found.add(BadRow, Error, "the row was left out: %s", r.wrong)
	if r.lost || row.ExternalID == "" {
		p.Unreadable++
	}
	return row
}

// clean is an id that can be stored; "" for one that cannot.
func clean(id string) string {
	if unfit(named{"", id, maxID}) != "" {
		return ""
	}
	return id
}

// judge decides whether a well-formed row can be used, by its email and role.
func (p *People) judge(row Person, email string, kind role, word string, found *issues) (canonical string, refused Code, usable bool) {
	if email != "" {
		var err error
		if canonical, err = p.rules.Email(email); err != nil {
			canonical = ""
		}
	}
	refuse := func(code Code, usable bool, format string, args ...any) (string, Code, bool) {
		found.add(code, Error, format, args...)
		return canonical, code, usable
	}
	switch {
	case row.ExternalID == "":
		return refuse(MissingExternalID, false, "%s is missing; without it a repeat cannot know the person", p.layout.id)
	case kind == roleTeacher:
		found.add(TeacherReported, Warning, "a teacher; teachers are reported and get no place from an import")
		return canonical, TeacherReported, true
	case kind == roleAdmin:
		found.add(AdminRoleNotGranted, Warning, "role %s; an import grants no administrative role, a person has to", cut(word, 40))
		return canonical, AdminRoleNotGranted, true
	case kind == roleUnknown:
		return refuse(UnknownRole, true, "role %s is unknown; send student or teacher", cut(word, 40))
	case email == "":
		return refuse(MissingEmail, false, "email is missing")
	case canonical == "":
		return refuse(InvalidEmail, false, "email is no email address")
	case kind == roleUnsaid:
		return canonical, unsaidRole, true
	}
	return canonical, "", true
}

type role int

// The roles, the one that counts of several before the others.
const (
	roleStudent role = iota
	roleAdmin
	roleTeacher
	roleUnknown
	roleGuardian // of OneRoster alone, as is
	roleUnsaid   // where roles are in a file of their own
)

var roleWords = map[role]string{roleStudent: "student", roleAdmin: "administrator", roleTeacher: "teacher", roleUnknown: "in " + RolesFile}

const (
	// unsaidRole leaves a row to Decide: a person whom the source has named before is a student.
	unsaidRole Code = "unsaid_role"
	// PassedOver is a row of somebody who is none of a roster's people, which is as if it were not there.
	PassedOver Code = "passed_over"
)

func roleOf(word string) role {
	switch strings.ToLower(word) {
	case "", "student":
		return roleStudent
	case "teacher":
		return roleTeacher
	case "admin", "administrator", "owner", "examiner", "staff", "manager", "principal", "superuser", "superadmin", "root", "sysadmin", "org_admin":
		return roleAdmin
	}
	return roleUnknown
}

// Seat is one row of enrollments.csv: a student is in a class. Or it is a class without a person, as OneRoster lists
// them: these come first.
type Seat struct {
	N         int64
	Line      int
	Person    string // "": a class
	Class     string
	ClassName string
	Days           // of the class
	Gone      bool `db:"-"` // the place has ended
}

// Seats reads enrollments.csv.
type Seats struct {
	layout     *layout
	classes    *classes
	ahead      []Issue // of what was read before the first row
	table      *table  // nil: there are none
	rules      Rules
	n          int64
	Rows       int // of enrollments.csv
	Unreadable int // rows that could not be used, whose seats are unknown
}

// Seats begins to read enrollments.csv, and the classes that are listed apart; the file must have one of them (HasSeats).
func (f *File) Seats(rules Rules) (*Seats, error) {
	if f.layout == oneRoster {
		return f.places(rules)
	}
	t, err := newTable(EnrollmentsFile, f, f.enrollments, enrollmentColumns, enrollmentColumns[:2])
	if err != nil {
		return nil, err
	}
	return &Seats{layout: f.layout, table: t, rules: rules}, nil
}

// ListsClasses says whether the file names its classes apart from the places in them. Ask before the first row.
func (s *Seats) ListsClasses() bool { return s.classes != nil && s.classes.table != nil }

// Close ends the reading.
func (s *Seats) Close() error { return errors.Join(s.classes.close(), closeTable(s.table)) }

// Next reads one row and its issues; ok is false for a row that cannot be used. io.EOF after the
// last.
func (s *Seats) Next() (row Seat, found []Issue, ok bool, err error) {
	if found, s.ahead = s.ahead, nil; len(found) > 0 {
		return Seat{}, found, false, nil
	}
	row, found, ok, err = s.classes.next()
	if !errors.Is(err, io.EOF) {
		s.n++
		row.N = s.n
		return row, found, ok, err
	}
	if s.table == nil {
		return Seat{}, nil, false, io.EOF
	}
	r, err := s.table.next()
	if err != nil {
		return Seat{}, nil, false, err
	}
	s.n++
	s.Rows++
	l := s.layout
	row = Seat{N: s.n, Line: r.line, Person: s.table.value(r, l.person), Class: s.table.value(r, l.class), ClassName: s.table.value(r, "class_name")}
	t := issues{file: EnrollmentsFile, line: r.line, person: row.Person}
	if r.wrong == "" {
		r.wrong = unfit(named{l.person, row.Person, maxID}, named{l.class, row.Class, maxID}, named{"class_name", row.ClassName, maxText})
	}
	if l == oneRoster && r.wrong == "" {
		var student bool
		if row.Gone, student, r.wrong = s.place(r, row.Class, &t); !student && r.wrong == "" {
			return row, t.all, false, nil
		}
	}
	switch {
	case r.wrong != "":
		t.person = clean(row.Person)
		t.add(BadRow, Error, "the row was left out: %s", r.wrong)
	case row.Person == "":
		t.add(MissingExternalID, Error, "%s is missing", l.person)
	case row.Class == "":
		t.add(BadRow, Error, "the row was left out: %s is missing", l.class)
	case row.Gone:
		return row, t.all, true, nil
	default:
		t.suspicious(l.class, row.Class)
		t.suspicious("class_name", row.ClassName)
		return row, t.all, true, nil
	}
	s.Unreadable++
	return row, t.all, false, nil
}

// issues gathers the issues of one row.
type issues struct {
	file   string
	line   int
	person string
	user   int64
	all    []Issue
}

func (i *issues) add(code Code, severity Severity, format string, args ...any) {
	text := sprintf(format, args...)
	i.all = append(i.all, Issue{i.file, i.line, i.person, code, severity, text, i.user})
}

// suspicious warns of a value that a spreadsheet would run as a formula. It is stored unchanged.
func (i *issues) suspicious(column, value string) {
	if formula(value) {
		i.add(SuspiciousValue, Warning, "%s begins with %q, which a spreadsheet takes for a formula; it is stored as it is", column, value[:1])
	}
}

// broken warns of a name that was written over several lines.
func (i *issues) broken(column, written, stored string) {
	if written != stored {
		i.add(SuspiciousValue, Warning, "%s has a line break; it is stored with a blank in its place", column)
	}
}

func formula(value string) bool { return value != "" && strings.ContainsRune("=+-@", rune(value[0])) }

// Defuse makes a value safe for a spreadsheet that opens an exported file.
func Defuse(value string) string {
	if formula(value) || value != "" && (value[0] == '\t' || value[0] == '\r') {
		return "'" + value
	}
	return value
}

type named struct {
	column, value string
	most          int
}

// unfit says why a value cannot be stored; "" when all can.
func unfit(values ...named) string {
	for _, v := range values {
		switch {
		case strings.IndexFunc(v.value, func(r rune) bool { return unicode.IsControl(r) || r == utf8.RuneError }) >= 0:
			return v.column + " contains a line break or another character that cannot be shown"
		case len(v.value) > v.most && utf8.RuneCountInString(v.value) > v.most:
			return fmt.Sprintf("%s has more than %d characters", v.column, v.most)
		}
	}
	return ""
}

// sprintf leaves a text without arguments as it is: it may hold a percent sign.
func sprintf(format string, args ...any) string {
	if len(args) == 0 {
		return format
	}
	return fmt.Sprintf(format, args...)
}
