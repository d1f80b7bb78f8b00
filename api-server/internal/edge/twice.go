package edge

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"

	"github.com/registrar-dev/registrar/internal/kit/fault"
)

const (
	toldTwice = 10 // names that one answer tells of
	manyNames = 32 // of an object, from where they are looked up and no longer compared one by one
)

// namedTwice finds the fields that stand twice in one object, at any depth. encoding/json takes
// the last of them and others the first, so that nobody can tell what was meant. raw is valid JSON.
func namedTwice(raw []byte) error {
	t := twice{walk: walk{raw: raw}}
	t.value()
	var faults fault.List
	for _, path := range t.found {
		_ = faults.Add(fault.Field(path, "sent_twice", "%s: the body names it twice; send it once", path))
	}
	return faults.Err()
}

type twice struct {
	walk

	names [][]byte // of all open objects, the innermost's last
	path  []step   // to the value at hand
	found []string
}

// step is a field's name or, where that is nil, an entry of a list.
type step struct {
	name  []byte
	entry int
}

func (t *twice) value() {
	switch t.next() {
	case '{':
		t.object()
	case '[':
		t.path = append(t.path, step{})
		t.entries(func(n int) {
			t.path[len(t.path)-1].entry = n
			t.value()
		})
		t.path = t.path[:len(t.path)-1]
	default:
		t.walk.value()
	}
}

func (t *twice) object() {
	first := len(t.names)
	var many map[string]bool
	t.path = append(t.path, step{})
	t.members(func(name []byte) {
		t.path[len(t.path)-1].name = name
		if len(t.names)-first == manyNames && many == nil {
			many = map[string]bool{}
			for _, n := range t.names[first:] {
				many[string(n)] = true
			}
		}
		switch {
		case many == nil && slices.ContainsFunc(t.names[first:], func(n []byte) bool { return bytes.Equal(n, name) }), many[string(name)]:
			t.tell()
		case many != nil:
			many[string(name)] = true
		default:
			t.names = append(t.names, name)
		}
		t.value()
	})
	t.path, t.names = t.path[:len(t.path)-1], t.names[:first]
}

// tell writes the path as faults name fields: target_score_plan.pace, events[3].at.
func (t *twice) tell() {
	if len(t.found) == toldTwice {
		return
	}
	var path []byte
	for _, s := range t.path {
		switch {
		case s.name == nil:
			path = append(strconv.AppendInt(append(path, '['), int64(s.entry), 10), ']')
		case len(path) > 0:
			path = append(append(path, '.'), s.name...)
		default:
			path = append(path, s.name...)
		}
	}
	if name := fmt.Sprintf("%.200s", path); !slices.Contains(t.found, name) {
		t.found = append(t.found, name)
	}
}
