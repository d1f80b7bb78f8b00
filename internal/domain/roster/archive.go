package roster

import (
	"archive/zip"
	"bytes"
	"errors"
	"io"
	"path"
	"strings"

	"github.com/registrar-dev/registrar/internal/kit/fault"
)

// What a file may be; all counted while reading, as what a file says of itself may lie.
const (
	MaxUpload   = 25 << 20  // bytes on the wire
	maxInflated = 250 << 20 // bytes of all sections together
	maxRatio    = 100       // inflated to compressed
	ratioFrom   = 64 << 10  // inflated bytes from which the ratio is looked at
	maxRows     = 1_000_000 // of all sections together, blank ones included
	// A row that differs from the one before it takes at least two bytes of an archive.
	rowsFrom      = 10_000 // rows from which their number is held against the packed bytes
	maxEntries    = 50
	maxDirectory  = 1 << 20 // bytes that may be read to list an archive
	maxNameLength = 1024
)

// Form is what the sender says the upload is.
type Form string

// The forms.
const (
	AnyForm Form = ""    // an archive or a bare people.csv, as its first bytes show
	ZipForm Form = "zip" // an archive
)

// File is an upload whose sections can be read, each any number of times.
type File struct {
	layout              *layout
	people, enrollments *section // nil: there is none
	roles, classes      *section // of a OneRoster archive
	sessions            *section // of one, too
	deltaPeople         bool
	deltaSeats          bool
	deltaSessions       bool
	inflated            []*int64 // bytes that came out of each section as it was last read
	rows                int      // that were read of all sections
}

// layout is how a format calls its section of people, and the columns that are read.
type layout struct {
	people                       string
	id, email, first, last, role string // of people
	person, class                string // of enrollments.csv
	words                        func(word string) role
}

var ownLayout = &layout{people: PeopleFile, id: "person_external_id", email: "email", first: "first_name", last: "last_name", role: "role",
	person: "person_external_id", class: "class_external_id", words: roleOf}

// section is a part of a file.
type section struct {
	open   func() (io.ReadCloser, error)
	packed int64 // bytes of it in an archive; 0: it is not in one
}

