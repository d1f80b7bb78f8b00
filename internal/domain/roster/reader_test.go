package roster_test

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strings"
	"testing"

	"github.com/registrar-dev/registrar/internal/domain/roster"
	"github.com/registrar-dev/registrar/internal/domain/roster/rostertest"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/fault"
)

// email takes what has an @ between two letters; the real rules are the student area's.
func email(text string) (string, error) {
	at := strings.IndexByte(text, '@')
	if at < 1 || at == len(text)-1 || strings.ContainsAny(text, " ,;") {
		return "", errors.New("no address")
	}
	return strings.ToLower(text), nil
}

// name refuses what has two slashes; the real rules are the student area's.
func name(column, name string) error {
	if strings.Contains(name, "//") {
		return errors.New(column + ": no name")
	}
	return nil
}

// outcome is what reading a file came to, in one line: the fault's code, or how many rows
// can be used and the issues' codes with their lines, enrollments.csv after a bar.
func outcome(file []byte) string {
	text, err := read(bytes.NewReader(file), int64(len(file)))
	var f *fault.Error
	switch {
	case errors.As(err, &f):
		return fmt.Sprintf("%s: %s", f.Kind, f.Code)
	case err != nil:
		return "error: " + err.Error()
	}
	return text
}

func read(r io.ReaderAt, size int64) (string, error) {
	file, err := roster.Open(r, size, roster.AnyForm)
	if err != nil {
		return "", err
	}
	rules := roster.Rules{Email: email, Name: name, Mode: roster.Additive, Today: clock.DateOf(2026, 11, 23)}
	people, err := file.People(rules)
	if err != nil {
		return "", err
	}
	defer func() { _ = people.Close() }()
	usable, withdrawn, unsaid, found := 0, 0, 0, ""
	for {
		row, issues, err := people.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return "", err
		}
		switch row.Refused {
		case "":
			usable++
		case roster.Withdrawn:
			withdrawn++
		case "unsaid_role":
			unsaid++
		}
		found += codes(file, issues)
	}
	text := fmt.Sprintf("%d%s", usable, found) + counted("withdrawn", withdrawn) + counted("unsaid", unsaid)
	if people.Unreadable > 0 {
		text += fmt.Sprintf(" lost=%d", people.Unreadable)
	}
	if !file.HasSeats() {
		return text, nil
	}
	seats, err := readSeats(file, rules)
	return text + " | " + seats, err
}

func readSeats(file *roster.File, rules roster.Rules) (string, error) {
	seats, err := file.Seats(rules)
	if err != nil {
		return "", err
	}
	defer func() { _ = seats.Close() }()
	usable, classes, gone, found, days := 0, 0, 0, "", ""
	for {
		row, issues, ok, err := seats.Next()
		if errors.Is(err, io.EOF) {
			return fmt.Sprintf("%d%s", usable, found) + counted("classes", classes) + days + counted("gone", gone), nil
		}
		if err != nil {
			return "", err
		}
		switch {
		case !ok:
		case row.Gone:
			gone++
		case row.Person == "":
			classes++
			if row.Days != (roster.Days{}) {
				days += fmt.Sprintf(" %s=%s/%s", row.Class, row.StartDate, row.EndDate)
			}
		default:
			usable++
		}
		found += codes(file, issues)
	}
}

// codes are issues by line and code; those of sections that only OneRoster has are with the name of their file.
func codes(file *roster.File, issues []roster.Issue) (text string) {
	for _, i := range issues {
		name := ""
		if i.File != file.PeopleFile() && i.File != roster.EnrollmentsFile {
			name = strings.TrimSuffix(i.File, ".csv") + ":"
		}
		text += fmt.Sprintf(" %s%d:%s", name, i.Line, i.Code)
	}
	return text
}

func counted(what string, n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(" %s=%d", what, n)
}

// Exports in the shapes that school systems write, and what is wrong with some.
// Reference: roster#oneroster.
func TestOneRosterFiles(t *testing.T) {
	t.Parallel()
	files := rostertest.OneRoster()
	if len(files) < 60 {
		t.Fatalf("%d files", len(files))
	}
	for _, f := range files {
		if got := outcome(f.Content); got != f.Want {
			t.Errorf("%s: %.300s\nwant %s", f.Name, got, f.Want)
		}
	}
}

