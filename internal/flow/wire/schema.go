package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/registrar-dev/registrar/internal/domain/assignment"
	"github.com/registrar-dev/registrar/internal/domain/catalog"
	"github.com/registrar-dev/registrar/internal/domain/course"
	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/domain/result"
	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/decimal"
)

// An eventShape is what an event's data is made of.
type eventShape struct {
	name  string // of its schema
	about string
	data  any
	with  string // which of the optional fields of data the event has
}

// shapes has every event (reference: webhooks#events).
var shapes = map[webhook.Type]eventShape{
	webhook.ResultFinal:        {"ResultFinalEvent", "A result became final, or was marked again", FinalResult{}, ""},
	webhook.StudentJoined:      {"StudentJoinedEvent", "Somebody became a student, also again after having left", RosterStudent{}, ""},
	webhook.StudentLeft:        {"StudentLeftEvent", "The membership has ended and no enrollment is current", RosterStudent{}, ""},
	webhook.EnrollmentCreated:  {"EnrollmentCreatedEvent", "A course was given", EnrollmentEvent{}, ""},
	webhook.EnrollmentUpdated:  {"EnrollmentUpdatedEvent", "Dates or the status of an enrollment changed", EnrollmentEvent{}, "previous"},
	webhook.EnrollmentExpiring: {"EnrollmentExpiringEvent", "Seven days or fewer of an enrollment are left", EnrollmentEvent{}, "days_left"},
	webhook.EnrollmentEnded:    {"EnrollmentEndedEvent", "An enrollment expired, was completed, dropped or suspended", EnrollmentEvent{}, "previous_status"},
	webhook.AssignmentCreated:  {"AssignmentCreatedEvent", "Work was assigned", Assignment{}, ""},
	webhook.AssignmentOverdue:  {"AssignmentOverdueEvent", "The due date of work passed and the work is unfinished", Assignment{}, ""},
	webhook.Ping:               {"PingEvent", "Somebody sends a test", webhook.PingData{}, ""},
}

// EventTypes lists all events, ping included, in the order of the documentation.
func EventTypes() []webhook.Type { return append(webhook.Types(), webhook.Ping) }

// EventSchema is the JSON Schema of an event's body, with everything that it refers to.
func EventSchema(t webhook.Type) []byte {
	b := builder{refs: "#/$defs/"}
	schema := b.event(t)
	return encode(slices.Concat(members{{"$schema", "https://json-schema.org/draft/2020-12/schema"}}, schema, members{{"$defs", b.defs}}))
}

// EventAbout says in a sentence what an event means, and EventName is the name of its schema.
func EventAbout(t webhook.Type) string { return shapes[t].about }

// EventName is the name of an event's schema among those of Schemas.
func EventName(t webhook.Type) string { return shapes[t].name }

// Schemas are the JSON Schemas of all events and of what lists and events share, by name, as an
// OpenAPI document has them in its components.
func Schemas() []byte {
	b := builder{refs: "#/components/schemas/"}
	b.schema(reflect.TypeFor[Result]())
	for _, t := range EventTypes() {
		event := b.event(t)
		b.defs = append(b.defs, member{shapes[t].name, event})
	}
	return encode(b.defs)
}

// members are an object whose fields keep their order.
type members []member

type member struct {
	name  string
	value any
}

// MarshalJSON implements json.Marshaler.
func (m members) MarshalJSON() ([]byte, error) {
	var out bytes.Buffer
	out.WriteByte('{')
	for i, one := range m {
		if i > 0 {
			out.WriteByte(',')
		}
		value, err := json.Marshal(one.value)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&out, "%q:%s", one.name, value)
	}
	out.WriteByte('}')
	return out.Bytes(), nil
}

func encode(m members) []byte {
	text, err := json.Marshal(m)
	if err != nil {
		panic("wire: a schema cannot be encoded: " + err.Error())
	}
	return text
}

// A builder makes schemas of Go types. Structs with a name are defined once and referred to.
type builder struct {
	refs string // where references lead
	defs members
}

func (b *builder) event(t webhook.Type) members {
	shape, ok := shapes[t]
	if !ok {
		panic("wire: no schema of the event " + string(t))
	}
	var data members
	if of := reflect.TypeOf(shape.data); of == reflect.TypeFor[EnrollmentEvent]() {
		data = b.object(of, func(name string) bool { return name == shape.with })
	} else {
		data = b.schema(of)
	}
	return members{
		{"title", string(t)},
		{"description", shape.about},
		{"type", "object"},
		{"required", []string{"id", "type", "created", "organization", "data"}},
		{"properties", members{
			{"id", members{{"type", "string"}, {"pattern", "^evt_[0-9a-f]{32}$"}, {"description", "The same for every retry"}}},
			{"type", members{{"type", "string"}, {"const", string(t)}}},
			{"created", b.schema(reflect.TypeFor[clock.Timestamp]())},
			{"organization", b.schema(reflect.TypeFor[webhook.Sender]())},
			{"data", data},
		}},
	}
}

