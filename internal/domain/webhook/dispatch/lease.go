// Package dispatch leases due deliveries to senders. It decides what may be attempted now,
// and keeps to each URL's allowance.
package dispatch

import (
	"container/heap"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/lead"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/seal"
	"github.com/registrar-dev/registrar/internal/kit/task"
)

// maxLease bounds how many deliveries one lease holds.
const maxLease = 32

const (
	// passURLs bounds the URLs that one pass looks at, and passSize the deliveries that it leases.
	passURLs = 256
	passSize = 2048
	// crowd is how many URLs with something due are so many that senders have enough to do at the
	// same time, however much of it is in one lease.
	crowd = 16
	// askedSize bounds what one pass leases of what people asked for.
	askedSize = 64
)

// Lease is a group of deliveries of one URL that one task attempts. It has a deadline: when
// it runs out, the deliveries are due again, whatever happened to the task. Small leases of
// several URLs have the same id: one task attempts them all.
type Lease struct{ task.Deliver }

// together is how many deliveries the leases of one id hold at most.
const together = maxLease / 2

// Held is what a lease still holds, for its sender.
type Held struct {
	Lease  task.Deliver
	Target Target
	Dues   []Due
	Until  time.Time // when it runs out
}

// LeaseDue leases deliveries that are due, for the length of term. It takes turns between
// URLs; each gets what its allowance leaves and a fair share of the call. orgs narrows the
// search; none means all. more is true when further deliveries might be leased now.
//
// A caller that leases again and again uses a Picker, and only one may lease at a time.
func LeaseDue(ctx context.Context, db *pg.DB, now time.Time, term time.Duration, orgs []id.Organization) (leases []Lease, more bool, err error) {
	p := NewPicker(db, term)
	for shard := range Shards {
		p.shards[shard] = nil
	}
	if len(orgs) == 0 {
		err = p.Scan(ctx, now)
	}
	if err != nil {
		return nil, false, err
	}
	return p.Pass(ctx, now, orgs)
}

// Shards is how many parts the URLs are divided into. One process at a time leads a part.
const Shards = 16

// shardOf is the part that a URL belongs to. Endpoints are numbered one after the other, which
// spreads them evenly.
func shardOf(e id.Endpoint) int { return int(e % Shards) }

// Picker leases due deliveries of the shards that its process leads. It remembers which URLs have
// some, so that a pass costs nothing for all the others, and where in the queue each URL's next
// ones begin, so that rows that are gone are not read again. What it remembers may be wrong at any
// time without harm but for a delay until the next Scan. It is for one goroutine.
type Picker struct {
	db     *pg.DB
	term   time.Duration
	shards map[int]*lead.Lease // those that it leads
	urls   map[id.Endpoint]*pendingURL
	orgs   map[id.Organization][]id.Endpoint // those of urls whose organization is known
	turn   []id.Endpoint                     // URLs to look at, each once, the first one next
	later  alarms                            // when to look at others
	asks   bool                              // something that a person asked for, or that is sent in order, may wait
}

// pendingURL is what a Picker remembers of a URL that has pending deliveries.
type pendingURL struct {
	organization id.Organization
	inTurn       bool
	next         time.Time // when to look at it again; zero: when it is woken, or the Scan finds it
	since        time.Time // nothing that is due before it is left, but for what is on its way into the queue
	floor        [16]byte  // leases with lesser ids are gone
	order        order
	seen         bool // by the Scan that runs
}

// alarms is a heap of times at which URLs are to be looked at; one that is not its URL's next any
// more does not count.
type alarms []alarm

type alarm struct {
	at       time.Time
	endpoint id.Endpoint
}

func (a alarms) Len() int           { return len(a) }
func (a alarms) Less(i, j int) bool { return a[i].at.Before(a[j].at) }
func (a alarms) Swap(i, j int)      { a[i], a[j] = a[j], a[i] }
func (a *alarms) Push(x any)        { *a = append(*a, x.(alarm)) }
func (a *alarms) Pop() any {
	last := (*a)[len(*a)-1]
	*a = (*a)[:len(*a)-1]
	return last
}

