package provision_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/domain/student"
	"github.com/registrar-dev/registrar/internal/flow/provision"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// way is something that signs a person in, or leads to it. One of kind "password" is good while it is
// the account's.
type way struct {
	kind, secret string
	known        [2]bool // which of the organizations ever knew the secret
}

// person is somebody whom two organizations call about, with all ways in that there ever were.
type person struct {
	*fixture
	r    *rand.Rand
	orgs [2]org.Principal
	mail string
	user provision.Answer
	ways []*way
	of   map[string]*way // whose password it is, by the stored hash
	did  string          // how to do it again, for failures
}

// opens says what a way opens now: of which of the two organizations.
func (p *person) opens(w *way) (opened [2]bool) {
	var proof student.Proof
	switch w.kind {
	case "link":
		_, found, err := student.FindLink(p.t.Context(), p.DB, w.secret, now)
		if err != nil {
			return opened
		}
		proof = found
	case "password":
		a, now := p.current()
		if now != w {
			return opened
		}
		proof = a.Proof()
	case "session":
		p.Scan(&proof, `SELECT coalesce((SELECT data -> 'values' ->> 'proof' FROM sessions WHERE hash = $1), '')`, w.secret)
	}
	for i, o := range p.orgs {
		opened[i] = proof.Opens(o.Organization.ID)
	}
	return opened
}

// current is the account, and the way that its password is; nil for none. Only what the service hashed by
// itself has to be compared, once.
func (p *person) current() (student.Account, *way) {
	a, err := student.Find(p.t.Context(), p.DB, p.user.UserID)
	check.NoError(check.Now(p.t), err, "%s", p.did)
	var hash string
	p.Scan(&hash, `SELECT coalesce(password_hash, '') FROM accounts WHERE id = $1`, p.user.UserID)
	if hash == "" || p.of[hash] != nil {
		return a, p.of[hash]
	}
	for _, w := range slices.Backward(p.ways) {
		if w.kind != "password" {
			continue
		}
		same, err := a.Owns(p.t.Context(), w.secret)
		check.NoError(check.Now(p.t), err, "%s", p.did)
		if same {
			p.of[hash] = w
			return a, w
		}
	}
	p.t.Errorf("a password that nobody knows: %s", p.did)
	return a, nil
}

// nobody is no organization: the person.
const nobody = -1

func (p *person) add(kind, secret string, by int) {
	w := &way{kind: kind, secret: secret}
	if by != nobody {
		w.known[by] = true
	}
	p.ways = append(p.ways, w)
}

// call is a provisioning call of an organization, in one of the modes.
func (p *person) call(by int) {
	o := p.orgs[by]
	c := provision.Command{Email: p.mail, FirstName: "Ana", ResendEmail: p.r.IntN(3) == 0}
	switch p.r.IntN(12) {
	case 0:
		c.Password = fmt.Sprintf("Given-by-%d-%d", o.Organization.ID, p.r.Uint32())
		p.add("password", c.Password, by)
	case 1:
		c.Mode = provision.ModeGenerate
	case 2:
		c.Courses = []string{"ielts"}
	}
	a, err := p.Student(p.t.Context(), o, c)
	check.NoError(check.Now(p.t), err, "%s", p.did)
	p.user = a
	if a.Credentials.Password != nil {
		p.add("password", *a.Credentials.Password, by)
	}
	if a.SetPasswordURL != nil {
		p.add("link", token(a), by)
	}
}

// mailLink is what the mail of an organization has, or the one that was asked for: nobody else has it.
func (p *person) mailLink(o org.Principal) {
	p.inTx(func(tx *pg.Tx) error {
		var b pg.Batch
		l := student.IssueMailedLink(&b, o.Organization.ID, p.user.UserID, 3, now)
		p.add("link", l.Token, nobody)
		return b.Send(p.t.Context(), tx)
	})
}

func (p *person) inTx(do func(tx *pg.Tx) error) {
	check.NoError(check.Now(p.t), p.DB.InTx(p.t.Context(), do), "%s", p.did)
}

