package roster

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/unicode/norm"

	"github.com/registrar-dev/registrar/internal/kit/fault"
)

const (
	maxRecord  = 1 << 20  // bytes of one record; a quotation mark that is never closed would take the rest
	maxHeader  = 64 << 10 // bytes of the header line
	maxColumns = 100
)

// table reads a section's records. A record without a clear end makes the whole file unreadable;
// one that is merely wrong is a bad row.
type table struct {
	name    string
	file    *File
	section *section
	csv     *csv.Reader
	limit   *recordLimit
	columns map[string]int // of the known columns, by the name that the format has for them
	width   int
	last    int  // line of the last record
	rows    int  // with any value, so far
	assumed bool // a cell was no UTF-8 and read as Windows-1252
	close   func() error
}

// record is one line of a table; its cells live until the next one is read.
type record struct {
	line  int
	cells []string
	wrong string // why the row cannot be used; "" when it can
	lost  bool   // even its person is unknown
}

// newTable reads the header. Invalid when it is missing, damaged or lacks a column; the message
// names another file format that was recognized.
func newTable(name string, file *File, s *section, known, required []string) (*table, error) {
	raw, err := s.open()
	if err != nil {
		return nil, err
	}
	t := &table{name: name, file: file, section: s, close: raw.Close}
	text := bufio.NewReader(raw)
	start, _ := text.Peek(foreignSize) // what fails here fails again below
	start = bytes.Clone(start)
	if err := t.begin(text, known, required); err != nil {
		_ = raw.Close()
		return nil, explainForeign(name, start, err)
	}
	return t, nil
}

func (t *table) begin(raw io.Reader, known, required []string) error {
	text, err := decode(raw)
	if err != nil {
		return err
	}
	t.limit = &recordLimit{r: text, left: maxRecord}
	buffered := bufio.NewReaderSize(t.limit, maxHeader)
	line, err := firstLine(buffered)
	if err != nil {
		return err
	}
	if len(bytes.TrimSpace(line)) == 0 {
		return errEmpty(t.name + " is empty")
	}
	t.csv = csv.NewReader(buffered)
	t.csv.Comma = delimiter(line, known)
	t.csv.FieldsPerRecord, t.csv.ReuseRecord = -1, true
	t.limit.left = maxRecord
	header, err := t.csv.Read()
	if err != nil {
		return t.explain(err)
	}
	return t.header(header, known, required)
}

// firstLine looks at the first line that is not blank, and drops blank ones before it.
func firstLine(r *bufio.Reader) ([]byte, error) {
	for {
		line, err := r.Peek(maxHeader)
		end := bytes.IndexByte(line, '\n')
		switch {
		case end < 0 && err == nil:
			return nil, invalid("header_too_long", "the header line is over %d KiB; send a CSV file with a header line", maxHeader>>10)
		case end < 0 && !errors.Is(err, io.EOF):
			return nil, err
		case end < 0:
			return line, nil
		case len(bytes.TrimSpace(line[:end])) > 0:
			return line[:end], nil
		}
		if _, err := r.Discard(end + 1); err != nil {
			return nil, err
		}
	}
}

// delimiter is that of , ; and tab by which the header gives the most known columns.
func delimiter(line []byte, known []string) rune {
	best, most := ',', 0
	for _, d := range []rune{',', ';', '\t'} {
		found := 0
		for cell := range strings.SplitSeq(string(line), string(d)) {
			if columnName(known, strings.Trim(strings.TrimSpace(cell), `"`)) != "" {
				found++
			}
		}
		if found > most {
			best, most = d, found
		}
	}
	return best
}

// columnName is that of the known columns which a cell of the header line names; "" for none.
func columnName(known []string, cell string) string {
	cell = strings.TrimSpace(cell)
	for _, name := range known {
		if strings.EqualFold(name, cell) {
			return name
		}
	}
	return ""
}

func (t *table) header(cells, known, required []string) error {
	if len(cells) > maxColumns {
		return invalid("too_many_columns", "%s has %d columns; send at most %d", t.name, len(cells), maxColumns)
	}
	t.columns, t.width = map[string]int{}, len(cells)
	for i, cell := range cells {
		if strings.ContainsAny(cell, "\r\n\x00") {
			return invalid("damaged_header", "%s: column %d of the header line has a line break or another character that cannot be shown; save the file again as CSV", t.name, i+1)
		}
		name := columnName(known, cell)
		if name == "" {
			continue
		}
		if _, twice := t.columns[name]; twice {
			return invalid("duplicate_column", "%s has the column %s twice; send it once", t.name, name)
		}
		t.columns[name] = i
	}
	for _, name := range required {
		if _, ok := t.columns[name]; !ok {
			return invalid("missing_column", "%s has no column %s; its header line is read as: %s", t.name, name, list(printable(cells)))
		}
	}
	return nil
}

