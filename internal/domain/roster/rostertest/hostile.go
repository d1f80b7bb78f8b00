// Package rostertest holds files that an import has to withstand.
package rostertest

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"strings"

	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"
)

const (
	header   = "person_external_id,email,first_name,last_name,role\n"
	one      = header + "s1,ana@institute.org,Ana,Lopez,student\n"
	seatHead = "person_external_id,class_external_id,class_name\n"
)

// entry is a file of an archive.
type entry struct {
	name, text string
	change     func(*zip.FileHeader)
}

func archive(entries ...entry) []byte {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, e := range entries {
		h := &zip.FileHeader{Name: e.name, Method: zip.Deflate}
		if e.change != nil {
			e.change(h)
		}
		f, err := w.CreateHeader(h)
		if err != nil {
			panic(err)
		}
		_, _ = io.WriteString(f, e.text)
	}
	if err := w.Close(); err != nil {
		panic(err)
	}
	return b.Bytes()
}

func utf16(order unicode.Endianness, mark unicode.BOMPolicy, text string) []byte {
	b, err := unicode.UTF16(order, mark).NewEncoder().Bytes([]byte(text))
	if err != nil {
		panic(err)
	}
	return b
}

func latin1(text string) []byte {
	b, err := charmap.Windows1252.NewEncoder().Bytes([]byte(text))
	if err != nil {
		panic(err)
	}
	return b
}

func gzipped(text string) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = io.WriteString(w, text)
	if err := w.Close(); err != nil {
		panic(err)
	}
	return b.Bytes()
}

// patch is the archive with every occurrence of one signature's field changed.
func patch(file []byte, signature string, offset int, value ...byte) []byte {
	out := bytes.Clone(file)
	for at := 0; ; {
		i := bytes.Index(out[at:], []byte(signature))
		if i < 0 {
			return out
		}
		at += i + len(signature)
		copy(out[at-len(signature)+offset:], value)
	}
}

const (
	localHeader = "PK\x03\x04" // general purpose flags at 6, method at 8
	central     = "PK\x01\x02" // flags at 8, method at 10
)

func repeat(n int, row func(i int) string) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(row(i))
	}
	return b.String()
}

// File is a file that is wrong in some way, or right in an odd one.
type File struct {
	Name    string
	Content []byte
	// Want is what reading it comes to: "invalid: " and a fault's code; or how many rows of
	// people.csv can be used and the issues as " line:code", those of enrollments.csv after a bar.
	Want string
}

func text(s string) []byte { return []byte(s) }