// launch is what a launch from the LMS leaves.
func (p *person) launch(by int) {
	o := p.orgs[by]
	p.inTx(func(tx *pg.Tx) error {
		return student.NoteLaunch(p.t.Context(), tx, o.Organization.ID, p.user.UserID, now)
	})
	hash := fmt.Sprintf("%s-%d", p.mail, p.r.Uint64())
	data := fmt.Sprintf(`{"values": {"user": "%d", "proof": %q}}`, p.user.UserID, student.ByOrganization(o.Organization.ID))
	check.NoError(check.Now(p.t), (student.Sessions{DB: p.DB}).Keep(p.t.Context(), hash, []byte(data), time.Now().Add(time.Hour)), "a session")
	p.add("session", hash, by)
}

// good are the ways that open something, of those that the organization knows, or of the person's own.
func (p *person) good(by int, kind string) (good []*way) {
	for _, w := range p.ways {
		if w.kind == kind && (by == nobody && w.known == [2]bool{} || by != nobody && w.known[by]) && p.opens(w) != [2]bool{} {
			good = append(good, w)
		}
	}
	return good
}

// choose sets a new password over a link, or by the password of before; by is the organization that does
// it in the person's name.
func (p *person) choose(by int) {
	hash := fmt.Sprintf("chosen-%d", p.r.Uint64()) // nothing compares with it: it is in of
	links, words := p.good(by, "link"), p.good(by, "password")
	var err error
	switch {
	case len(links) > 0 && p.r.IntN(3) > 0:
		_, _, err = student.SetOwnPassword(p.t.Context(), p.DB, links[p.r.IntN(len(links))].secret, hash, now)
	case len(words) > 0:
		var a student.Account
		if a, err = student.NoteSignIn(p.t.Context(), p.DB, p.user.UserID, now); err == nil {
			_, err = student.ChangePassword(p.t.Context(), p.DB, a, hash, now)
		}
	default:
		return
	}
	check.NoError(check.Now(p.t), err, "%s", p.did)
	p.add("password", hash, by)
	p.of[hash] = p.ways[len(p.ways)-1]
}

// step does something at random, and says who did it.
func (p *person) step() (by int) {
	by = p.r.IntN(2)
	switch n := p.r.IntN(8); {
	case n < 4:
		p.call(by)
	case n == 4:
		p.launch(by)
	case n == 5:
		p.choose(by)
	case n == 6:
		p.mailLink(p.orgs[by])
		by = nobody
	default:
		by = nobody
		p.choose(nobody)
	}
	return by
}

// hold runs a step and checks what has to hold whatever it was.
func (p *person) hold() {
	before := map[*way][2]bool{}
	for _, w := range p.ways {
		before[w] = p.opens(w)
	}
	by := p.step()
	for _, w := range p.ways {
		after := p.opens(w)
		for i, o := range p.orgs {
			other := p.orgs[1-i]
			if w.known[i] && after[1-i] {
				p.t.Errorf("what organization %d knew, a %s, opens what is organization %d's: %s", o.Organization.ID, w.kind, other.Organization.ID, p.did)
			}
			was, existed := before[w]
			if by == i && existed && was[1-i] != after[1-i] {
				p.t.Errorf("a call of organization %d changes what a %s opens of organization %d: %s", o.Organization.ID, w.kind, other.Organization.ID, p.did)
			}
		}
	}
	p.ways = slices.DeleteFunc(p.ways, func(w *way) bool { return w.kind != "password" && p.opens(w) == [2]bool{} }) // for good
}

// steps is how many each of the 16 people gets: go test -run Sequence ./internal/flow/provision -args -steps 6250
var steps = flag.Int("steps", 100, "random steps a person")

// Organizations and people do at random whatever leads to a sign-in, many at once. After each step, no
// call has changed what opens for the student of another organization, and nothing that an organization
// ever knew opens what is another's.
// Reference: provisioning#links.
func TestNoSequenceOfCallsReachesWhatIsAnothers(t *testing.T) {
	t.Parallel()
	d := open(t)
	orgs := [2]org.Principal{d.who, d.organization("south")}
	seed := rand.Uint64()
	var all sync.WaitGroup
	for n := range uint64(16) {
		all.Go(func() {
			p := &person{fixture: d, of: map[string]*way{}, did: fmt.Sprintf("seed %d, person %d", seed, n), r: rand.New(rand.NewPCG(seed, n)), orgs: orgs, mail: fmt.Sprintf("p%d@institute.org", n)}
			if n%2 == 1 {
				slices.Reverse(p.orgs[:]) // the other one makes the account
			}
			p.call(0)
			for step := 0; step < *steps && !t.Failed(); step++ {
				p.hold()
			}
		})
	}
	all.Wait()
}
