package roster

import (
	"archive/zip"
	"bytes"
	"io"
	"slices"
	"strings"

	"github.com/registrar-dev/registrar/internal/kit/fault"
)

// foreignSize is how much of a file's beginning foreign needs.
const foreignSize = 512

// beginnings recognize what people send instead of a roster by mistake.
var beginnings = []struct{ start, kind string }{
	{"PK\x03\x04", "a zip archive or an Excel workbook"}, // inside an archive
	{"\x1f\x8b", "a gzip file"},
	{"BZh", "a bzip2 file"},
	{"\xfd7zXZ\x00", "an xz file"},
	{"\x28\xb5\x2f\xfd", "a zstd file"},
	{"7z\xbc\xaf\x27\x1c", "a 7z archive"},
	{"Rar!\x1a\x07", "a RAR archive"},
	{"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "a document of an old Microsoft Office (.xls)"},
	{"%PDF-", "a PDF document"},
	{"{\\rtf", "an RTF document"},
	{"\x89PNG\r\n", "a picture"},
	{"\xff\xd8\xff", "a picture"},
	{"GIF8", "a picture"},
	{"SQLite format 3\x00", "an SQLite database"},
	{"<", "an HTML or XML document"},
	{"{", "a JSON document"},
	{"[", "a JSON document"},
}

// foreign names the format of a file with this beginning that cannot be read as CSV; "" for an
// unknown one.
func foreign(start []byte) string {
	text := bytes.TrimSpace(bytes.TrimPrefix(start, []byte("\xef\xbb\xbf")))
	for _, b := range beginnings {
		if bytes.HasPrefix(text, []byte(b.start)) {
			return b.kind
		}
	}
	return ""
}

// document names the office document that an archive's entries are; "" for none.
func document(entries []*zip.File) string {
	for _, e := range entries {
		switch e.Name {
		case "xl/workbook.xml", "xl/workbook.bin":
			return "an Excel workbook (.xlsx)"
		case "word/document.xml":
			return "a Word document (.docx)"
		case "Index/Document.iwa":
			return "a Numbers or Pages document"
		}
	}
	if slices.ContainsFunc(entries, func(e *zip.File) bool { return e.Name == "mimetype" }) &&
		slices.ContainsFunc(entries, func(e *zip.File) bool { return e.Name == "content.xml" }) {
		return "an OpenDocument spreadsheet or text (.ods, .odt)"
	}
	return ""
}

func errForeign(name, kind string) error {
	return invalid("not_a_csv", "%s cannot be read as CSV, as it is %s; save the list as CSV and send that as people.csv, or a zip archive that holds it", name, kind)
}

// headerFaults are what reading the header of something else than CSV comes to.
var headerFaults = []string{"missing_column", "damaged_header", "unbalanced_quotes", "header_too_long", "too_many_columns", "record_too_long"}

// explainForeign says what was sent where err is only that its header cannot be read.
func explainForeign(name string, start []byte, err error) error {
	kind := foreign(start)
	if kind != "" && slices.ContainsFunc(headerFaults, func(code string) bool { return fault.Has(err, code) }) {
		return errForeign(name, kind)
	}
	return err
}

func errNoZip(start []byte) error {
	kind := foreign(start)
	if kind == "" {
		kind = "something else, or an archive whose beginning is lost"
	}
	return invalid("not_a_zip", "the file is sent as a zip archive and is none: it is %s; send an archive that holds people.csv, or people.csv itself as CSV", kind)
}

// NamedSize is how much of a file's beginning FormOf wants: no header line is longer.
const NamedSize = maxHeader

// FormOf is the form of an upload by the name of its file: one that is called .zip is an
// archive, unless it is plainly a people.csv under a wrong name. start is the beginning of it.
func FormOf(name string, start []byte) Form {
	if !strings.HasSuffix(strings.ToLower(strings.TrimSpace(name)), ".zip") {
		return AnyForm
	}
	people := &section{open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(start)), nil }}
	t, err := newTable(PeopleFile, &File{layout: ownLayout}, people, peopleColumns, peopleColumns[:2])
	if err == nil {
		_ = t.close()
		return AnyForm
	}
	return ZipForm
}