// slack is how long a transaction may take from the time that it gives its events until it has
// committed, for its deliveries not to wait for the next Scan.
const slack = 2 * time.Second

// NewPicker makes a Picker of leases of the given length.
func NewPicker(db *pg.DB, term time.Duration) *Picker {
	return &Picker{db: db, term: term, shards: map[int]*lead.Lease{}, urls: map[id.Endpoint]*pendingURL{}, orgs: map[id.Organization][]id.Endpoint{}}
}

// Lead sets the shards that the process leads now, and the leases by which it does. It says whether
// there are new ones, which need a Scan.
func (p *Picker) Lead(shards map[int]lead.Lease) (more bool) {
	for shard, old := range p.shards {
		if l, still := shards[shard]; !still || old.Token != l.Token {
			delete(p.shards, shard)
		}
	}
	for e := range p.urls {
		if _, led := p.shards[shardOf(e)]; !led {
			p.forget(e)
		}
	}
	p.turn = slices.DeleteFunc(p.turn, func(e id.Endpoint) bool { return p.urls[e] == nil })
	for shard, l := range shards {
		if p.shards[shard] == nil {
			p.shards[shard], more = &l, true
		}
	}
	return more
}

// led are the shards as an argument.
func (p *Picker) led() []int32 {
	led := make([]int32, 0, len(p.shards))
	for shard := range p.shards {
		led = append(led, int32(shard))
	}
	return led
}

// Scan finds the URLs that have pending deliveries, and when the first of each is due. It costs one
// step in an index for each, and finds what no other signal has shown.
func (p *Picker) Scan(ctx context.Context, now time.Time) error {
	heads, asks, err := selectHeads(ctx, p.db, p.led())
	if err != nil {
		return err
	}
	p.asks = p.asks || asks
	for _, u := range p.urls {
		u.seen = false
	}
	p.later = p.later[:0]
	for _, h := range heads {
		u := p.url(h.Endpoint)
		u.seen = true
		if h.Due.Before(u.since) {
			u.since = h.Due
		}
		u.next = h.Due
		p.later = append(p.later, alarm{u.next, h.Endpoint})
	}
	heap.Init(&p.later)
	for e, u := range p.urls {
		if !u.seen && !u.inTurn {
			p.forget(e)
		}
	}
	return nil
}

func (p *Picker) forget(e id.Endpoint) {
	org := p.urls[e].organization
	delete(p.urls, e)
	others := slices.DeleteFunc(p.orgs[org], func(o id.Endpoint) bool { return o == e })
	if p.orgs[org] = others; len(others) == 0 {
		delete(p.orgs, org)
	}
}

// lookAt looks at the URL again at the given time.
func (p *Picker) lookAt(e id.Endpoint, at time.Time) {
	p.url(e).next = at
	heap.Push(&p.later, alarm{at, e})
}

func (p *Picker) url(e id.Endpoint) *pendingURL {
	u := p.urls[e]
	if u == nil {
		u = &pendingURL{}
		p.urls[e] = u
	}
	return u
}

// queue gives the URL a turn.
func (p *Picker) queue(e id.Endpoint) {
	if u := p.url(e); !u.inTurn {
		u.inTurn = true
		p.turn = append(p.turn, e)
	}
}

// Wake gives URLs a turn in the next pass.
func (p *Picker) Wake(endpoints ...id.Endpoint) {
	for _, e := range endpoints {
		p.queue(e)
	}
}

// Expired lists leases of the Picker's shards that ran out between since and now, oldest first, so
// that the relay can ask whether their tasks still wait on the run queue. until is when the last
// of them did.
func (p *Picker) Expired(ctx context.Context, since, now time.Time, limit int) (leases []Lease, until time.Time, err error) {
	return selectExpired(ctx, p.db, p.led(), since, now, limit)
}

// fences are the leases of the shards that the given ones are of.
func (p *Picker) fences(leases []Lease) []lead.Lease {
	var fences []lead.Lease
	for _, l := range leases {
		if f := p.shards[shardOf(l.Endpoint)]; f != nil && !slices.Contains(fences, *f) {
			fences = append(fences, *f)
		}
	}
	slices.SortFunc(fences, func(a, b lead.Lease) int { return strings.Compare(a.Name, b.Name) })
	return fences
}