// Open opens an upload of size bytes. Invalid when it is neither an archive with a people.csv nor a
// bare people.csv; the message names another file format that was recognized. Empty says whether
// the reason is that nothing is in it.
func Open(r io.ReaderAt, size int64, form Form) (*File, error) {
	if size == 0 {
		return nil, errEmpty("the file is empty")
	}
	start := make([]byte, foreignSize)
	n, err := r.ReadAt(start, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	isZip := bytes.HasPrefix(start[:n], []byte("PK\x03\x04")) || bytes.HasPrefix(start[:n], []byte("PK\x05\x06"))
	switch {
	case isZip:
		return openZip(r, size)
	case form == ZipForm:
		return nil, errNoZip(start[:n])
	}
	return &File{layout: ownLayout, people: &section{open: func() (io.ReadCloser, error) {
		return io.NopCloser(io.NewSectionReader(r, 0, size)), nil
	}}}, nil
}

// PeopleFile is the name of the section of people.
func (f *File) PeopleFile() string { return f.layout.people }

// HasEnrollments says whether the file has an enrollments.csv.
func (f *File) HasEnrollments() bool { return f.enrollments != nil }

// HasSeats says whether Seats has anything to read: an enrollments.csv, or the classes of OneRoster.
func (f *File) HasSeats() bool { return f.enrollments != nil || f.classes != nil }

// Delta says whether the file has only those people, and those places in classes, that have changed. Whoever is
// missing from it has not left.
func (f *File) Delta() (people, seats bool) { return f.deltaPeople, f.deltaSeats }

// Empty says whether err means that a file or its people.csv holds nothing at all.
func Empty(err error) bool { return fault.Has(err, "empty_file") }

func errEmpty(text string) error {
	return invalid("empty_file", "%s; send a people.csv with a header line and a row for each person", text)
}

func invalid(code, format string, args ...any) error {
	return fault.New(fault.Invalid, code, format, args...)
}

func openZip(r io.ReaderAt, size int64) (*File, error) {
	directory := &budgetAt{r: r, left: maxDirectory}
	archive, err := zip.NewReader(directory, size)
	switch {
	case errors.Is(err, errBudget):
		return nil, invalid("too_many_entries", "the archive's list of entries is too long; send at most %d", maxEntries)
	case errors.Is(err, zip.ErrFormat), errors.Is(err, zip.ErrAlgorithm), errors.Is(err, zip.ErrInsecurePath),
		errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		if archive == nil || !errors.Is(err, zip.ErrInsecurePath) {
			return nil, errDamaged(err)
		}
	case err != nil:
		return nil, err
	}
	directory.left = 1 << 40 // the list is read; sections have limits of their own
	f := &File{layout: ownLayout}
	return f, f.choose(archive.File)
}

func errDamaged(err error) error {
	return fault.New(fault.Invalid, "archive_damaged", "the archive is damaged or incomplete; make it again and send it whole").Because(err)
}

// choose finds the sections among the entries and refuses what is not what it seems.
func (f *File) choose(entries []*zip.File) error {
	if kind := document(entries); kind != "" {
		return errForeign("the file", kind)
	}
	if len(entries) > maxEntries {
		return invalid("too_many_entries", "the archive has %d entries; send at most %d", len(entries), maxEntries)
	}
	if folder, found := oneRosterFolder(entries); found {
		return f.chooseOneRoster(entries, folder)
	}
	var names []string
	for _, e := range entries {
		if ignored(e.Name) {
			continue
		}
		names = append(names, e.Name)
		if err := f.take(e); err != nil {
			return err
		}
	}
	switch {
	case f.people != nil:
		return nil
	case len(names) == 0:
		return errEmpty("the archive is empty")
	}
	return invalid("no_people_file", "the archive holds no %s; it holds %s", PeopleFile, list(names))
}

// ignored are folders and what operating systems put beside people's files.
func ignored(name string) bool {
	base := path.Base(name)
	return strings.HasSuffix(name, "/") && !unsafe(name) || strings.HasPrefix(name, "__MACOSX/") ||
		base == ".DS_Store" || strings.EqualFold(base, "Thumbs.db") || strings.HasPrefix(base, "._")
}

func unsafe(name string) bool {
	slashed := strings.ReplaceAll(name, `\`, "/")
	return path.IsAbs(slashed) || strings.Contains(slashed, ":") || strings.ContainsRune(slashed, 0) ||
		strings.HasPrefix(path.Clean(slashed), "..") || len(name) > maxNameLength
}

// slashed is an entry's path in lower case, with slashes also where its archiver wrote backslashes.
func slashed(name string) string { return strings.ToLower(strings.ReplaceAll(name, `\`, "/")) }

// admit refuses an entry that no archive of a roster has; people is the name of its section of people.
func admit(e *zip.File, people string) error {
	switch {
	case unsafe(e.Name):
		return invalid("unsafe_path", "the archive has an entry with the path %.100q; put %s at its top level", e.Name, people)
	case e.Flags&1 != 0:
		return invalid("encrypted", "the archive is encrypted; send one without a password")
	case archiveName(slashed(e.Name)):
		return invalid("nested_archive", "the archive holds another archive, %.100q; send %s itself", e.Name, people)
	}
	return nil
}

func (f *File) take(e *zip.File) error {
	if err := admit(e, PeopleFile); err != nil {
		return err
	}
	name := strings.ToLower(e.Name)
	base := path.Base(slashed(e.Name))
	switch {
	case name == PeopleFile:
		return f.set(&f.people, e)
	case name == EnrollmentsFile:
		return f.set(&f.enrollments, e)
	case base == PeopleFile || base == EnrollmentsFile:
		return invalid("nested_section", "%s lies in a folder of the archive; put it at the top level", base)
	case base == UsersFile:
		return invalid("unknown_section", "the archive holds %.100q as OneRoster has it, and lacks its %s", e.Name, ManifestFile)
	case strings.HasSuffix(base, ".csv"):
		return invalid("unknown_section", "the archive holds %.100q; the sections are called %s and %s", e.Name, PeopleFile, EnrollmentsFile)
	}
	return nil // a note or a picture harms nobody
}

func archiveName(base string) bool {
	switch path.Ext(base) {
	case ".zip", ".gz", ".tgz", ".bz2", ".xz", ".7z", ".rar", ".tar", ".zst":
		return true
	}
	return false
}

func (f *File) set(into **section, e *zip.File) error {
	name := strings.ToLower(e.Name)
	switch {
	case *into != nil:
		return invalid("duplicate_section", "the archive holds %s twice; send it once", name)
	case e.Method != zip.Store && e.Method != zip.Deflate:
		return invalid("unsupported_compression", "%s is compressed in a way that is not supported; use an ordinary zip", name)
	case e.UncompressedSize64 > maxInflated:
		return errInflated
	}
	read := new(int64)
	f.inflated = append(f.inflated, read)
	open := func() (io.ReadCloser, error) {
		r, err := e.Open()
		if err != nil {
			return nil, errDamaged(err)
		}
		*read = 0
		return &inflating{ReadCloser: r, file: f, compressed: int64(e.CompressedSize64), read: read}, nil
	}
	*into = &section{open, int64(e.CompressedSize64)}
	return nil
}

// total is how many bytes came out of all sections, each read once.
func (f *File) total() (n int64) {
	for _, read := range f.inflated {
		n += *read
	}
	return n
}

var errInflated = invalid("archive_too_large", "the archive unpacks to more than %d MB; send fewer people at a time", maxInflated>>20)

// inflating counts what comes out of an archive.
type inflating struct {
	io.ReadCloser
	file       *File
	compressed int64
	read       *int64
}

func (i *inflating) Read(p []byte) (int, error) {
	n, err := i.ReadCloser.Read(p)
	*i.read += int64(n)
	switch {
	case i.file.total() > maxInflated:
		return 0, errInflated
	case *i.read > ratioFrom && *i.read > maxRatio*i.compressed:
		return 0, invalid("compression_ratio", "the archive unpacks to more than %d times its size, which no roster does", maxRatio)
	case err != nil && !errors.Is(err, io.EOF):
		return n, errDamaged(err)
	}
	return n, err
}

// count counts a row of a section of which n rows have values. Invalid when the file has more rows
// than a roster, or the section more than its packed size has room for.
func (f *File) count(name string, s *section, n int) error {
	f.rows++
	switch {
	case f.rows > maxRows:
		return invalid("too_many_rows", "the file has more than 1,000,000 rows; send fewer people at a time")
	case s.packed > 0 && n > rowsFrom && int64(n) > s.packed:
		return invalid("compression_ratio", "%s has more than %d rows in %d bytes of the archive, which no roster does", name, n-1, s.packed)
	}
	return nil
}

var errBudget = errors.New("roster: read too much")

// budgetAt bounds what is read in all.
type budgetAt struct {
	r    io.ReaderAt
	left int64
}

func (b *budgetAt) ReadAt(p []byte, off int64) (int, error) {
	if b.left -= int64(len(p)); b.left < 0 {
		return 0, errBudget
	}
	return b.r.ReadAt(p, off)
}

// list writes a few names for a message.
func list(names []string) string {
	const most = 5
	shown := names[:min(len(names), most)]
	quoted := make([]string, len(shown))
	for i, n := range shown {
		quoted[i] = strings.ToValidUTF8(cut(n, 60), "?")
	}
	text := strings.Join(quoted, ", ")
	if len(names) > most {
		text += " and more"
	}
	return text
}

func cut(s string, chars int) string {
	if r := []rune(s); len(r) > chars {
		return string(r[:chars]) + "…"
	}
	return s
}
