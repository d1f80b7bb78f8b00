package lms

import (
	"context"
	"time"

	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/seal"
)

// LoginLife is how long an LMS and a person may take between the two requests of a launch; ticketLife how long a window
// of its own may be opened after it.
const (
	LoginLife  = 10 * time.Minute
	ticketLife = 10 * time.Minute
)

// maxFrame is the longest name of a frame that keeps values.
const maxFrame = 100

// Login is a launch under way.
type Login struct {
	Registration Registration
	State        string // goes to the LMS and comes back
	Nonce        string // goes to the LMS and comes back in its message; once
	Browser      string // stays in the browser, or in the LMS's storage for it; once
	Storage      string // the frame in which the LMS keeps values for tools; "": none

	nonce, browser []byte // hashes, of one that was read
}

var errUnknown = fault.Field("client_id", "launch_refused",
	"iss, client_id: the institute has not registered this LMS; an owner or admin registers it in the console, under LMS")

var errWaiting = fault.New(fault.Conflict, "not_confirmed",
	"the LMS has registered itself, and an owner or admin of the institute has to confirm it in the console, under LMS")

// Begin remembers a launch of the LMS that calls itself issuer, and us clientID, and gives what it has to bring back.
// LMSes may leave out clientID: then the one with the issuer is meant, if there is one alone. Invalid for an LMS that the
// organization has not registered.
func (s Service) Begin(ctx context.Context, org id.Organization, issuer, clientID, storage string, now time.Time) (Login, error) {
	if !plain(issuer) || !plain(clientID) || len(issuer) > maxIssuer || len(clientID) > maxText {
		return Login{}, errUnknown
	}
	known, err := selectClient(ctx, s.DB, org, issuer, clientID)
	if err != nil {
		return Login{}, err
	}
	if len(known) != 1 {
		return Login{}, errUnknown
	}
	if known[0].Waiting {
		return Login{}, errWaiting
	}
	if len(storage) > maxFrame || !plain(storage) {
		storage = ""
	}
	l := Login{Registration: known[0], State: seal.Token(), Nonce: seal.Token(), Browser: seal.Token(), Storage: storage}
	return l, insertLogin(ctx, s.DB, org, l, now.Add(LoginLife))
}

var errOver = fault.Field("state", "used", "state: this launch was used already, took too long, or was not begun here; open the link in the LMS again")

// Pending finds the launch that an LMS brings back. Invalid (used) for one that was taken, is over or never began.
func (s Service) Pending(ctx context.Context, org id.Organization, state string, now time.Time) (Login, error) {
	l, err := selectLogin(ctx, s.DB, org, seal.Hash(state), now)
	if pg.None(err) {
		return l, errOver
	}
	l.State = state
	return l, err
}

// Same says whether the launch was begun in the browser that shows this.
func (l Login) Same(browser string) bool {
	return browser != "" && string(seal.Hash(browser)) == string(l.browser)
}

// Answers says whether a message is the answer to this launch.
func (l Login) Answers(m Message) bool { return string(seal.Hash(m.Nonce)) == string(l.nonce) }

// Finish takes a launch: of several at once, one. Invalid (used) for the others.
func Finish(ctx context.Context, tx *pg.Tx, org id.Organization, state string, now time.Time) error {
	err := deleteLogin(ctx, tx, org, seal.Hash(state), now)
	if pg.None(err) {
		return errOver
	}
	return err
}

// Person is who the LMS's subject is; 0 for somebody who has not come before.
func Person(ctx context.Context, q pg.Querier, org id.Organization, r id.Registration, subject string) (id.User, error) {
	user, err := selectPerson(ctx, q, org, r, subject)
	if pg.None(err) {
		return 0, nil
	}
	return user, err
}

// ErrOther is for a user of an LMS who has the address of a student as whom another of its users has come.
var ErrOther = fault.New(fault.Conflict, "other_subject",
	"another user of the LMS has come as the student with this email address; if the LMS has made the account again, an owner or admin of the institute lets the new one in, in the console under LMS")

// Bind remembers who the LMS's subject is. Conflict (ErrOther) where the subject or the person is another's.
func Bind(ctx context.Context, tx *pg.Tx, org id.Organization, r id.Registration, subject string, user id.User, now time.Time) error {
	if err := insertPerson(ctx, tx, org, r, subject, user, now); err != nil {
		return err
	}
	is, err := Person(ctx, tx, org, r, subject)
	if err == nil && is != user {
		return ErrOther
	}
	return err
}

// Ticket opens a launch in a window of its own, once.
type Ticket struct {
	User    id.User
	LeadsTo string
	Note    string
}

// Issue keeps a ticket, and gives the text that opens it.
func (s Service) Issue(ctx context.Context, org id.Organization, t Ticket, now time.Time) (string, error) {
	text := seal.Token()
	return text, insertTicket(ctx, s.DB, org, seal.Hash(text), t, now.Add(ticketLife))
}

// Redeem takes a ticket. Invalid (used) for one that was taken, is over or never was.
func (s Service) Redeem(ctx context.Context, org id.Organization, text string, now time.Time) (Ticket, error) {
	t, err := deleteTicket(ctx, s.DB, org, seal.Hash(text), now)
	if pg.None(err) {
		return t, fault.Field("ticket", "used", "ticket: it was used already, or is too old; open the link in the LMS again")
	}
	return t, err
}
