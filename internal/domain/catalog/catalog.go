// Package catalog holds the work that can be assigned: language tests, quizzes and
// assessments, and the scales on which they are scored.
package catalog

import (
	"context"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/decimal"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// Kind is the kind of work of an item, an assignment or a result.
type Kind string

// The kinds.
const (
	Test       Kind = "test"
	Quiz       Kind = "quiz"
	Assessment Kind = "assessment"
)

// Kinds lists the kinds in the order of the catalog's list.
func Kinds() []Kind { return []Kind{Test, Quiz, Assessment} }

// Item is a piece of work that can be assigned (reference: catalog#catalog-items).
type Item struct {
	ID           id.Item
	Organization id.Organization // 0: a test for all organizations
	Kind         Kind
	Code         string // the platform's name for it, unique for organization and kind
	Title        string
	Type         string // a test type, or the kind where it is no test
	Scope        string // ScopeFull, or the section that it examines
	MaxScore     decimal.Number
	Difficulty   *decimal.Number // on the type's scale; nil: not known
	Starter      bool            // may be placed with new students
	Retake       bool            // a link in an LMS assigns it again after it was completed
	Active       bool            // inactive ones are neither listed nor assigned
	LaunchURL    string          // where students begin it, on the platform; "": there is no address for it
}

// Patch changes the settings that are not nil.
type Patch struct {
	New        bool // the key must be free: Invalid otherwise
	Title      *string
	Type       *string // tests alone have one
	Scope      *string
	MaxScore   *decimal.Number
	Difficulty *decimal.Number
	Starter    *bool
	Retake     *bool
	Active     *bool
	LaunchURL  *string // "": none
}

// Key is what the platform calls an item: unique for each organization, and among the tests for
// all organizations.
type Key struct {
	Kind Kind
	Code string
}

// Put creates the item of a key, or changes the settings in p; created says which. A new one
// needs a title and, if it is a test, a type. The maximum is the scale's, if it has one. Results
// keep the maximum that they were scored with. Invalid lists each wrong field.
func Put(ctx context.Context, tx *pg.Tx, by audit.Actor, org id.Organization, key Key, p Patch, now time.Time) (i Item, created bool, err error) {
	before, err := lockOrNew(ctx, tx, org, key)
	if err != nil {
		return i, false, err
	}
	i, created = p.apply(before), before.ID == 0
	if p.New && !created {
		return i, false, fault.Field("code", "invalid", "code: the catalog has a %s with the code %q already", key.Kind, key.Code)
	}
	if err := i.check(p); err != nil {
		return i, created, err
	}
	changed := !reflect.DeepEqual(i, before)
	if i.ID, err = upsert(ctx, tx, i, now); err != nil || !changed {
		return i, created, err
	}
	entry := audit.Entry{Organization: org, Actor: by, Action: "changed catalog item", Target: string(key.Kind) + " " + key.Code, At: now}
	if created {
		entry.Action = "created catalog item"
	}
	return i, created, audit.Write(ctx, tx, entry)
}

// lockOrNew reads the item of the key; one that does not exist yet has no id.
func lockOrNew(ctx context.Context, tx *pg.Tx, org id.Organization, key Key) (Item, error) {
	i, err := lockByKey(ctx, tx, org, key)
	if !pg.None(err) {
		return i, err
	}
	i = Item{Organization: org, Kind: key.Kind, Code: key.Code, Scope: ScopeFull, Active: true}
	if key.Kind != Test {
		i.Type = string(key.Kind)
	}
	return i, nil
}

func (p Patch) apply(i Item) Item {
	before := i.Type + i.Scope
	if p.Title != nil {
		i.Title = strings.TrimSpace(*p.Title)
	}
	set(&i.Type, p.Type)
	set(&i.Scope, p.Scope)
	if i.MaxScore == 0 || before != i.Type+i.Scope {
		i.MaxScore = i.usualMax()
	}
	set(&i.MaxScore, p.MaxScore)
	if p.Difficulty != nil {
		i.Difficulty = p.Difficulty
	}
	set(&i.Starter, p.Starter)
	set(&i.Retake, p.Retake)
	set(&i.Active, p.Active)
	set(&i.LaunchURL, p.LaunchURL)
	return i
}

func set[T any](to, from *T) {
	if from != nil {
		*to = *from
	}
}

// usualMax is the maximum of the item's scale: 100 where the scale is the item's own.
func (i Item) usualMax() decimal.Number {
	s, ok := ScaleOf(i.Type)
	if !ok {
		return decimal.Whole(100)
	}
	if section, ok := s.section(i.Scope); ok {
		return section.Max
	}
	return s.Overall.Max
}

// Limits, in characters.
const (
	maxTitle = 300
	maxCode  = 100
	maxURL   = 2000
)

// isAddress says whether browsers may be led to the address.
func isAddress(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.Scheme == "https" && u.Host != "" && u.User == nil && utf8.RuneCountInString(text) <= maxURL
}

func (i Item) check(p Patch) error {
	var faults fault.List
	bad := func(field, code, format string, args ...any) {
		_ = faults.Add(fault.Field(field, code, field+": "+format, args...))
	}
	if n := utf8.RuneCountInString(i.Title); n < 1 || n > maxTitle {
		bad("title", "invalid", "send a title of 1 to %d characters", maxTitle)
	}
	if i.Code == "" || utf8.RuneCountInString(i.Code) > maxCode || strings.IndexFunc(i.Code, unicode.IsControl) >= 0 || !utf8.ValidString(i.Code) {
		bad("code", "invalid", "send a code of 1 to %d characters, without control characters", maxCode)
	}
	if i.LaunchURL != "" && !isAddress(i.LaunchURL) {
		bad("launch_url", "invalid", "send an https:// address of at most %d characters, or an empty text for none", maxURL)
	}
	scale, known := ScaleOf(i.Type)
	switch {
	case i.Kind != Test && i.Type != string(i.Kind):
		bad("type", "invalid", "only tests have a type; leave it out")
	case i.Kind == Test && !known:
		bad("type", "unknown_test_type", "there is no test type %q; send one of %s", i.Type, strings.Join(TestTypes(), ", "))
	}
	_, isSection := scale.section(i.Scope)
	if i.Scope != ScopeFull && !isSection && (i.Type != TypeCustom || i.Scope == "" || utf8.RuneCountInString(i.Scope) > maxCode) {
		bad("scope", "invalid", "send full, or one of the type's sections: %s", strings.Join(scale.names(), ", "))
	}
	own := i.Kind == Assessment || i.Type == TypeCustom
	switch {
	case own && i.MaxScore <= 0:
		bad("max_score", "invalid", "send a number above 0")
	case !own && p.MaxScore != nil && i.MaxScore != i.usualMax():
		bad("max_score", "off_scale", "its scale ends at %v; send that or leave it out", i.usualMax())
	}
	return faults.Err()
}

// List gives the active items that the organization can assign, by kind and id: its own,
// and the tests for all organizations.
func List(ctx context.Context, q pg.Querier, org id.Organization, kinds []Kind) ([]Item, error) {
	items, err := selectVisible(ctx, q, org, kinds)
	slices.SortStableFunc(items, func(a, b Item) int {
		return slices.Index(Kinds(), a.Kind) - slices.Index(Kinds(), b.Kind)
	})
	return items, err
}

// pageLength is how many items Search gives at most.
const pageLength = 20

// maxPages bounds how far Search goes.
const maxPages = 500

// Search gives a page, from 1, of the active items that the organization can assign and whose title, code, kind and type have each
// word of text, by title; more says whether there is another page.
func Search(ctx context.Context, q pg.Querier, org id.Organization, text string, page int) (items []Item, more bool, err error) {
	page = min(max(page, 1), maxPages)
	words := strings.Fields(text)
	items, err = selectFound(ctx, q, org, words[:min(len(words), 10)], pageLength, (page-1)*pageLength)
	if len(items) > pageLength {
		items, more = items[:pageLength], page < maxPages
	}
	return items, more, err
}

// Find reads an active item of the kind that the organization can assign. NotFound
// otherwise, also for another organization's items.
func Find(ctx context.Context, q pg.Querier, org id.Organization, kind Kind, item id.Item) (Item, error) {
	i, err := selectItem(ctx, q, org, kind, item)
	if pg.None(err) {
		f := fault.New(fault.NotFound, "item_not_found", "item_id: the organization's catalog has no %s %d; send an item_id of GET /catalog/", kind, item)
		f.Field = "item_id"
		return Item{}, f
	}
	return i, err
}

// Load reads the items of the ids that the organization may have work on, active or not.
func Load(ctx context.Context, q pg.Querier, org id.Organization, items []id.Item) (map[id.Item]Item, error) {
	return LoadMany(ctx, q, []id.Organization{org}, items)
}

// LoadMany is Load for several organizations: items that all or one of them can see.
func LoadMany(ctx context.Context, q pg.Querier, orgs []id.Organization, items []id.Item) (map[id.Item]Item, error) {
	var b pg.Batch
	found := make(map[id.Item]Item, len(items))
	QueueLoad(&b, orgs, items, found)
	return found, b.Send(ctx, q)
}
