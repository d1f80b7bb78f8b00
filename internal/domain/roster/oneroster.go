package roster

import (
	"archive/zip"
	"errors"
	"hash/maphash"
	"io"
	"path"
	"strings"

	"github.com/registrar-dev/registrar/internal/kit/clock"
)

// The files of a OneRoster archive, of version 1.1 or 1.2, that are read. Its enrollments are in EnrollmentsFile.
const (
	ManifestFile = "manifest.csv"
	UsersFile    = "users.csv"
	RolesFile    = "roles.csv" // of version 1.2
	ClassesFile  = "classes.csv"
	SessionsFile = "academicSessions.csv"
)

var oneRoster = &layout{people: UsersFile, id: "sourcedId", email: "email", first: "givenName", last: "familyName", role: "role",
	person: "userSourcedId", class: "classSourcedId", words: oneRosterRole}

var (
	manifestColumns = []string{"propertyName", "value"}
	userColumns     = []string{"sourcedId", "givenName", "familyName", "email", "username", "role", "status", "enabledUser"}
	roleColumns     = []string{"userSourcedId", "role", "status", "endDate"}
	classColumns    = []string{"sourcedId", "title", "classCode", "status", "termSourcedIds"}
	sessionColumns  = []string{"sourcedId", "startDate", "endDate", "status"}
	placeColumns    = []string{"userSourcedId", "classSourcedId", "role", "status", "endDate"}
)

// oneRosterRole is the role of a word of OneRoster's. Aides and others who work at a school are reported as its teachers are.
func oneRosterRole(word string) role {
	switch strings.ToLower(word) {
	case "student":
		return roleStudent
	case "teacher", "aide", "counselor", "proctor":
		return roleTeacher
	case "administrator", "districtadministrator", "siteadministrator", "systemadministrator", "principal":
		return roleAdmin
	case "guardian", "parent", "relative":
		return roleGuardian
	}
	return roleUnknown
}

// oneRosterFolder is the folder of an archive's manifest, in lower case; "" is the top level. An archive that has a
// people.csv is none of OneRoster's.
func oneRosterFolder(entries []*zip.File) (folder string, found bool) {
	for _, e := range entries {
		name := slashed(e.Name)
		switch {
		case name == PeopleFile:
			return "", false
		case !found && !ignored(e.Name) && path.Base(name) == ManifestFile:
			folder, found = path.Dir(name), true
		}
	}
	return folder, found
}

// chooseOneRoster finds the files that are read in the folder of the manifest. All others are left where they are.
func (f *File) chooseOneRoster(entries []*zip.File, folder string) error {
	f.layout = oneRoster
	var manifest *section
	sections := map[string]**section{ManifestFile: &manifest, UsersFile: &f.people, RolesFile: &f.roles,
		ClassesFile: &f.classes, EnrollmentsFile: &f.enrollments, sessionsName: &f.sessions}
	for _, e := range entries {
		if ignored(e.Name) {
			continue
		}
		if err := admit(e, ManifestFile); err != nil {
			return err
		}
		name := slashed(e.Name)
		into := sections[path.Base(name)]
		switch {
		case into == nil:
		case path.Dir(name) == folder:
			if err := f.set(into, e); err != nil {
				return err
			}
		case into == &manifest:
			return invalid("duplicate_section", "the archive holds %s in two folders; send one set of files", ManifestFile)
		}
	}
	modes, err := f.manifest(manifest)
	if err != nil {
		return err
	}
	for name, into := range sections {
		if modes[name] == absent {
			*into = nil
		}
	}
	if f.people == nil && modes[UsersFile] != absent && modes[UsersFile] != delta {
		return invalid("no_people_file", "the archive holds no %s, which %s calls neither absent nor a delta", UsersFile, ManifestFile)
	}
	f.deltaPeople = f.people == nil || modes[UsersFile] == delta
	f.deltaSeats = modes[EnrollmentsFile] == delta || f.enrollments == nil && f.deltaPeople
	f.deltaSessions = modes[sessionsName] == delta
	return nil
}

// sessionsName is SessionsFile as names of files are compared.
var sessionsName = strings.ToLower(SessionsFile)

// What a manifest says of a file.
const (
	bulk   = "bulk"
	delta  = "delta"
	absent = "absent"
)

