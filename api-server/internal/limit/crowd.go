package limit

import (
	"container/heap"
	"container/list"
)

// crowd is what may be taken back, by the address that has it. What it does costs the same however
// many there are, but for the logarithm: attackers decide how many.
type crowd[T any] struct {
	of     map[string]*party[T]
	ranked parties[T]
}

// party is what one address has.
type party[T any] struct {
	client  string
	held    int64     // of all that it has
	loose   int64     // of it, what may be taken back
	members list.List // what may be taken back, the oldest first
	count   int       // of all that it has
	index   int
}

// member is one thing of a party's; its weight counts for held, and while it is loose for that, too.
type member[T any] struct {
	party   *party[T]
	value   T
	weight  int64
	element *list.Element // nil: it may not be taken back
}

func (c *crowd[T]) party(client string) *party[T] {
	if c.of == nil {
		c.of = map[string]*party[T]{}
	}
	p := c.of[client]
	if p == nil {
		p = &party[T]{client: client}
		c.of[client] = p
		heap.Push(&c.ranked, p)
	}
	return p
}

// join adds a thing that may be taken back.
func (c *crowd[T]) join(client string, value T, weight int64) *member[T] {
	m := &member[T]{party: c.party(client), value: value}
	m.party.count++
	c.loosen(m)
	c.grow(m, weight)
	return m
}

func (c *crowd[T]) grow(m *member[T], by int64) {
	m.weight += by
	m.party.held += by
	if m.element != nil {
		m.party.loose += by
		heap.Fix(&c.ranked, m.party.index)
	}
}

// loosen lets the thing be taken back, as the newest.
func (c *crowd[T]) loosen(m *member[T]) {
	if m.element != nil {
		m.party.members.MoveToBack(m.element)
		return
	}
	m.element = m.party.members.PushBack(m)
	m.party.loose += m.weight
	heap.Fix(&c.ranked, m.party.index)
}

// secure keeps the thing from being taken back.
func (c *crowd[T]) secure(m *member[T]) {
	if m.element == nil {
		return
	}
	m.party.members.Remove(m.element)
	m.element = nil
	m.party.loose -= m.weight
	heap.Fix(&c.ranked, m.party.index)
}

func (c *crowd[T]) leave(m *member[T]) {
	c.secure(m)
	p := m.party
	p.held -= m.weight
	p.count--
	m.weight = 0
	c.forget(p)
}

// forget drops the party when it has nothing.
func (c *crowd[T]) forget(p *party[T]) {
	if p.count == 0 {
		delete(c.of, p.client)
		heap.Remove(&c.ranked, p.index)
	}
}

// most is the party with the most that can be taken back; nil when nobody has any.
func (c *crowd[T]) most() *party[T] {
	if len(c.ranked) == 0 || c.ranked[0].members.Len() == 0 {
		return nil
	}
	return c.ranked[0]
}

// oldest is what the party would lose first; nil when it has nothing to lose.
func (p *party[T]) oldest() *member[T] {
	if front := p.members.Front(); front != nil {
		m, _ := front.Value.(*member[T])
		return m
	}
	return nil
}

// parties implements heap.Interface: who could lose most is first.
type parties[T any] []*party[T]

func (p parties[T]) Len() int           { return len(p) }
func (p parties[T]) Less(i, j int) bool { return p[i].loose > p[j].loose }
func (p parties[T]) Swap(i, j int) {
	p[i], p[j] = p[j], p[i]
	p[i].index, p[j].index = i, j
}

func (p *parties[T]) Push(x any) {
	one, _ := x.(*party[T])
	one.index = len(*p)
	*p = append(*p, one)
}

func (p *parties[T]) Pop() any {
	last := len(*p) - 1
	one := (*p)[last]
	(*p)[last] = nil
	*p = (*p)[:last]
	return one
}
