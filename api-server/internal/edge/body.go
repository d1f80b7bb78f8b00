package edge

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/fault"
)

// maxBody is the largest JSON body, in MiB, where a route does not take more.
const maxBody = 1

// Body is a JSON object from a request, read field by field. Each reader returns nil
// where the field is absent, null or "", and otherwise the value; a value that is wrong
// adds a fault that names the field and the fix, and reads as nil. Err gives all faults
// together, so that a caller learns of them in one answer. Fields that nobody reads are
// ignored; Unread warns of them.
type Body struct {
	fields map[string]jsontext.Value
	read   map[string]bool // that somebody asked for, for Unread; nil in the records of a list
	path   string          // "provisioning_defaults." inside an object of that name
	faults *fault.List
}

// ReadBody reads the request's body, a JSON object of at most 1 MiB. Invalid lists the fields that
// it names twice.
func ReadBody(w http.ResponseWriter, r *http.Request) (*Body, error) {
	return ReadLargeBody(w, r, maxBody)
}

// ReadOptionalBody is ReadBody for a request that may have no body, which reads as an empty object.
func ReadOptionalBody(w http.ResponseWriter, r *http.Request) (*Body, error) {
	b, err := ReadBody(w, r)
	if fault.Has(err, "body_missing") {
		return &Body{faults: &fault.List{}}, nil
	}
	return b, err
}

// Fault adds a fault that the caller found in the field's value.
func (b *Body) Fault(field, code, format string, args ...any) {
	name := b.path + field
	_ = b.faults.Add(fault.Field(name, code, "%s: %s", name, fmt.Sprintf(format, args...)))
}

// Add adds a fault that names its field itself.
func (b *Body) Add(f error) { _ = b.faults.Add(f) }

// Err is nil when everything read so far was right. Its faults last (fault.Lasting).
func (b *Body) Err() error { return fault.Lasting(b.faults.Err()) }

// Has says whether the field is there with a value other than null and "".
func (b *Body) Has(field string) bool { return b.raw(field) != nil }

// Cleared says whether the field is there and null (or ""): for a PATCH it asks to
// remove what is optional.
func (b *Body) Cleared(field string) bool {
	_, ok := b.get(field)
	return ok && !b.Has(field)
}