// Returned gives URLs a turn whose leases were given up: what these held is due again.
func (p *Picker) Returned(leases []Lease) {
	for _, l := range leases {
		if _, led := p.shards[shardOf(l.Endpoint)]; !led {
			continue
		}
		p.url(l.Endpoint).since = time.Time{}
		p.queue(l.Endpoint)
	}
}

// Pass leases once: deliveries to URLs of the given organizations, and to others that have some
// due, in turns. more is true when another pass may find more at once.
func (p *Picker) Pass(ctx context.Context, now time.Time, orgs []id.Organization) (leases []Lease, more bool, err error) {
	for len(p.later) > 0 && !p.later[0].at.After(now) {
		a := heap.Pop(&p.later).(alarm)
		if u := p.urls[a.endpoint]; u != nil && u.next.Equal(a.at) {
			u.next = time.Time{}
			p.queue(a.endpoint)
		}
	}
	known := []id.Endpoint{} // not nil, which is NULL and would leave out all that are not known
	for _, org := range orgs {
		known = append(known, p.orgs[org]...)
		p.Wake(p.orgs[org]...)
	}
	taken := p.turn[:min(len(p.turn), passURLs)]
	states, asks, err := selectStates(ctx, p.db, p.led(), taken, p.floors(taken), orgs, append(known, taken...))
	if err != nil {
		return nil, false, err
	}
	p.turn = slices.Clone(p.turn[len(taken):])
	for _, e := range taken {
		p.urls[e].inTurn = false
	}
	if err := p.remember(ctx, states); err != nil {
		p.Wake(taken...)
		return nil, false, err
	}
	if p.asks || asks {
		if leases, err = p.special(ctx, now, states); err != nil {
			p.Wake(taken...)
			return nil, false, err
		}
	}
	due, err := p.due(ctx, now, states)
	if err != nil {
		p.Wake(taken...)
		return nil, false, err
	}
	leases = append(leases, due...)
	if err := insertLeases(ctx, p.db, p.fences(leases), now.Add(p.term), leases); err != nil {
		p.Wake(taken...)
		return nil, false, err
	}
	return leases, len(p.turn) > 0, nil
}

func (p *Picker) floors(endpoints []id.Endpoint) [][16]byte {
	floors := make([][16]byte, len(endpoints))
	for i, e := range endpoints {
		floors[i] = p.urls[e].floor
	}
	return floors
}

// state is what decides how much of a URL may be leased now.
type state struct {
	Endpoint     id.Endpoint
	Organization id.Organization
	SwitchedOn   bool
	Leased       []id.Delivery
	Floor        [16]byte // the least id of its leases; zero when it has none
	webhook.Health
}

// room is how many deliveries may be leased beside those that are.
func (s state) room(now time.Time) int {
	if !s.SwitchedOn || s.NextProbeAt.After(now) {
		return 0
	}
	return max(0, s.Limit()-len(s.Leased))
}

// remember notes what states say of their URLs, before anything new is leased.
func (p *Picker) remember(ctx context.Context, states []state) error {
	var fresh []state
	for _, s := range states {
		u := p.url(s.Endpoint)
		u.order.keep(s.Leased)
		if u.organization == 0 {
			u.organization = s.Organization
			p.orgs[s.Organization] = append(p.orgs[s.Organization], s.Endpoint)
		}
		if !u.order.known {
			fresh = append(fresh, s)
		}
		if u.floor = s.Floor; u.floor == ([16]byte{}) {
			u.floor = uuid.Must(uuid.NewV7())
		}
	}
	return p.learn(ctx, fresh)
}