// manifest reads what the archive says of the files that are read, by their names. Invalid for another standard than
// OneRoster 1, and for words that it does not have: they decide who counts as having left.
func (f *File) manifest(s *section) (map[string]string, error) {
	t, err := newTable(ManifestFile, f, s, manifestColumns, manifestColumns)
	if Empty(err) {
		return nil, invalid("bad_manifest", "%s is empty", ManifestFile)
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = t.close() }()
	modes := map[string]string{}
	for {
		r, err := t.next()
		if errors.Is(err, io.EOF) {
			return modes, nil
		}
		if err != nil {
			return nil, err
		}
		name, value := strings.ToLower(t.value(r, "propertyName")), strings.ToLower(t.value(r, "value"))
		file, named := strings.CutPrefix(name, "file.")
		file = strings.TrimSuffix(file, ".csv") + ".csv"
		switch {
		case name == "oneroster.version" && value != "" && !strings.HasPrefix(value, "1.") && value != "1":
			return nil, invalid("unsupported_version", "%s, line %d: OneRoster %s; versions 1.1 and 1.2 are read", ManifestFile, r.line, cut(value, 20))
		case !named || file != UsersFile && file != RolesFile && file != ClassesFile && file != EnrollmentsFile && file != sessionsName:
		case value != bulk && value != delta && value != absent && file == sessionsName: // it takes nobody away
		case value != bulk && value != delta && value != absent:
			return nil, invalid("bad_manifest", "%s, line %d: %s is %s; it has to be bulk, delta or absent", ManifestFile, r.line, name, cut(value, 20))
		case modes[file] != "" && modes[file] != value:
			return nil, invalid("bad_manifest", "%s, line %d: %s is both %s and %s", ManifestFile, r.line, name, modes[file], value)
		default:
			modes[file] = value
		}
	}
}

// optional begins to read a section that the archive may lack; nil when it does, or has it without even a header line.
func (f *File) optional(name string, s *section, known, required []string) (t *table, err error) {
	if s == nil {
		return t, nil
	}
	if t, err = newTable(name, f, s, known, required); Empty(err) {
		err = nil
	}
	return t, err
}

// users begins to read users.csv; its roles may be in roles.csv, which is read before.
func (f *File) users(rules Rules) (*People, error) {
	p := &People{layout: f.layout, rules: rules}
	roles, err := f.readRoles(rules)
	if err != nil || f.people == nil {
		return p, err
	}
	required := []string{"sourcedId"}
	if roles == nil && !f.deltaPeople {
		required = append(required, "role")
	}
	p.roles = roles
	p.table, err = newTable(UsersFile, f, f.people, userColumns, required)
	if Empty(err) && f.deltaPeople {
		err = nil
	}
	return p, err
}

// withdrawn says why the record of a row of OneRoster is there no more; "" while it is. wrong says why that cannot be
// told.
func (t *table) withdrawn(r record) (why, wrong string) {
	switch status := t.value(r, "status"); strings.ToLower(status) {
	case "", "active":
	case "tobedeleted", "inactive":
		return "status " + cut(status, 20), ""
	default:
		return "", "status " + cut(status, 20) + " is neither active nor tobedeleted"
	}
	switch enabled := t.value(r, "enabledUser"); strings.ToLower(enabled) {
	case "", "true", "1", "yes":
	case "false", "0", "no":
		return "enabledUser " + enabled, ""
	default:
		return "", "enabledUser " + cut(enabled, 20) + " is neither true nor false"
	}
	return "", ""
}

// ended says whether a row's endDate has passed. A date that cannot be read has not.
func (t *table) ended(r record, today clock.Date) bool {
	end, ok := t.day(r, "endDate")
	return ok && end.Before(today)
}

// day is the date in a column.
func (t *table) day(r record, column string) (d clock.Date, ok bool) {
	text := t.value(r, column)
	if len(text) > len("2006-01-02") { // a time may follow
		text = text[:len("2006-01-02")]
	}
	d, err := clock.ParseDate(text)
	return d, err == nil
}

// ids is a set of ids, with something about each. It has hashes of them under seeds of its own, so that its size does not
// depend on their lengths.
type ids[T any] struct {
	seeds [2]maphash.Seed
	set   map[[2]uint64]T
}

func newIDs[T any]() ids[T] {
	return ids[T]{[2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}, map[[2]uint64]T{}}
}

func (i ids[T]) key(id string) [2]uint64 {
	return [2]uint64{maphash.String(i.seeds[0], id), maphash.String(i.seeds[1], id)}
}