// names are those of schemas whose Go types have others.
var names = map[reflect.Type]string{
	reflect.TypeFor[RosterStudent]():  "Student",
	reflect.TypeFor[Enrollment]():     "ListEnrollment",
	reflect.TypeFor[webhook.Sender](): "EventOrganization",
}

// scalars are the types whose JSON is not what their Go kind suggests, and those with few values.
var scalars = map[reflect.Type]members{
	reflect.TypeFor[decimal.Number]():          {{"type", "number"}},
	reflect.TypeFor[json.RawMessage]():         {{"type", "object"}, {"additionalProperties", members{{"type", "number"}}}},
	reflect.TypeFor[result.Attempt]():          values(result.Practice, result.Assigned, result.TestingCenter, result.SectionPractice),
	reflect.TypeFor[assignment.Status]():       values(assignment.Pending, assignment.InProgress, assignment.Submitted, assignment.Completed, assignment.Expired),
	reflect.TypeFor[org.Role]():                values(org.RoleMember, org.RoleOwner, org.RoleAdmin, org.RoleExaminer, org.RoleTeacher),
	reflect.TypeFor[org.MemberStatus]():        values(org.MemberActive, org.MemberInactive),
	reflect.TypeFor[course.EnrollmentStatus](): values(course.EnrollmentActive, course.EnrollmentGracePeriod, course.EnrollmentPending, course.EnrollmentExpired, course.EnrollmentSuspended, course.EnrollmentDropped, course.EnrollmentCompleted),
}

// named are scalars that have a schema of their own.
var named = map[reflect.Type]members{
	reflect.TypeFor[clock.Timestamp](): {{"type", "string"}, {"format", "date-time"},
		{"pattern", "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}[+-][0-9]{2}:[0-9]{2}$"},
		{"description", "ISO 8601 with an offset: UTC, or that of the zone that was asked for"}},
	reflect.TypeFor[catalog.Kind](): values(catalog.Test, catalog.Quiz, catalog.Assessment),
	reflect.TypeFor[clock.Date]():   {{"type", "string"}, {"pattern", "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"}},
}

func values[T ~string](all ...T) members { return members{{"type", "string"}, {"enum", all}} }

func (b *builder) schema(t reflect.Type) members {
	if s, ok := scalars[t]; ok {
		return s
	}
	if s, ok := named[t]; ok {
		return b.define(t.Name(), func() members { return s })
	}
	switch t.Kind() {
	case reflect.Bool:
		return members{{"type", "boolean"}}
	case reflect.String:
		return members{{"type", "string"}}
	case reflect.Int, reflect.Int64:
		return members{{"type", "integer"}}
	case reflect.Slice:
		return members{{"type", "array"}, {"items", b.schema(t.Elem())}}
	case reflect.Struct:
		name := names[t]
		if name == "" {
			name = t.Name()
		}
		object := func() members { return b.object(t, func(string) bool { return true }) }
		if name == "" {
			return object()
		}
		return b.define(name, object)
	default:
		panic("wire: no schema of " + t.String())
	}
}

// define adds a schema, unless it is there, and refers to it.
func (b *builder) define(name string, schema func() members) members {
	if !slices.ContainsFunc(b.defs, func(m member) bool { return m.name == name }) {
		i := len(b.defs)
		b.defs = append(b.defs, member{name: name})
		b.defs[i].value = schema()
	}
	return members{{"$ref", b.refs + name}}
}

// object is the schema of a struct. Fields with omitempty are those that has names, and are required
// then if they have no others beside them: see eventShape.
func (b *builder) object(t reflect.Type, has func(optional string) bool) members {
	required, properties := []string{}, members{}
	for f := range fieldsOf(t) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		optional := strings.Contains(options, "omitempty")
		if optional && !has(name) {
			continue
		}
		of := f.Type
		pointer := of.Kind() == reflect.Pointer
		if pointer {
			of = of.Elem()
		}
		schema := b.schema(of)
		if pointer && !optional {
			schema = orNull(schema)
		}
		if doc := f.Tag.Get("doc"); doc != "" {
			schema = append(slices.Clone(schema), member{"description", doc})
		}
		if !optional || t == reflect.TypeFor[EnrollmentEvent]() {
			required = append(required, name)
		}
		properties = append(properties, member{name, schema})
	}
	s := members{{"type", "object"}}
	if len(required) > 0 {
		s = append(s, member{"required", required})
	}
	return append(s, member{"properties", properties})
}

// fieldsOf goes through a struct's fields as its JSON has them: those of embedded structs among them.
func fieldsOf(t reflect.Type) func(func(reflect.StructField) bool) {
	return func(yield func(reflect.StructField) bool) {
		for _, f := range reflect.VisibleFields(t) {
			if !f.Anonymous && !yield(f) {
				return
			}
		}
	}
}

// orNull is a schema whose value may be null.
func orNull(s members) members {
	if s[0].name == "type" && len(s) == 1 {
		return members{{"type", []any{s[0].value, "null"}}}
	}
	return members{{"oneOf", []members{s, {{"type", "null"}}}}}
}