// due leases what is due at the URLs, each within its room and its share of the pass.
func (p *Picker) due(ctx context.Context, now time.Time, states []state) ([]Lease, error) {
	var want []request
	for _, s := range states {
		u := p.url(s.Endpoint)
		if s.NextProbeAt.After(now) {
			p.lookAt(s.Endpoint, s.NextProbeAt)
		}
		if room := s.room(now); room > 0 {
			want = append(want, request{state: s, room: room, since: u.since})
		}
	}
	if len(want) == 0 {
		return nil, nil
	}
	share := max(1, passSize/len(want))
	for i := range want {
		want[i].most = min(want[i].room, share)
	}
	rows, err := pickDue(ctx, p.db, now, want)
	if err != nil {
		return nil, err
	}
	found, before := byRequest(rows, len(want))
	free, err := p.hold(ctx, now, want, found, before)
	if err != nil {
		return nil, err
	}
	var leases []Lease
	var small []shared // the first small leases of URLs, their second ones …
	for i, r := range want {
		u, n := p.url(r.Endpoint), len(free[i])
		more := len(found[i]) == r.most || u.order.pause > 0
		if len(found[i]) == r.most && r.most < r.room {
			p.queue(r.Endpoint)
		}
		// Leases hold fewer deliveries while few are due, so that several senders attempt them.
		size := min(maxLease, n)
		if len(want) < crowd {
			size = max(1, min(maxLease, n/2))
		}
		for n, part := range parts(free[i], size) {
			l := newLease(r.state, part, false)
			l.More = more
			if len(small) == n {
				small = append(small, shared{})
			}
			small[n].join(&l)
			leases = append(leases, l)
			for _, d := range part {
				u.order.note(d.Delivery, d.Student)
			}
		}
	}
	return leases, nil
}

// byRequest divides the rows of n requests into what is due for each, and what comes before that.
func byRequest(rows []picked, n int) (found, before [][]picked) {
	found, before = make([][]picked, n), make([][]picked, n)
	for _, r := range rows {
		if r.Before {
			before[r.N-1] = append(before[r.N-1], r)
		} else {
			found[r.N-1] = append(found[r.N-1], r)
		}
	}
	return found, before
}

