package limit

import "sync"

// Budget is the memory that requests may take until they are answered: so many bytes in all, and so
// many for one client address. While all of it is taken, an address gets what it needs from the one
// that has most in requests that are still arriving: many who send slowly are in each other's way, and
// in nobody else's.
type Budget struct {
	All, Each int64

	mu      sync.Mutex
	used    int64
	freeing int64 // of that, what was taken back and will soon be given
	crowd   crowd[*Allowance]
}

// Allowance is what one request has of a Budget.
type Allowance struct {
	budget *Budget
	member *member[*Allowance]
	cut    func()
	taken  bool
}

// Open begins an allowance of nothing. cut is called, once at most, when it is taken back: the
// request then has to end soon, with Close. cut must not block or call the Budget.
func (b *Budget) Open(client string, cut func()) *Allowance {
	a := &Allowance{budget: b, cut: cut}
	b.mu.Lock()
	defer b.mu.Unlock()
	a.member = b.crowd.join(client, a, 0)
	return a
}

// Take takes n bytes more; false where the address has its share, or nobody has more than it.
func (a *Allowance) Take(n int64) bool {
	b := a.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	mine := a.member.party
	if a.taken || mine.held+n > b.Each || n > b.All {
		return false
	}
	for b.used-b.freeing+n > b.All {
		most := b.crowd.most()
		if most == nil || most.loose <= mine.held+n {
			return false
		}
		most.oldest().value.takeBack()
	}
	b.used += n
	b.crowd.grow(a.member, n)
	return true
}

func (a *Allowance) takeBack() {
	b := a.budget
	a.taken = true
	b.freeing += a.member.weight
	b.crowd.secure(a.member)
	a.cut()
}

// Taken says whether it was taken back.
func (a *Allowance) Taken() bool {
	a.budget.mu.Lock()
	defer a.budget.mu.Unlock()
	return a.taken
}

// Arrived keeps the allowance until Close; false when it was taken back before.
func (a *Allowance) Arrived() bool {
	a.budget.mu.Lock()
	defer a.budget.mu.Unlock()
	if !a.taken {
		a.budget.crowd.secure(a.member)
	}
	return !a.taken
}

// Close gives everything back.
func (a *Allowance) Close() {
	b := a.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used -= a.member.weight
	if a.taken {
		b.freeing -= a.member.weight
	}
	b.crowd.leave(a.member)
}