// roleBook is what roles.csv says of each person. One of nil says nothing.
type roleBook struct {
	kinds  ids[role]
	issues []Issue // with its rows, the first of them
}

// readRoles reads roles.csv; nil when there is none. Of several roles of a person one counts, in the order of the constants;
// those that are over do not.
func (f *File) readRoles(rules Rules) (*roleBook, error) {
	b := &roleBook{kinds: newIDs[role]()}
	found, there, err := f.readAhead(RolesFile, f.roles, roleColumns, 2, rules, func(t *table, r record, user string) string {
		if t.ended(r, rules.Today) {
			return ""
		}
		kind, key := oneRosterRole(t.value(r, "role")), b.kinds.key(user)
		if other, more := b.kinds.set[key]; !more || kind < other {
			b.kinds.set[key] = kind
		}
		return ""
	})
	if b.issues = found; !there {
		b = nil
	}
	return b, err
}

// maxAheadIssues is how many issues of a file that is read ahead are kept: they wait in memory.
const maxAheadIssues = 1000

// readAhead reads a file before the rows that refer to its own, of which the first column has the id and the first columns
// are required. use takes each row that is there, and says what is wrong with it. found are issues of bad rows; there is
// false when the archive lacks the file.
func (f *File) readAhead(
	name string, s *section, columns []string, required int, rules Rules, use func(t *table, r record, id string) (wrong string),
) (found []Issue, there bool, err error) {
	t, err := f.optional(name, s, columns, columns[:required])
	if t == nil {
		return nil, false, err
	}
	defer func() { _ = t.close() }()
	for {
		r, err := t.next()
		if errors.Is(err, io.EOF) {
			return found, true, nil
		}
		if err == nil && t.rows%pauseRows == 0 && rules.Pause != nil {
			err = rules.Pause()
		}
		if err != nil {
			return nil, true, err
		}
		id, gone := t.value(r, columns[0]), ""
		if r.wrong == "" {
			gone, r.wrong = t.withdrawn(r)
		}
		if r.wrong == "" && id == "" {
			r.wrong = columns[0] + " is missing"
		}
		if r.wrong == "" && gone == "" {
			r.wrong = use(t, r, id)
		}
		if r.wrong != "" && len(found) < maxAheadIssues {
			i := issues{file: name, line: r.line, person: clean(t.value(r, "userSourcedId"))}
			i.add(BadRow, Error, "the row was left out: %s", r.wrong)
			found = append(found, i.all...)
		}
	}
}

// of is the role of a person, if anything is said of it.
func (b *roleBook) of(user string) (kind role, said bool) {
	if b == nil || user == "" {
		return 0, false
	}
	kind, said = b.kinds.set[b.kinds.key(user)]
	return kind, said
}

// found gives the issues of roles.csv, once.
func (b *roleBook) found() (all []Issue) {
	if b != nil {
		all, b.issues = b.issues, nil
	}
	return all
}

// Days are the dates of a class, as the file has them: those of its terms, from the first to the last. The zero Days say nothing.
type Days struct{ StartDate, EndDate clock.Date }

// and are the days from the first of both to the last.
func (d Days) and(o Days) Days {
	if d == (Days{}) {
		return o
	}
	if o.StartDate.Before(d.StartDate) {
		d.StartDate = o.StartDate
	}
	d.EndDate = clock.Later(d.EndDate, o.EndDate)
	return d
}

// sessions are what academicSessions.csv says of the days of each term. Those of nil say nothing.
type sessions struct {
	days  ids[Days] // zero: they cannot be read, which an issue says
	delta bool      // terms that have not changed are missing
}

// readSessions reads academicSessions.csv; nil when there is none, or nothing in it. Terms, semesters and years are alike: each has its own days.
func (f *File) readSessions(rules Rules) (*sessions, []Issue, error) {
	s := &sessions{newIDs[Days](), f.deltaSessions}
	found, there, err := f.readAhead(SessionsFile, f.sessions, sessionColumns, 3, rules, func(t *table, r record, id string) string {
		key := s.days.key(id)
		start, begins := t.day(r, "startDate")
		end, ends := t.day(r, "endDate")
		if !begins || !ends || end.Before(start) {
			s.days.set[key] = Days{}
			return "startDate and endDate have to be two dates, as 2026-08-31, one not before the other"
		}
		s.days.set[key] = s.days.set[key].and(Days{start, end})
		return ""
	})
	if !there || len(s.days.set) == 0 && len(found) == 0 { // many systems write its header line alone
		s = nil
	}
	return s, found, err
}

