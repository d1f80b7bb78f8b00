package roster

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits of single values, in characters.
const (
	maxID   = 255
	maxName = 150
	maxText = 200 // of a class's name
)

// Person is one row of people.csv.
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

// People reads people.csv.
type People struct {
	table      *table
	rules      Rules
	n          int64
	Unreadable int // rows whose person is unknown
}

var (
	peopleColumns     = []string{"person_external_id", "email", "first_name", "last_name", "role"}
	enrollmentColumns = []string{"person_external_id", "class_external_id", "class_name"}
)

// Rules are those of the values that people.csv shares with other ways in.
type Rules struct {
	Email func(text string) (string, error) // gives an address its canonical form or refuses it
	Name  func(column, name string) error   // refuses a name
}

// People begins to read people.csv. Invalid when the header is missing, damaged or lacks a column
// that is needed.
func (f *File) People(rules Rules) (*People, error) {
	t, err := newTable(PeopleFile, f, f.people, peopleColumns, peopleColumns[:2])
	if err != nil {
		return nil, err
	}
	return &People{table: t, rules: rules}, nil
}

// Close ends the reading.
func (p *People) Close() error { return p.table.close() }

// Next reads one row and its issues; io.EOF after the last. Invalid when the rest of the file
// cannot be read.
func (p *People) Next() (Person, []Issue, error) {
	r, err := p.table.next()
	if err != nil {
		return Person{}, nil, err
	}
	p.n++
	assumed := p.table.assumed
	row := Person{N: p.n, Line: r.line, ExternalID: p.table.value(r, "person_external_id")}
	first, last := p.table.value(r, "first_name"), p.table.value(r, "last_name")
	row.FirstName, row.LastName = oneLine(first), oneLine(last)
	found := issues{file: PeopleFile, line: r.line, person: row.ExternalID}
	email, role := p.table.value(r, "email"), p.table.value(r, "role")
	if !assumed && p.table.assumed {
		found.add(EncodingAssumed, Warning, "the file is not UTF-8 from here on and was read as Windows-1252; look at the names and save it as UTF-8")
	}
	if r.wrong == "" {
		r.wrong = unfit(named{"person_external_id", row.ExternalID, maxID}, named{"email", email, 320},
			named{"first_name", row.FirstName, maxName}, named{"last_name", row.LastName, maxName}, named{"role", role, maxName})
	}
	if r.wrong == "" {
		r.wrong = p.wrongName(row)
	}
	if r.wrong == "" && (swallowed(first) || swallowed(last)) {
		r.wrong, r.lost = "a name holds a line break and an address; a quotation mark seems to be missing, and other rows to be in it", true
	}
	if r.wrong != "" {
		return p.bad(row, r, &found), found.all, nil
	}
	found.broken("first_name", first, row.FirstName)
	found.broken("last_name", last, row.LastName)
	found.suspicious("person_external_id", row.ExternalID)
	found.suspicious("first_name", row.FirstName)
	found.suspicious("last_name", row.LastName)
	found.suspicious("email", email)
	row.Email, row.Refused, row.Usable = p.judge(row, email, role, &found)
	return row, found.all, nil
}

// wrongName says which name is refused and why; "" when none is.
func (p *People) wrongName(row Person) string {
	err := p.rules.Name("first_name", row.FirstName)
	if err == nil {
		err = p.rules.Name("last_name", row.LastName)
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
func (p *People) judge(row Person, email, role string, found *issues) (canonical string, refused Code, usable bool) {
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
	switch kind := roleOf(role); {
	case row.ExternalID == "":
		return refuse(MissingExternalID, false, "person_external_id is missing; without it a repeat cannot know the person")
	case kind == roleTeacher:
		found.add(TeacherReported, Warning, "a teacher; teachers are reported and get no place from an import")
		return canonical, TeacherReported, true
	case kind == roleAdmin:
		found.add(AdminRoleNotGranted, Warning, "role %s; an import grants no administrative role, a person has to", cut(role, 40))
		return canonical, AdminRoleNotGranted, true
	case kind == roleUnknown:
		return refuse(UnknownRole, true, "role %s is unknown; send student or teacher", cut(role, 40))
	case email == "":
		return refuse(MissingEmail, false, "email is missing")
	case canonical == "":
		return refuse(InvalidEmail, false, "email is no email address")
	}
	return canonical, "", true
}

type role int

const (
	roleStudent role = iota
	roleTeacher
	roleAdmin
	roleUnknown
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

// Seat is one row of enrollments.csv: a student is in a class.
type Seat struct {
	N         int64
	Line      int
	Person    string
	Class     string
	ClassName string
}

// Seats reads enrollments.csv.
type Seats struct {
	table      *table
	n          int64
	Unreadable int // rows that could not be used, whose seats are unknown
}

// Seats begins to read enrollments.csv, which the file must have.
func (f *File) Seats() (*Seats, error) {
	t, err := newTable(EnrollmentsFile, f, f.enrollments, enrollmentColumns, enrollmentColumns[:2])
	if err != nil {
		return nil, err
	}
	return &Seats{table: t}, nil
}

// Close ends the reading.
func (s *Seats) Close() error { return s.table.close() }

// Next reads one row and its issues; ok is false for a row that cannot be used. io.EOF after the
// last.
func (s *Seats) Next() (row Seat, found []Issue, ok bool, err error) {
	r, err := s.table.next()
	if err != nil {
		return Seat{}, nil, false, err
	}
	s.n++
	row = Seat{N: s.n, Line: r.line, Person: s.table.value(r, "person_external_id"), Class: s.table.value(r, "class_external_id"), ClassName: s.table.value(r, "class_name")}
	t := issues{file: EnrollmentsFile, line: r.line, person: row.Person}
	if r.wrong == "" {
		r.wrong = unfit(named{"person_external_id", row.Person, maxID}, named{"class_external_id", row.Class, maxID}, named{"class_name", row.ClassName, maxText})
	}
	switch {
	case r.wrong != "":
		t.person = clean(row.Person)
		t.add(BadRow, Error, "the row was left out: %s", r.wrong)
	case row.Person == "":
		t.add(MissingExternalID, Error, "person_external_id is missing")
	case row.Class == "":
		t.add(BadRow, Error, "the row was left out: class_external_id is missing")
	default:
		t.suspicious("class_external_id", row.Class)
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