func TestHostileFiles(t *testing.T) {
	t.Parallel()
	files := rostertest.Hostile()
	if len(files) < 60 {
		t.Fatalf("%d files", len(files))
	}
	for _, f := range files {
		if got := outcome(f.Content); got != f.Want {
			t.Errorf("%s: %.300s\nwant %s", f.Name, got, f.Want)
		}
	}
}

const header = "person_external_id,email,first_name,last_name,role\n"

// archive holds a people.csv of n rows.
func archive(header string, n int, row func(i int) string) []byte {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	f, err := w.Create("people.csv")
	if err != nil {
		panic(err)
	}
	_, _ = io.WriteString(f, header)
	for i := range n {
		_, _ = io.WriteString(f, row(i))
	}
	if err := w.Close(); err != nil {
		panic(err)
	}
	return b.Bytes()
}

// A file of more than 250 MB in all, each section within the ratio.
// Reference: limits#roster-size.
func TestAnArchiveIsBoundedAsItIsRead(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("makes an archive of 260 MB")
	}
	row := func(i int) string {
		return fmt.Sprintf("s%d,p%d@institute.org,%s,B,\n", i, i, strings.Repeat("Abcdefghij", 10)+fmt.Sprint(i*7919%1000003))
	}
	file := archive(header, 1_900_000, row)
	if len(file) > roster.MaxUpload {
		t.Fatalf("the archive has %d bytes", len(file))
	}
	if got := outcome(file); got != "invalid: archive_too_large" {
		t.Error(got)
	}
}

// The first row too many ends the reading.
// Reference: limits#roster-size.
func TestRowsAreBoundedAsTheyAreCounted(t *testing.T) {
	t.Parallel()
	rows := func(n int, row string) []byte { return []byte(header + strings.Repeat(row, n)) }
	if got := outcome(rows(1_000_001, ",,,,\n")); got != "invalid: too_many_rows" {
		t.Errorf("a row more than a million: %s", got)
	}
	if got := outcome(rows(1_000_000, ",,,,\n")); got != "0" {
		t.Errorf("a million rows: %s", got)
	}
	both := func(people, seats int) []byte {
		var b bytes.Buffer
		w := zip.NewWriter(&b)
		for _, s := range []struct {
			name, head, row string
			n               int
		}{{"people.csv", header, "s%d,s%d@b.de,,,\n", people}, {"enrollments.csv", "person_external_id,class_external_id\n", "s%d,c%d\n", seats}} {
			f, err := w.Create(s.name)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.WriteString(f, s.head)
			for i := range s.n {
				_, _ = fmt.Fprintf(f, s.row, i, i)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	if got := outcome(both(500_000, 500_001)); got != "invalid: too_many_rows" {
		t.Errorf("a row more than a million in both sections: %s", got)
	}
	if got := outcome(both(30_000, 30_000)); got != "30000 | 30000" {
		t.Errorf("short rows that differ: %s", got)
	}
	// Rows that are alike but for some, so that the archive is not smaller than a roster's may be.
	alike := func(i int) string {
		if i%150 == 0 {
			return fmt.Sprintf("%x,a@b.de,,,\n", sha256.Sum256([]byte{byte(i), byte(i >> 8)}))
		}
		return "s1,a@b.de,,,\n"
	}
	if got := outcome(archive(header, 20_000, alike)); got != "invalid: compression_ratio" {
		t.Errorf("more rows than the archive has room for: %s", got)
	}
	if got := outcome(archive(header, 9_000, alike)); got != "9000" {
		t.Errorf("fewer rows that are alike: %s", got)
	}
}

func TestBrokenStorageIsNoFaultOfTheFile(t *testing.T) {
	t.Parallel()
	file := archive(header, 1, func(int) string { return "s1,ana@institute.org,Ana,Lopez,student\n" })
	if _, err := read(broken{}, int64(len(file))); !errors.Is(err, errBroken) {
		t.Errorf("%v", err)
	}
}

var errBroken = errors.New("the database is away")

type broken struct{}

func (broken) ReadAt([]byte, int64) (int, error) { return 0, errBroken }

// The roles are read before the first person, and others take their turns meanwhile.
func TestRolesAreReadWithPauses(t *testing.T) {
	t.Parallel()
	var roles strings.Builder
	roles.WriteString(rostertest.Roles12)
	for i := range 9000 {
		fmt.Fprintf(&roles, "r%d,,,user-%x,primary,student,,,s1,\n", i, sha256.Sum256([]byte{byte(i), byte(i >> 8)}))
	}
	archive := rostertest.Archive("manifest.csv", rostertest.Manifest("1.2", "users delta", "roles delta"), "users.csv", rostertest.Users12, "roles.csv", roles.String())
	file, err := roster.Open(bytes.NewReader(archive), int64(len(archive)), roster.ZipForm)
	if err != nil {
		t.Fatal(err)
	}
	pauses, away := 0, errors.New("the claim is lost")
	rules := roster.Rules{Email: email, Name: name, Pause: func() error { pauses++; return nil }}
	if _, err := file.People(rules); err != nil || pauses != 2 {
		t.Errorf("%d pauses, %v", pauses, err)
	}
	rules.Pause = func() error { return away }
	if _, err := file.People(rules); !errors.Is(err, away) {
		t.Errorf("it goes on after its pause: %v", err)
	}
}

// Reading a roster of people and as many places, in our own format and as OneRoster has it: as bytes of CSV and as people.
func BenchmarkReading(b *testing.B) {
	const people = 100_000
	var own, seats, users, places, roles strings.Builder
	own.WriteString(header)
	seats.WriteString("person_external_id,class_external_id,class_name\n")
	users.WriteString(rostertest.Users11)
	places.WriteString(rostertest.Enrollments)
	roles.WriteString(rostertest.Roles12)
	for i := range people {
		fmt.Fprintf(&own, "student-%07d,given%d.family%d@school.org,Given%d,Family-%d,student\n", i, i, i%977, i%4001, i)
		fmt.Fprintf(&seats, "student-%07d,class-%d,Class %d\n", i, i/25, i/25)
		fmt.Fprintf(&users, "student-%07d,,,true,s1,student,user%d,,Given%d,Family-%d,,,given%d.family%d@school.org,,,,09,\n", i, i, i%4001, i, i, i%977)
		fmt.Fprintf(&places, "e-%d,,,class-%d,s1,student-%07d,student,false,2026-08-01,2027-06-30\n", i, i/25, i)
		fmt.Fprintf(&roles, "r-%d,,,student-%07d,primary,student,,,s1,\n", i, i)
	}
	for name, file := range map[string][]byte{
		"own":           rostertest.Archive("people.csv", own.String(), "enrollments.csv", seats.String()),
		"OneRoster 1.1": rostertest.Archive("manifest.csv", rostertest.Manifest("1.1", "users bulk", "enrollments bulk"), "users.csv", users.String(), "enrollments.csv", places.String()),
		"OneRoster 1.2": rostertest.Archive("manifest.csv", rostertest.Manifest("1.2", "users bulk", "roles bulk", "enrollments bulk"), "users.csv", users.String(),
			"roles.csv", roles.String(), "enrollments.csv", places.String()),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(file)))
			for b.Loop() {
				if got := outcome(file); got != fmt.Sprintf("%d | %d", people, people) {
					b.Fatal(got)
				}
			}
		})
	}
}

