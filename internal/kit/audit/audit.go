// Package audit records who gave which command, who signed in, and what was refused. A command writes
// its row in its own transaction: without the row nothing is changed. Refusals are counted (Refusals).
// Reads, and what the platform reports of single students (activity, work), leave no row.
package audit

import (
	"time"

	"github.com/registrar-dev/registrar/internal/kit/id"
)

// Kind says what sort of actor gave a command.
type Kind string

// The kinds of actors.
const (
	PartnerKey  Kind = "partner_key"  // an organization's API key
	PlatformKey Kind = "platform_key" // the platform's own systems and administrators
	Staff       Kind = "staff"        // a person in the console
	Operator    Kind = "operator"     // a Kubernetes resource
	Schedule    Kind = "schedule"     // the worker, by itself
	Student     Kind = "student"      // a person on the students' pages, who is nobody's staff
	Nobody      Kind = "unknown"      // who was refused before anything showed who it is
)

// Actor is who gives a command. A command of the zero Actor is refused by the database.
type Actor struct {
	Kind Kind
	ID   int64  // the key's or the account's; 0 for the others
	Name string // for people, as it was at the time; it stays when the account is deleted
}

// Platform gives the commands of the platform API, which has one key.
var Platform = Actor{Kind: PlatformKey, Name: "platform administrator"}

// Scheduled gives the commands that the worker carries out when their time has come.
var Scheduled = Actor{Kind: Schedule, Name: "schedule"}

// Unknown is whoever was refused before anything showed who it is.
var Unknown = Actor{Kind: Nobody, Name: "unknown"}

// Entry is one row of the log.
type Entry struct {
	ID           int64
	Organization id.Organization // 0: the command was about no single one
	Actor        Actor
	Action       string // a verb and a noun: "revoked API key"
	Target       string // what it was done to, as people know it; never a secret
	At           time.Time
	Address      string // of sign-ins and refusals: where they came from
	Times        int    // how often, within the minute before; 1 of all but refusals
}

// PageSize is how many entries List returns at most.
const PageSize = 50