// Hostile are hostile and broken files, and a few odd ones that are fine.
func Hostile() []File {
	good := archive(entry{name: "people.csv", text: one})
	random := archive(entry{"people.csv", one, func(h *zip.FileHeader) { h.Method = zip.Store }})
	return []File{
		// Nothing there
		{"zero bytes", nil, "invalid: empty_file"},
		{"blanks", text(" \n\n \n"), "invalid: empty_file"},
		{"a byte order mark alone", text("\xef\xbb\xbf"), "invalid: empty_file"},
		{"header only", text(header), "0"},
		{"header without a line end", text(strings.TrimSpace(header)), "0"},
		{"header and blank lines", text(header + "\n\n,,,,\n  ,,,,\n"), "0"},
		{"an archive with nothing in it", archive(), "invalid: empty_file"},
		{"an archive with an empty people.csv", archive(entry{name: "people.csv"}), "invalid: empty_file"},
		{"an archive with an empty enrollments.csv", archive(entry{name: "people.csv", text: one}, entry{name: "enrollments.csv"}), "invalid: empty_file"},

		// Headers
		{"no header", text("s1,ana@institute.org,Ana,Lopez,student\n"), "invalid: missing_column"},
		{"no id column", text("email,first_name\nana@institute.org,Ana\n"), "invalid: missing_column"},
		{"no email column", text("person_external_id,first_name\ns1,Ana\n"), "invalid: missing_column"},
		{"misspelt id column", text(strings.Replace(one, "external", "extrenal", 1)), "invalid: missing_column"},
		{"a column twice", text("person_external_id,email,EMAIL\ns1,a@b.c,d@e.f\n"), "invalid: duplicate_column"},
		{"10,000 columns in the header", text(strings.Repeat("email,", 10_000) + "\n"), "invalid: too_many_columns"},
		{"101 columns in the header", text(strings.Repeat("x,", 99) + "person_external_id,email\n"), "invalid: too_many_columns"},
		{"a header of 1 MB", text(strings.Repeat("x", 1<<20) + "\n"), "invalid: header_too_long"},
		{"an unclosed quote in the header", text("\"person_external_id,email\ns1,ana@institute.org\n"), "invalid: unbalanced_quotes"},
		{"a header with NUL bytes", text("person_\x00external_id,email\ns1,a@b.c\n"), "invalid: damaged_header"},
		{"shouted and spaced header", text(" Person_External_ID , EMAIL \ns1,ana@institute.org\n"), "1"},
		{"quoted header", text("\"person_external_id\",\"email\"\ns1,ana@institute.org\n"), "1"},
		{"columns in another order, and more", text("shoe size,email,person_external_id\n43,ana@institute.org,s1\n"), "1"},

		// Delimiters and line ends
		{"semicolons", text(strings.ReplaceAll(one, ",", ";")), "1"},
		{"tabs", text(strings.ReplaceAll(one, ",", "\t")), "1"},
		{"semicolons with commas inside", text("person_external_id;email;first_name\ns1;ana@institute.org;Ana, the First\n"), "1"},
		{"pipes", text(strings.ReplaceAll(one, ",", "|")), "invalid: missing_column"},
		{"carriage returns and line feeds", text(strings.ReplaceAll(one, "\n", "\r\n")), "1"},
		{"carriage returns alone", text(strings.ReplaceAll(one, "\n", "\r")), "invalid: damaged_header"},
		{"no line end at the end", text(strings.TrimSpace(one)), "1"},

		// Encodings
		{"UTF-8 with a mark", text("\xef\xbb\xbf" + one), "1"},
		{"UTF-16 little endian with a mark", utf16(unicode.LittleEndian, unicode.UseBOM, one), "1"},
		{"UTF-16 big endian with a mark", utf16(unicode.BigEndian, unicode.UseBOM, one), "1"},
		{"UTF-16 little endian without one", utf16(unicode.LittleEndian, unicode.IgnoreBOM, one), "1"},
		{"UTF-16 big endian without one", utf16(unicode.BigEndian, unicode.IgnoreBOM, one), "1"},
		{"UTF-16 cut in the middle of a character", utf16(unicode.LittleEndian, unicode.UseBOM, one+"s2,b@c.d,Łucja")[:len(one)*2+2+23], "1 3:bad_row"},
		{"UTF-32", text("\xff\xfe\x00\x00p\x00\x00\x00"), "invalid: unsupported_encoding"},
		{"Windows-1252", latin1(header + "s1,ana@institute.org,José,Muñoz,student\ns2,b@c.de,Zoë,Ö,\n"), "2 2:encoding_assumed"},
		{"broken UTF-8 beside good", text(header + "s1,a@b.de,José,Ok,\ns2,b@c.de,Jos\xe9,Ok,\n"), "2 3:encoding_assumed"},
		{"a byte that Windows-1252 has not", text(header + "s1,a@b.de,A\x81,B,\n"), "0 2:encoding_assumed 2:bad_row"},

		// Rows
		{"NUL in a name", text(header + "s1,a@b.de,A\x00na,B,\n"), "0 2:bad_row"},
		{"NUL in an id", text(header + "s\x001,a@b.de,Ana,B,\n"), "0 2:bad_row lost=1"},
		{"a line break in a name", text(header + "s1,a@b.de,\"A\nna\",B,\ns2,b@c.de,Ben,O,\n"), "2 2:suspicious_value"},
		{"one person with a line break in a name", text(header + "s1,a@b.de,Ana,\"López\r\nGarcía\",\n"), "1 2:suspicious_value"},
		{"a line break that another row follows", text(header + "s1,a@b.de,\"Ana,B,\ns2,b@c.de,\",O,\n"), "0 2:bad_row lost=1"},
		{"a link in a name", text(header + "s1,a@b.de,Ana,see https://evil.test,\ns2,b@c.de,Ben,O,\n"), "1 2:bad_row"},
		{"a right-to-left override", text(header + "s1,a@b.de,\u202eAna,B,\n"), "1"},
		{"a name of 151 characters", text(header + "s1,a@b.de," + strings.Repeat("é", 151) + ",B,\n"), "0 2:bad_row"},
		{"a name of 150 characters", text(header + "s1,a@b.de," + strings.Repeat("é", 150) + ",B,\n"), "1"},
		{"an id of 256 characters", text(header + strings.Repeat("x", 256) + ",a@b.de,Ana,B,\n"), "0 2:bad_row lost=1"},
		{"a cell of 900 KB", text(header + "s1,a@b.de," + strings.Repeat("A", 900<<10) + ",B,\ns2,b@c.de,Ben,O,\n"), "1 2:bad_row"},
		{"a cell of 1 MB", text(header + "s1,a@b.de," + strings.Repeat("A", 1_000_000) + ",B,\ns2,b@c.de,Ben,O,\n"), "1 2:bad_row"},
		{"a cell of 2 MB", text(header + "s1,a@b.de," + strings.Repeat("A", 2<<20) + ",B,\n"), "invalid: record_too_long"},
		{"10,000 columns in a row", text(header + strings.Repeat("x,", 10_000) + "\ns2,b@c.de,Ben,O,\n"), "1 2:bad_row"},
		{"a row too short", text(header + "s1,a@b.de\ns2,b@c.de,Ben,O,\n"), "1 2:bad_row"},
		{"empty cells too many", text(header + "s1,a@b.de,Ana,B,,,,\n"), "1"},
		{"a quote within a value", text(header + "s1,a@b.de,An\"a,B,\ns2,b@c.de,Ben,O,\n"), "1 2:bad_row lost=1"},
		{"a quote that closes too early", text(header + "s1,a@b.de,\"An\"a,B,\ns2,b@c.de,Ben,O,\n"), "1 2:bad_row lost=1"},
		{"a quote that never closes", text(header + "s1,a@b.de,\"Ana,B,\ns2,b@c.de,Ben,O,\n"), "invalid: unbalanced_quotes"},
		{"a quote that never closes in a long file", text(header + "s1,a@b.de,\"Ana,B,\n" + repeat(60_000, func(i int) string { return fmt.Sprintf("s%d,p%d@b.de,Ben,O,\n", i, i) })), "invalid: record_too_long"},
		{"doubled quotes", text(header + "s1,a@b.de,\"An\"\"a\",B,\n"), "1"},
		{"formula cells", text(header + "s1,a@b.de,\"=HYPERLINK(\"\"x\"\")\",@B,\ns2,b@c.de,+1,-1,\n"), "2 2:suspicious_value 2:suspicious_value 3:suspicious_value 3:suspicious_value"},
		{"no id", text(header + ",a@b.de,Ana,B,\n"), "0 2:missing_external_id"},
		{"no email", text(header + "s1,,Ana,B,\n"), "0 2:missing_email"},
		{"bad emails", text(header + "s1,nobody,Ana,B,\ns2,b@,Ana,B,\ns3,a b@c.de,Ana,B,\n"), "0 2:invalid_email 3:invalid_email 4:invalid_email"},
		{"roles", text(header + "s1,a@b.de,A,B,TEACHER\ns2,b@c.de,A,B,Owner\ns3,c@d.ef,A,B,wizard\ns4,d@e.fg,A,B,Student\n"), "1 2:teacher_reported 3:admin_role_not_granted 4:unknown_role"},
		{"identical rows", text(one + "s1,ana@institute.org,Ana,Lopez,student\n"), "2"}, // what rows are to each other is the planner's to tell
		{"conflicting rows", text(one + "s1,ana@institute.org,Anna,Lopez,student\ns2,b@c.de,Ben,O,\n"), "3"},
		{"ids that share an email", text(one + "s2,ANA@institute.org,Ana,Lopez,student\ns3,b@c.de,Ben,O,\n"), "3"},
		{"ids that change hands", text(header + "s1,b@c.de,Ben,O,\ns2,ana@institute.org,Ana,Lopez,\ns2,ana@institute.org,Ben,O,\n"), "3"},
		{"binary junk", text("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"), "invalid: not_a_csv"},
		{"HTML", text("<!doctype html>\n<html><body>502 Bad Gateway</body></html>\n"), "invalid: not_a_csv"},
		{"JSON", text(`[{"person_external_id": "s1", "email": "a@b.de"}]`), "invalid: not_a_csv"},
		{"a PDF document", text("%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj\n<</Type/Catalog>>\n"), "invalid: not_a_csv"},
		{"gzip", gzipped(one), "invalid: not_a_csv"},
		{"an old Excel workbook", text("\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + strings.Repeat("\x00", 600)), "invalid: not_a_csv"},
		{"columns in brackets", text("<shoe size>,person_external_id,email\n43,s1,ana@institute.org\n"), "1"},
		{"UTF-16 without a needed column", utf16(unicode.LittleEndian, unicode.UseBOM, "id,email\ns1,ana@institute.org\n"), "invalid: missing_column"},

		// Archives
		{"an archive", good, "1"},
		{"an archive with both sections", archive(entry{name: "enrollments.csv", text: seatHead + "s1,c1,One\n"}, entry{name: "people.csv", text: one}), "1 | 1"},
		{"capital letters", archive(entry{name: "People.CSV", text: one}), "1"},
		{"what a Mac adds", archive(entry{name: "__MACOSX/._people.csv", text: "x"}, entry{name: ".DS_Store", text: "x"}, entry{name: "people.csv", text: one}), "1"},
		{"a note beside", archive(entry{name: "people.csv", text: one}, entry{name: "README.txt", text: "hello"}), "1"},
		{"cut off", good[:len(good)-10], "invalid: archive_damaged"},
		{"its beginning alone", good[:20], "invalid: archive_damaged"},
		{"a damaged byte", patch(random, "ana@", 0, 'z'), "invalid: archive_damaged"},
		{"damaged compressed data", patch(good, localHeader, 45, 0xff, 0xff, 0xff, 0xff), "invalid: archive_damaged"},
		{"encrypted", patch(patch(good, localHeader, 6, 1, 0), central, 8, 1, 0), "invalid: encrypted"},
		{"an unknown compression", patch(patch(good, localHeader, 8, 12, 0), central, 10, 12, 0), "invalid: unsupported_compression"},
		{"a nested archive", archive(entry{name: "people.csv", text: one}, entry{name: "more.zip", text: string(good)}), "invalid: nested_archive"},
		{"an archive in an archive", archive(entry{name: "roster.zip", text: string(good)}), "invalid: nested_archive"},
		{"people.csv in a folder", archive(entry{name: "school/people.csv", text: one}), "invalid: nested_section"},
		{"people.csv twice", archive(entry{name: "people.csv", text: one}, entry{name: "people.csv", text: one}), "invalid: duplicate_section"},
		{"people.csv twice, in other letters", archive(entry{name: "people.csv", text: one}, entry{name: "PEOPLE.csv", text: one}), "invalid: duplicate_section"},
		{"a path upwards", archive(entry{name: "../people.csv", text: one}), "invalid: unsafe_path"},
		{"a path upwards inside", archive(entry{name: "people.csv", text: one}, entry{name: "a/../../etc/passwd", text: "x"}), "invalid: unsafe_path"},
		{"an absolute path", archive(entry{name: "/etc/people.csv", text: one}), "invalid: unsafe_path"},
		{"a path with backslashes", archive(entry{name: `..\..\people.csv`, text: one}), "invalid: unsafe_path"},
		{"a drive", archive(entry{name: `C:\people.csv`, text: one}), "invalid: unsafe_path"},
		{"no people.csv", archive(entry{name: "README.txt", text: "x"}), "invalid: no_people_file"},
		{"an Excel workbook", archive(entry{name: "[Content_Types].xml", text: "<Types/>"}, entry{name: "xl/workbook.xml", text: "<workbook/>"},
			entry{name: "xl/worksheets/sheet1.xml", text: "<worksheet/>"}), "invalid: not_a_csv"},
		{"an OpenDocument spreadsheet", archive(entry{name: "mimetype", text: "application/vnd.oasis.opendocument.spreadsheet"}, entry{name: "content.xml", text: "<x/>"}), "invalid: not_a_csv"},
		{"an Excel workbook called people.csv", archive(entry{name: "people.csv", text: string(archive(entry{name: "xl/workbook.xml", text: "<workbook/>"}))}), "invalid: not_a_csv"},
		{"students.csv", archive(entry{name: "students.csv", text: one}), "invalid: unknown_section"},
		{"enrolments.csv", archive(entry{name: "people.csv", text: one}, entry{name: "enrolments.csv", text: seatHead}), "invalid: unknown_section"},
		{"enrollments.csv alone", archive(entry{name: "enrollments.csv", text: seatHead}), "invalid: no_people_file"},
		{"51 entries", archive(append([]entry{{name: "people.csv", text: one}}, many(50)...)...), "invalid: too_many_entries"},
		{"100,000 entries", archive(many(100_000)...), "invalid: too_many_entries"},
		{"a bomb of one section", archive(entry{name: "people.csv", text: header + strings.Repeat("s1,a@b.de,Ana,B,\n", 1<<20)}), "invalid: compression_ratio"},
		{"a bomb in a row", archive(entry{name: "people.csv", text: header + strings.Repeat("a", 900<<10)}), "invalid: compression_ratio"},
		{"a bomb nobody reads", archive(entry{name: "people.csv", text: one}, entry{name: "zeros.bin", text: strings.Repeat("\x00", 20<<20)}), "1"},
		{"a section that claims 1 GB", patch(good, central, 24, 0, 0, 0, 0x40), "invalid: archive_too_large"},
		{"enrollments.csv without its columns", archive(entry{name: "people.csv", text: one}, entry{name: "enrollments.csv", text: "a,b\n1,2\n"}), "invalid: missing_column"},
		{"odd rows of enrollments.csv", archive(entry{name: "people.csv", text: one}, entry{name: "enrollments.csv",
			text: seatHead + ",c1,One\ns1,,One\ns1,c1\ns1,=c2,One\ns1,c3,\n"}), "1 | 2 2:missing_external_id 3:bad_row 4:bad_row 5:suspicious_value"},
	}
}

func many(n int) []entry {
	entries := make([]entry, n)
	for i := range entries {
		entries[i] = entry{name: fmt.Sprintf("note-%d.txt", i), change: func(h *zip.FileHeader) { h.Method = zip.Store }}
	}
	return entries
}