// of are the days of a class with the terms; none unless those of each are known. missing is a term that the file should
// have, and lacks.
func (s *sessions) of(terms string) (d Days, missing string) {
	if s == nil {
		return Days{}, ""
	}
	for term := range strings.SplitSeq(terms, ",") {
		if term = strings.Trim(term, ` "`); term == "" {
			continue
		}
		days, found := s.days.set[s.days.key(term)]
		switch {
		case !found && !s.delta:
			return Days{}, term
		case days == (Days{}):
			return Days{}, ""
		}
		d = d.and(days)
	}
	return d, ""
}

// places begins to read classes.csv and, after it, enrollments.csv; academicSessions.csv is read before.
func (f *File) places(rules Rules) (*Seats, error) {
	s := &Seats{layout: f.layout, rules: rules}
	t, err := f.optional(ClassesFile, f.classes, classColumns, classColumns[:1])
	if err != nil {
		return nil, err
	}
	s.classes = &classes{table: t, over: newIDs[struct{}]()}
	if t != nil {
		s.classes.sessions, s.ahead, err = f.readSessions(rules)
	}
	if err == nil {
		s.table, err = f.optional(EnrollmentsFile, f.enrollments, placeColumns, placeColumns[:2])
	}
	if err != nil {
		_ = s.Close()
		return nil, err
	}
	return s, nil
}

// classes reads classes.csv. One of nil has none.
type classes struct {
	table    *table // nil: all is read
	over     ids[struct{}]
	sessions *sessions
}

func (c *classes) close() error {
	if c == nil {
		return nil
	}
	return closeTable(c.table)
}

// next reads one class. Of one that is over the id is kept alone.
func (c *classes) next() (row Seat, found []Issue, ok bool, err error) {
	for c != nil && c.table != nil {
		r, err := c.table.next()
		if errors.Is(err, io.EOF) {
			err = c.table.close()
			if c.table = nil; err == nil {
				break
			}
		}
		if err != nil {
			return Seat{}, nil, false, err
		}
		row := Seat{Line: r.line, Class: c.table.value(r, "sourcedId"), ClassName: c.table.value(r, "title")}
		if row.ClassName == "" {
			row.ClassName = c.table.value(r, "classCode")
		}
		gone := ""
		if r.wrong == "" {
			r.wrong = unfit(named{"sourcedId", row.Class, maxID}, named{"title", row.ClassName, maxText})
		}
		if r.wrong == "" {
			gone, r.wrong = c.table.withdrawn(r)
		}
		if r.wrong == "" && row.Class == "" {
			r.wrong = "sourcedId is missing"
		}
		t := issues{file: ClassesFile, line: r.line}
		switch {
		case r.wrong != "":
			t.add(BadRow, Error, "the row was left out: %s", r.wrong)
		case gone != "":
			c.over.set[c.over.key(row.Class)] = struct{}{}
			continue
		default:
			t.suspicious("sourcedId", row.Class)
			t.suspicious("title", row.ClassName)
			var missing string
			if row.Days, missing = c.sessions.of(c.table.value(r, "termSourcedIds")); missing != "" {
				t.add(UnknownSession, Warning, "%s lacks the term %s, or calls it deleted; the class keeps the dates that it has, or gets none", SessionsFile, cut(missing, 60))
			}
			return row, t.all, true, nil
		}
		return row, t.all, false, nil
	}
	return Seat{}, nil, false, io.EOF
}

// place judges a row of enrollments.csv: whether it is a student's, and whether the place has ended. wrong says why that
// cannot be told.
func (s *Seats) place(r record, class string, found *issues) (gone, student bool, wrong string) {
	role := s.table.value(r, "role")
	switch kind := oneRosterRole(role); {
	case role == "", kind == roleStudent:
	case kind == roleGuardian:
		return false, false, ""
	case kind == roleUnknown:
		return false, false, "role " + cut(role, 40) + " is unknown"
	default:
		found.add(TeacherReported, Warning, "role %s; an import puts students alone into a class", cut(role, 40))
		return false, false, ""
	}
	why, wrong := s.table.withdrawn(r)
	if why != "" && s.rules.Mode == Additive {
		found.add(Withdrawn, Warning, "%s: the place has ended; %s takes none away", why, Additive)
	}
	_, over := s.classes.over.set[s.classes.over.key(class)]
	return why != "" || over || s.table.ended(r, s.rules.Today), true, wrong
}