// Whatever the bytes are, reading ends, without a panic, in rows or in a fault that says why.
func FuzzReader(f *testing.F) {
	for _, h := range rostertest.Hostile() {
		if len(h.Content) < 64<<10 {
			f.Add(h.Content)
		}
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		if got := outcome(file); strings.HasPrefix(got, "error: ") {
			t.Errorf("%q: %s", file, got)
		}
	})
}

// Whatever the files of a OneRoster archive hold, reading ends in rows or in a fault, and nobody is a student whom neither
// file calls one.
func FuzzOneRoster(f *testing.F) {
	const users, roles = "sourcedId,status,enabledUser,role,username,givenName,familyName,email\nu1,active,true,student,ana,Ana,Lopez,ana@institute.org\n",
		"userSourcedId,role,status,endDate\nu1,student,active,2027-06-30\n"
	f.Add("file.users,bulk\n", users, "", "", "", "")
	f.Add("file.users,delta\noneroster.version,1.2\n", strings.Replace(users, "role", "more", 1), roles, "", "", "")
	f.Add("file.users,bulk\nfile.academicSessions,delta\n", users, "", "sourcedId,termSourcedIds\nc1,\"t1, t2\"\nc2,t9\n", "",
		"sourcedId,startDate,endDate,status\nt1,2026-08-01,2026-12-20T00:00:00Z,\nt2,2027-01-08,2027-06-30,active\nt3,2026-12-20,2026-08-01,\n")
	f.Add("file.users,absent\nfile.enrollments,delta\n", "\xff\xfe", "userSourcedId,role\nu1,parent\n", "sourcedId,title,status\nc1,One,tobedeleted\n",
		"classSourcedId,userSourcedId,role,endDate\nc1,u1,student,2020-01-01T00:00:00Z\nc2,u1,,\n", "")
	f.Fuzz(func(t *testing.T, manifest, users, roles, classes, places, sessions string) {
		archive := rostertest.Archive("manifest.csv", "propertyName,value\n"+manifest, "users.csv", users, "roles.csv", roles, "classes.csv", classes, "enrollments.csv", places,
			"academicSessions.csv", sessions)
		got := outcome(archive)
		if strings.HasPrefix(got, "error: ") {
			t.Errorf("%q: %s", []string{manifest, users, roles, classes, places, sessions}, got)
		}
		called := strings.ToLower(strings.ReplaceAll(users+roles, "\x00", "")) // of UTF-16 as of UTF-8
		if got[0] >= '1' && got[0] <= '9' && !strings.Contains(called, "student") {
			t.Errorf("%q: %s", []string{manifest, users, roles, classes, places, sessions}, got)
		}
	})
}