func printable(cells []string) []string {
	out := make([]string, len(cells))
	for i, c := range cells {
		out[i] = strings.Map(func(r rune) rune {
			if r < ' ' || r == utf8.RuneError {
				return '?'
			}
			return r
		}, c)
	}
	return out
}

// next reads one record; io.EOF after the last. Lines without any value are passed over, but count.
// Invalid as soon as there are more than a roster has.
func (t *table) next() (record, error) {
	for {
		r, isBlank, err := t.read()
		if err != nil {
			return record{}, err
		}
		if !isBlank {
			t.rows++
		}
		if err := t.file.count(t.name, t.section, t.rows); err != nil {
			return record{}, err
		}
		if !isBlank {
			return r, nil
		}
	}
}

func (t *table) read() (r record, isBlank bool, err error) {
	t.limit.left = maxRecord
	cells, err := t.csv.Read()
	if errors.Is(err, io.EOF) {
		return record{}, false, io.EOF
	}
	var syntax *csv.ParseError
	if errors.As(err, &syntax) && syntax.StartLine == syntax.Line {
		return record{line: syntax.StartLine, wrong: "its quotation marks are not in pairs around a value", lost: true}, false, nil
	}
	if err != nil {
		return record{}, false, t.explain(err)
	}
	if blank(cells) {
		return record{}, true, nil
	}
	line, _ := t.csv.FieldPos(0)
	t.last = line
	return t.check(record{line: line, cells: cells}), false, nil
}

func (t *table) explain(err error) error {
	var syntax *csv.ParseError
	var known *fault.Error
	switch {
	case errors.As(err, &known):
		return err
	case errors.Is(err, errRecordLimit):
		return invalid("record_too_long", "%s: a row is over %d MiB, after line %d; most likely a quotation mark is not closed", t.name, maxRecord>>20, t.last)
	case errors.As(err, &syntax):
		return invalid("unbalanced_quotes", "%s: the quotation mark that opens a value in line %d is not closed where it should be; where the rows after it begin and end is not known", t.name, syntax.StartLine)
	}
	return err
}

func blank(cells []string) bool {
	return !slices.ContainsFunc(cells, func(c string) bool { return strings.TrimSpace(c) != "" })
}

func (t *table) check(r record) record {
	if n := len(r.cells); n != t.width && (n < t.width || !blank(r.cells[t.width:])) {
		r.wrong = "it has another number of values than the header line"
	}
	return r
}

// value is a known column's cell, clean; "" where there is none.
func (t *table) value(r record, column string) string {
	i, ok := t.columns[column]
	if !ok || i >= len(r.cells) {
		return ""
	}
	cell := r.cells[i]
	if !utf8.ValidString(cell) {
		t.assumed = true
		cell, _ = charmap.Windows1252.NewDecoder().String(cell) // every byte decodes
	}
	return norm.NFC.String(strings.TrimSpace(cell))
}

// decode converts UTF-16, recognized by its byte order mark or its first character, to UTF-8, and
// drops the mark. Other encodings than UTF-8 are decoded cell by cell.
func decode(raw io.Reader) (io.Reader, error) {
	r := bufio.NewReader(raw)
	start, err := r.Peek(4)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	has := func(mark string) bool { return strings.HasPrefix(string(start), mark) }
	switch {
	case has("\xef\xbb\xbf"):
		_, err := r.Discard(3)
		return r, err
	case has("\xff\xfe\x00\x00"), has("\x00\x00\xfe\xff"):
		return nil, invalid("unsupported_encoding", "the file is UTF-32; save it as UTF-8")
	case has("\xff\xfe"), has("\xfe\xff"):
		return unicode.UTF16(unicode.LittleEndian, unicode.ExpectBOM).NewDecoder().Reader(r), nil
	case len(start) > 1 && start[0] != 0 && start[1] == 0:
		return unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM).NewDecoder().Reader(r), nil
	case len(start) > 1 && start[0] == 0 && start[1] != 0:
		return unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM).NewDecoder().Reader(r), nil
	}
	return r, nil
}

var errRecordLimit = errors.New("roster: record too long")

// recordLimit bounds what the parser may read ahead for one record.
type recordLimit struct {
	r    io.Reader
	left int
}

func (l *recordLimit) Read(p []byte) (int, error) {
	if l.left <= 0 {
		return 0, errRecordLimit
	}
	n, err := l.r.Read(p)
	l.left -= n
	return n, err
}