// Names lists the fields sent, sorted.
func (b *Body) Names() []string {
	names := make([]string, 0, len(b.fields))
	for name := range b.fields {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Required adds a fault for each field that has no value.
func (b *Body) Required(fields ...string) {
	for _, f := range fields {
		if !b.Has(f) {
			b.Fault(f, "missing", "required; send a value")
		}
	}
}

func (b *Body) get(field string) (jsontext.Value, bool) {
	if b.read != nil {
		b.read[field] = true
	}
	raw, ok := b.fields[field]
	return raw, ok
}

func (b *Body) raw(field string) jsontext.Value {
	raw, _ := b.get(field)
	if len(raw) == 0 || raw.Kind() == 'n' {
		return nil
	}
	if raw.Kind() == '"' && strings.TrimSpace(text(raw)) == "" {
		return nil
	}
	return raw
}

// Text reads a string of at most maxChars characters, without blanks around it.
func (b *Body) Text(field string, maxChars int) *string {
	raw := b.raw(field)
	if raw == nil {
		return nil
	}
	if raw.Kind() != '"' {
		b.Fault(field, "wrong_type", "send a string, not %s", kindOf(raw.Kind()))
		return nil
	}
	s := strings.TrimSpace(text(raw))
	if n := utf8.RuneCountInString(s); n > maxChars {
		b.Fault(field, "too_long", "%d characters are too many; send at most %d", n, maxChars)
		return nil
	}
	return &s
}

// Secret reads a string as it is, blanks included.
func (b *Body) Secret(field string) *string {
	raw, _ := b.get(field)
	switch {
	case len(raw) == 0 || raw.Kind() == 'n':
		return nil
	case raw.Kind() != '"':
		b.Fault(field, "wrong_type", "send a string, not %s", kindOf(raw.Kind()))
		return nil
	}
	s := text(raw)
	if s == "" {
		return nil
	}
	return &s
}

// Label reads a string or a number as its text, of at most maxChars characters: 7, 7.0 and
// "7" are equal.
func (b *Body) Label(field string, maxChars int) *string {
	raw := b.raw(field)
	if raw == nil || raw.Kind() != '0' {
		return b.Text(field, maxChars)
	}
	s, ok := numberText(string(raw), maxChars)
	if !ok {
		b.Fault(field, "too_long", "the number has too many digits; send at most %d", maxChars)
		return nil
	}
	return &s
}

// Bool reads a boolean or one of the words yes, no, true, false, 1 and 0 in any case.
func (b *Body) Bool(field string) *bool {
	raw := b.raw(field)
	if raw == nil {
		return nil
	}
	word := string(raw)
	if raw.Kind() == '"' {
		word = strings.TrimSpace(text(raw))
	}
	switch strings.ToLower(word) {
	case "true", "yes", "1":
		return new(true)
	case "false", "no", "0":
		return new(false)
	}
	b.Fault(field, "not_a_boolean", "send true or false (yes, no, 1 and 0 are taken as well)")
	return nil
}

// Int reads a whole number from low to high; "12" and 12.0 are taken for 12.
func (b *Body) Int(field string, low, high int) *int {
	raw := b.raw(field)
	if raw == nil {
		return nil
	}
	digits := string(raw)
	if raw.Kind() == '"' {
		digits = strings.TrimSpace(text(raw))
	}
	if n, ok := wholeNumber(digits); ok && n >= low && n <= high {
		return &n
	}
	b.Fault(field, "not_a_whole_number", "send a whole number from %d to %d", low, high)
	return nil
}

// IDs reads one or more positive whole numbers: 371, "371, 380" or [371, "380"].
func (b *Body) IDs(field string) []int64 {
	texts := b.List(field)
	ids := make([]int64, 0, len(texts))
	for _, t := range texts {
		n, ok := wholeNumber(t)
		if !ok || n < 1 {
			b.Fault(field, "not_an_id", "%q is no id; send whole numbers, such as 371, \"371, 380\" or [371, 380]", t)
			continue
		}
		ids = append(ids, int64(n))
	}
	return ids
}

func wholeNumber(s string) (int, bool) {
	if n, err := strconv.Atoi(s); err == nil {
		return n, true
	}
	if !json.Valid([]byte(s)) { // ParseFloat takes more than JSON does: hexadecimals, Inf, underscores
		return 0, false
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) > 1<<53 {
		return 0, false
	}
	return int(f), true
}

// Date reads a day of the form YYYY-MM-DD.
func (b *Body) Date(field string) *clock.Date {
	raw := b.raw(field)
	if raw == nil {
		return nil
	}
	if raw.Kind() == '"' {
		if d, err := clock.ParseDate(strings.TrimSpace(text(raw))); err == nil {
			return &d
		}
	}
	b.Fault(field, "not_a_date", "send a date of the form YYYY-MM-DD, such as 2027-03-31")
	return nil
}

// Choice reads one of the words.
func (b *Body) Choice(field string, words ...string) *string {
	raw := b.raw(field)
	if raw == nil {
		return nil
	}
	if raw.Kind() == '"' {
		if s := strings.ToLower(strings.TrimSpace(text(raw))); slices.Contains(words, s) {
			return &s
		}
	}
	b.Fault(field, "not_a_choice", "send one of %s", strings.Join(words, ", "))
	return nil
}

// List reads a list of strings and numbers, or comma-separated text, as texts without
// blanks around them and without empty ones. An empty list is not nil.
func (b *Body) List(field string) []string {
	raw, ok := b.get(field)
	switch {
	case !ok || raw.Kind() == 'n':
		return nil
	case raw.Kind() == '"':
		return cutList(text(raw))
	case raw.Kind() == '0':
		return []string{string(raw)}
	case raw.Kind() != '[':
		b.Fault(field, "wrong_type", "send a list or comma-separated text, not %s", kindOf(raw.Kind()))
		return nil
	}
	list := []string{}
	d := decode(raw)
	_, _ = d.ReadToken() // the bracket
	for n := 1; d.more(); n++ {
		item, _ := d.value()
		switch {
		case item.Kind() == '"':
			if s := strings.TrimSpace(text(item)); s != "" {
				list = append(list, s)
			}
		case item.Kind() == '0':
			list = append(list, string(item))
		default:
			b.Fault(field, "wrong_type", "entry %d is %s; send strings or numbers", n, kindOf(item.Kind()))
		}
	}
	return list
}

func cutList(s string) []string {
	list := []string{}
	for part := range strings.SplitSeq(s, ",") {
		if part = strings.TrimSpace(part); part != "" {
			list = append(list, part)
		}
	}
	return list
}

// Object reads an object inside this one; its faults are reported with this one's.
func (b *Body) Object(field string) *Body {
	raw := b.raw(field)
	if raw == nil {
		return nil
	}
	fields, _ := decode(raw).fields()
	if fields == nil {
		b.Fault(field, "wrong_type", "send an object, not %s", kindOf(raw.Kind()))
		return nil
	}
	return &Body{fields: fields, path: b.path + field + ".", faults: b.faults}
}

// Unencoded is Invalid for a body that is sent compressed or in another encoding.
func Unencoded(r *http.Request) error {
	encoding := strings.TrimSpace(r.Header.Get("Content-Encoding"))
	if encoding == "" || strings.EqualFold(encoding, "identity") {
		return nil
	}
	return fault.New(fault.Invalid, "unsupported_content_encoding", "Content-Encoding: %.40q is not taken; send the body as it is, without the header", encoding)
}

func readUpTo(w http.ResponseWriter, r *http.Request, maxMiB int) ([]byte, error) {
	if err := Unencoded(r); err != nil {
		return nil, err
	}
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, int64(maxMiB)<<20))
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf")) // some editors begin UTF-8 so
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return nil, fault.New(fault.TooLarge, "body_too_large", "the body is over %d MiB; send less in one request", maxMiB)
	case err != nil && r.Context().Err() != nil:
		return nil, r.Context().Err()
	case err != nil:
		return nil, fault.New(fault.Invalid, "body_unreadable", "the body broke off; send the whole request again").Because(err)
	case len(bytes.TrimSpace(text)) == 0:
		return nil, fault.Lasting(fault.New(fault.Invalid, "body_missing", "the body is empty; send a JSON object"))
	}
	return text, nil
}

// explainContentType adds the likely cause to the fault of a body that is no JSON.
func explainContentType(r *http.Request, err error) error {
	var f *fault.Error
	media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if !errors.As(err, &f) || f.Field != "" || media == "" || media == "application/json" || strings.HasSuffix(media, "+json") {
		return err
	}
	c := *f
	c.Message += fmt.Sprintf("; Content-Type is %s: send a JSON object as application/json", media)
	return &c
}