// The manifest alone says what is missing because it has not changed.
func FuzzManifest(f *testing.F) {
	f.Add("propertyName,value\nmanifest.version,1.0\noneroster.version,1.1\nfile.users,bulk\nfile.enrollments,delta\n")
	f.Add("\xef\xbb\xbf\"PropertyName\";\"Value\"\r\n\"file.users\";\"Delta\"\r\n")
	f.Fuzz(func(t *testing.T, manifest string) {
		archive := rostertest.Archive("manifest.csv", manifest, "users.csv", "sourcedId,role\n", "enrollments.csv", "classSourcedId,userSourcedId\n")
		file, err := roster.Open(bytes.NewReader(archive), int64(len(archive)), roster.ZipForm)
		if err != nil {
			if fault.KindOf(err) != fault.Invalid {
				t.Errorf("%q: %v", manifest, err)
			}
			return
		}
		people, seats := file.Delta()
		said := strings.ToLower(strings.ReplaceAll(manifest, "\x00", ""))
		if people && !strings.Contains(said, "delta") && !strings.Contains(said, "absent") || seats && !strings.Contains(said, "delta") && !strings.Contains(said, "absent") {
			t.Errorf("%q: a delta of people %t, of places %t", manifest, people, seats)
		}
	})
}

// An archive may say anything of what it holds: names, lengths, sums and methods are the sender's.
func FuzzArchive(f *testing.F) {
	people := header + "s1,ana@institute.org,Ana,Lopez,student\n"
	f.Add("people.csv", "enrollments.csv", people, "class_external_id,person_external_id,role\n", zip.Store, uint64(0), uint32(0))
	f.Add("people.csv", "PEOPLE.CSV", people, people, zip.Deflate, uint64(1<<40), uint32(1))
	f.Add("../people.csv", `a\people.csv`, people, "", uint16(99), uint64(1), uint32(0))
	f.Add("people.csv/", "people.csv", "", people, zip.Store, ^uint64(0), ^uint32(0))
	f.Add("people.csv\x00.txt", "\xff/people.csv", "PK\x03\x04", people, zip.Store, uint64(1<<31), uint32(7))
	f.Add("[Content_Types].xml", "xl/workbook.xml", people, people, zip.Deflate, uint64(0), uint32(0))
	f.Fuzz(func(t *testing.T, first, second, one, two string, method uint16, size uint64, sum uint32) {
		var b bytes.Buffer
		w := zip.NewWriter(&b)
		for _, e := range []struct{ name, content string }{{first, one}, {second, two}} {
			h := &zip.FileHeader{Name: e.name, Method: method, CRC32: crc32.ChecksumIEEE([]byte(e.content)) ^ sum,
				CompressedSize64: uint64(len(e.content)), UncompressedSize64: uint64(len(e.content)) ^ size}
			entry, err := w.CreateRaw(h)
			if err == nil {
				_, err = io.WriteString(entry, e.content)
			}
			if err != nil {
				t.Skip("the writer refuses this, a folder with content for instance:", err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		got := outcome(b.Bytes())
		if strings.HasPrefix(got, "error: ") {
			t.Errorf("%q, %q: %s", first, second, got)
		}
		if (size != 0 || sum != 0) && method == zip.Store && first == "people.csv" && second == "enrollments.csv" && strings.HasPrefix(got, "1") {
			t.Errorf("an archive that lies about %d and %d is read: %s", size, sum, got)
		}
	})
}
