// Package audit records who gave which command. A command writes its row in its own
// transaction: without the row nothing is changed. Reads, and what is reported of single
// students (sign-ins, activity, work), leave no row.
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

// Entry is one row of the log.
type Entry struct {
	ID           int64
	Organization id.Organization // 0: the command was about no single one
	Actor        Actor
	Action       string // a verb and a noun: "revoked API key"
	Target       string // what it was done to, as people know it; never a secret
	At           time.Time
}

// PageSize is how many entries List returns at most.
const PageSize = 50
