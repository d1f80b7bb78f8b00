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
	people, err := file.People(roster.Rules{Email: email, Name: name})
	if err != nil {
		return "", err
	}
	defer func() { _ = people.Close() }()
	usable, found := 0, ""
	for {
		row, issues, err := people.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return "", err
		}
		if row.Refused == "" {
			usable++
		}
		found += codes(issues)
	}
	text := fmt.Sprintf("%d%s", usable, found)
	if people.Unreadable > 0 {
		text += fmt.Sprintf(" lost=%d", people.Unreadable)
	}
	if !file.HasEnrollments() {
		return text, nil
	}
	seats, err := readSeats(file)
	return text + " | " + seats, err
}

func readSeats(file *roster.File) (string, error) {
	seats, err := file.Seats()
	if err != nil {
		return "", err
	}
	defer func() { _ = seats.Close() }()
	usable, found := 0, ""
	for {
		_, issues, ok, err := seats.Next()
		if errors.Is(err, io.EOF) {
			return fmt.Sprintf("%d%s", usable, found), nil
		}
		if err != nil {
			return "", err
		}
		if ok {
			usable++
		}
		found += codes(issues)
	}
}

func codes(issues []roster.Issue) (text string) {
	for _, i := range issues {
		text += fmt.Sprintf(" %d:%s", i.Line, i.Code)
	}
	return text
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
