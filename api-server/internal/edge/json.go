package edge

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/registrar-dev/registrar/internal/kit/fault"
)

// mostTwice is how many names that a body sends twice are listed in one answer.
const mostTwice = 10

// parseObject reads a whole body's fields. It refuses what JSON allows and PostgreSQL does not,
// which is the character NUL, and names that stand twice in one object, at any depth: some readers
// take the last of them and others the first, so that nobody can tell what was meant.
func parseObject(raw []byte) (map[string]jsontext.Value, error) {
	if !utf8.Valid(raw) {
		return nil, fault.New(fault.Invalid, "invalid_json", "the body is not UTF-8; send JSON in UTF-8")
	}
	d := decode(raw, jsontext.AllowDuplicateNames(false))
	kind := d.PeekKind()
	fields, err := d.fields()
	var twice fault.List
	if errors.Is(err, jsontext.ErrDuplicateName) {
		d = decode(raw)
		err = d.namedTwice(&twice)
	}
	if err == nil {
		err = d.end()
	}
	var syntax *jsontext.SyntacticError
	switch {
	case errors.As(err, &syntax):
		line, column := position(raw, int(syntax.ByteOffset))
		return nil, fault.New(fault.Invalid, "invalid_json", "the body is not valid JSON: line %d, column %d: %v", line, column, syntax.Err)
	case kind != '{':
		return nil, fault.New(fault.Invalid, "not_an_object", "the body is %s; send a JSON object", kindOf(kind))
	case hasNUL(raw):
		return nil, fault.New(fault.Invalid, "invalid_json", `the body contains the character \u0000; remove it`)
	}
	return fields, twice.Err()
}

// decoder reads JSON from raw. Its values are parts of raw and stay valid.
type decoder struct {
	*jsontext.Decoder
	raw []byte
}

// decode makes a decoder that takes a half of a surrogate pair for U+FFFD and, where the options
// do not say otherwise, does not look for names that stand twice.
func decode(raw []byte, options ...jsontext.Options) decoder {
	options = append([]jsontext.Options{jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true)}, options...)
	return decoder{jsontext.NewDecoder(bytes.NewBuffer(raw), options...), raw}
}

// value reads the next value.
func (d decoder) value() (jsontext.Value, error) {
	v, err := d.ReadValue()
	end := int(d.InputOffset())
	return d.raw[end-len(v) : end], err
}

// fields reads the next value, which has none unless it is an object.
func (d decoder) fields() (map[string]jsontext.Value, error) {
	if d.PeekKind() != '{' {
		return nil, d.SkipValue()
	}
	_, _ = d.ReadToken() // the brace
	fields := map[string]jsontext.Value{}
	for d.more() {
		token, err := d.ReadToken()
		if err != nil {
			return nil, err
		}
		name := token.String()
		if fields[name], err = d.value(); err != nil {
			return nil, err
		}
	}
	_, err := d.ReadToken()
	return fields, err
}

// more says whether the open object or list goes on.
func (d decoder) more() bool {
	switch d.PeekKind() {
	case '}', ']', jsontext.KindInvalid:
		return false
	}
	return true
}

// end refuses what follows the value.
func (d decoder) end() error {
	rest := bytes.TrimLeft(d.raw[d.InputOffset():], " \t\r\n")
	if len(rest) == 0 {
		return nil
	}
	first, _ := utf8.DecodeRune(rest)
	return &jsontext.SyntacticError{ByteOffset: int64(len(d.raw) - len(rest)), Err: fmt.Errorf("invalid character %q after top-level value", first)}
}

// namedTwice reads the next value and adds a fault for each name that stands twice in one object.
func (d decoder) namedTwice(faults *fault.List) error {
	var found []string
	var times []map[string]int // of the names in each open object; nil for a list
	for {
		token, err := d.ReadToken()
		if err != nil {
			return err
		}
		depth := d.StackDepth()
		switch token.Kind() {
		case '{':
			times = append(times, map[string]int{})
		case '[':
			times = append(times, nil)
		case '}', ']':
			times = times[:depth]
		case '"':
			if in, n := d.StackIndex(depth); in != '{' || n%2 == 0 {
				break // no name
			}
			name := token.String()
			times[depth-1][name]++
			if times[depth-1][name] != 2 || len(found) == mostTwice {
				break
			}
			if path := d.path(); !slices.Contains(found, path) {
				found = append(found, path)
				_ = faults.Add(fault.Field(path, "sent_twice", "%s: the body names it twice; send it once", path))
			}
		}
		if depth == 0 {
			return nil
		}
	}
}

// path names the value at hand as faults do: target_score_plan.pace, events[3].at.
func (d decoder) path() string {
	var path strings.Builder
	depth := 0
	for name := range d.StackPointer().Tokens() {
		depth++
		switch in, _ := d.StackIndex(depth); {
		case in == '[':
			path.WriteString("[" + name + "]")
		case path.Len() > 0:
			path.WriteString("." + name)
		default:
			path.WriteString(name)
		}
	}
	return fmt.Sprintf("%.200s", path.String())
}

// hasNUL says whether valid JSON has the character NUL in a string, which only an escape can.
func hasNUL(raw []byte) bool {
	for {
		at := bytes.Index(raw, []byte(`\u0000`))
		if at < 0 {
			return false
		}
		slashes := 0
		for slashes <= at && raw[at-slashes] == '\\' {
			slashes++
		}
		if slashes%2 == 1 {
			return true
		}
		raw = raw[at+6:]
	}
}

func position(raw []byte, offset int) (line, column int) {
	before := raw[:min(offset, len(raw))]
	return bytes.Count(before, []byte("\n")) + 1, len(before) - bytes.LastIndexByte(before, '\n')
}

// text is a string's value. Most strings have no escapes: what is between their quotes is it.
func text(raw jsontext.Value) string {
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : len(raw)-1])
	}
	s, _ := jsontext.AppendUnquote(nil, raw) // a half of a surrogate pair becomes U+FFFD
	return string(s)
}

func kindOf(k jsontext.Kind) string {
	switch k {
	case '{':
		return "an object"
	case '[':
		return "a list"
	case 'n':
		return "null"
	case 't', 'f':
		return "a boolean"
	}
	return "a " + k.String()
}
