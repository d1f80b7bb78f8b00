// Package roster imports an organization's whole roster from a file (reference: roster#files).
//
// The file's sections are read as streams (File, People, Enrollments), each row is decided
// by pure rules (Decide, DecideLeaver, DecideSeat, Guards) over what is known of the person
// it names, and the decisions are stored as the changes of a run. A preview, a held run and
// an applied one go the same way and differ only in whether the changes are carried out.
package roster

import "github.com/registrar-dev/registrar/internal/kit/fault"

// Channel is notified with a run's id when the run has come to an end or to a halt.
const Channel = "registrar_roster"

// Mode says what a file stands for.
type Mode string

// The modes.
const (
	Additive Mode = "additive_only"          // creates and updates, never removes
	Snapshot Mode = "authoritative_snapshot" // the complete roster: who is missing becomes inactive
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
)

// Severity says what an issue means for its row.
type Severity string

// The severities.
const (
	Error   Severity = "error"   // the row was not applied
	Warning Severity = "warning" // applied, but for what the message says
	Info    Severity = "info"    // applied; worth knowing
)

// Issue is something to tell about a row of the file.
type Issue struct {
	File             string   `json:"file"`
	Line             int      `json:"line"` // 1 is the header; 0 for who is not in the file
	PersonExternalID string   `json:"person_external_id"`
	Code             Code     `json:"code"`
	Severity         Severity `json:"severity"`
	Message          string   `json:"message"`
}