// hold takes from what was found for each request, and from what comes before that, what may be leased now. It notes from
// when on others are left, and looks for further deliveries where some are held back that took these their places.
func (p *Picker) hold(ctx context.Context, now time.Time, want []request, found, before [][]picked) (free [][]picked, err error) {
	free = make([][]picked, len(want))
	var again []request
	var busy []map[id.User]bool
	var of []int // indices of again in want
	for i, r := range want {
		u, since := p.url(r.Endpoint), now.Add(-slack)
		if len(found[i]) == 0 {
			u.order.pause = 0
			continue
		}
		var held []picked
		those := u.order.busy()
		free[i], held = divide(inSequence(before[i], found[i]), those, r.most)
		if len(found[i]) == r.most {
			since = earlier(since, found[i][r.most-1].Due)
		}
		if len(held) == 0 {
			u.order.pause = 0
		} else {
			for _, h := range held {
				since = earlier(since, h.Due)
			}
			if u.order.pause = min(2*u.order.pause, lastPause); len(free[i]) > 0 || u.order.pause == 0 {
				u.order.pause = firstPause
			}
			p.lookAt(r.Endpoint, now.Add(u.order.pause))
			if left := r.most - len(free[i]); left > 0 && len(found[i]) == r.most {
				r.most = left
				r.Leased = slices.Clone(r.Leased)
				for _, d := range free[i] {
					r.Leased = append(r.Leased, d.Delivery)
					those[d.Student] = those[d.Student] || d.Student != 0
				}
				again, busy, of = append(again, r), append(busy, those), append(of, i)
			}
		}
		u.since = later(u.since, since)
	}
	if len(again) == 0 {
		return free, nil
	}
	rows, err := pickOthers(ctx, p.db, now, again, busy)
	found, before = byRequest(rows, len(again))
	for n, i := range of {
		more, _ := divide(inSequence(before[n], found[n]), busy[n], again[n].most)
		free[i] = append(free[i], more...)
	}
	return free, err
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// request is how many due deliveries of a URL are wanted.
type request struct {
	state
	room, most int
	since      time.Time
}

// special leases what does not go by the allowance: what a person asked for, and what a recovery
// sends in order. It adds to the states what it leases.
func (p *Picker) special(ctx context.Context, now time.Time, states []state) (leases []Lease, err error) {
	asked, err := pickAsked(ctx, p.db, p.led(), askedSize)
	if err != nil {
		return nil, err
	}
	note := func(e id.Endpoint, d []id.Delivery) {
		if i := slices.IndexFunc(states, func(s state) bool { return s.Endpoint == e }); i >= 0 {
			states[i].Leased = append(states[i].Leased, d...)
		}
	}
	for _, r := range asked {
		l := newLease(r.state(), []picked{{Delivery: r.Delivery}}, false)
		leases = append(leases, l)
		note(r.Endpoint, l.Deliveries)
	}
	ordered, err := pickInOrder(ctx, p.db, p.led(), now)
	if err != nil {
		return nil, err
	}
	for len(ordered) > 0 {
		n := 1
		for n < len(ordered) && ordered[n].Endpoint == ordered[0].Endpoint {
			n++
		}
		l := newLease(ordered[0].state(), nil, true)
		for _, r := range ordered[:n] {
			l.Deliveries = append(l.Deliveries, r.Delivery)
		}
		leases = append(leases, l)
		note(l.Endpoint, l.Deliveries)
		ordered = ordered[n:]
	}
	p.asks = len(leases) > 0
	return leases, nil
}

// shared is an id that leases of different URLs have in common.
type shared struct {
	lease      string
	deliveries int
}

// join gives a lease the id, as long as those who have it are few; else the lease's becomes the id.
func (s *shared) join(l *Lease) {
	if s.deliveries += len(l.Deliveries); s.lease == "" || s.deliveries > together {
		*s = shared{l.Lease, len(l.Deliveries)}
	}
	l.Lease = s.lease
}

func newLease(s state, rows []picked, inOrder bool) Lease {
	l := Lease{task.Deliver{More: inOrder, Organization: s.Organization, Endpoint: s.Endpoint, Lease: uuid.Must(uuid.NewV7()).String(), Run: s.Run(), InOrder: inOrder}}
	for _, r := range rows {
		l.Deliveries = append(l.Deliveries, r.Delivery)
	}
	return l
}

// Target is the URL that the deliveries of a lease go to.
type Target struct {
	URL        string
	Zone       string
	SwitchedOn bool     // deliveries that a person asked for are sent also when it is off
	Secrets    []Secret // the current one, then the one that it replaces
	From       webhook.Sender
}

// Secret is one that signs. It is opened with webhook.Service's Box and its context.
type Secret struct {
	Sealed  []byte
	Context string
	Until   time.Time // zero: it is the current one
}

// Open opens the secrets that sign at the given time, the current one first.
func (t Target) Open(ctx context.Context, box *seal.Box, now time.Time) ([]string, error) {
	secrets := make([]string, 0, len(t.Secrets))
	for _, s := range t.Secrets {
		if !s.Until.IsZero() && !s.Until.After(now) {
			continue
		}
		secret, err := box.Open(ctx, s.Sealed, s.Context)
		if err != nil {
			return nil, err
		}
		secrets = append(secrets, string(secret))
	}
	return secrets, nil
}

// WithoutSuperseded ends the retries among a URL's leased deliveries whose result the URL has accepted
// in a newer state, and returns the others. What a person asked for stays.
func WithoutSuperseded(ctx context.Context, q pg.Querier, d task.Deliver, dues []Due, now time.Time) ([]Due, error) {
	var retries []id.Delivery
	for _, due := range dues {
		if due.Number > 1 && due.Event.Type == webhook.ResultFinal {
			retries = append(retries, due.Delivery)
		}
	}
	if len(retries) == 0 {
		return dues, nil
	}
	ended, err := endSuperseded(ctx, q, d, retries, now)
	return slices.DeleteFunc(dues, func(due Due) bool { return slices.Contains(ended, due.Delivery) }), err
}

// Due is one leased delivery, ready to be attempted.
type Due struct {
	Delivery id.Delivery
	Lease    [16]byte
	Event    webhook.Stored
	Student  id.User // whom the event is about, if it is the first attempt; 0 otherwise
	Number   int     // of the entry in the journal that the attempt will be
	Run      int     // what webhook.Health's was when it was leased
	More     bool
	Tries    int // earlier attempts in this round of the schedule
}
