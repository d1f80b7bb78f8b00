// Package roster imports an organization's whole roster from a file (reference: roster#files).
//
// The file's sections are read as streams (File, People, Seats). Pure rules (Decide, DecideLeaver,
// DecideSeat, Guards) decide about each row from what is known of its person, and the decisions
// are stored as the changes of a run. A preview, a held run and an applied one differ only in
// whether the changes are carried out. A seat is a student's membership of a class.
package roster

import "github.com/registrar-dev/registrar/internal/kit/fault"

// Channel is notified with a run's id when the run is over or held.
const Channel = "roster"

// Mode says what a file stands for.
type Mode string

// The modes.
const (
	Additive Mode = "additive_only"          // creates and updates, never removes
	Snapshot Mode = "authoritative_snapshot" // the complete roster: people who are missing become inactive
)

// ParseMode reads a mode; "" is the default. Invalid for anything else.
func ParseMode(text string) (Mode, error) {
	switch m := Mode(text); m {
	case "":
		return Additive, nil
	case Additive, Snapshot:
		return m, nil
	}
	return "", fault.Field("mode", "not_a_choice", "mode: send additive_only or authoritative_snapshot")
}

// The sections of a file, by their names in an archive.
const (
	PeopleFile      = "people.csv"
	EnrollmentsFile = "enrollments.csv"
)

// Code names what an issue is about.
type Code string

// The issue codes.
const (
	MissingExternalID    Code = "missing_external_id"
	MissingEmail         Code = "missing_email"
	InvalidEmail         Code = "invalid_email"
	DuplicateExternalID  Code = "duplicate_external_id"
	DuplicateEmail       Code = "duplicate_email"
	EmailChanged         Code = "email_changed"
	ExternalIDReassigned Code = "external_id_reassigned"
	TeacherReported      Code = "teacher_reported"
	AdminRoleNotGranted  Code = "admin_role_not_granted"
	UnknownRole          Code = "unknown_role"
	NotManaged           Code = "not_managed"
	UnknownPerson        Code = "unknown_person"
	ClassNameConflict    Code = "class_name_conflict"
	BadRow               Code = "bad_row"
	SuspiciousValue      Code = "suspicious_value"
	EncodingAssumed      Code = "encoding_assumed"
	Withdrawn            Code = "withdrawn"
	UnknownClass         Code = "unknown_class"
	UnknownSession       Code = "unknown_session"
)

// Severity says what an issue means for its row.
type Severity string

// The severities.
const (
	Error   Severity = "error"   // the row was not applied
	Warning Severity = "warning" // applied, but for what the message says
	Info    Severity = "info"    // applied; worth knowing
)

// Issue is a problem or a remark about a row of the file.
type Issue struct {
	File             string   `json:"file"`
	Line             int      `json:"line"` // 1 is the header; 0 for a person who is not in the file
	PersonExternalID string   `json:"person_external_id"`
	Code             Code     `json:"code"`
	Severity         Severity `json:"severity"`
	Message          string   `json:"message"`

	User int64 `json:"-" db:"-"` // whom the row is about, where the platform knows the person; else 0. It is not read again
}
