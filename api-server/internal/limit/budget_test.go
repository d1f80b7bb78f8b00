package limit

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/registrar-dev/registrar/internal/kit/check"
)

// taken is an allowance of so many bytes.
func taken(t *testing.T, b *Budget, client string, n int64) *Allowance {
	t.Helper()
	a := b.Open(client, func() {})
	check.True(check.Now(t), "there is memory", a.Take(n), "%d bytes for %s", n, client)
	return a
}

func TestMemoryIsTakenBackFromWhoHasMost(t *testing.T) {
	t.Parallel()
	b := &Budget{All: 100, Each: 60}
	worked, old, young := taken(t, b, "a", 20), taken(t, b, "a", 20), taken(t, b, "a", 20)
	check.True(t, "arrived", worked.Arrived(), "what is there is kept")
	check.False(t, "more than a share is given", b.Open("a", func() {}).Take(1), "a has 60")
	other := taken(t, b, "b", 30)
	late := taken(t, b, "c", 15) // 105 with what is taken back
	check.True(t, "taken back", old.Taken(), "the oldest of who has most")
	for name, one := range map[string]*Allowance{"what is worked on": worked, "the youngest": young, "another's": other, "the newcomer's": late} {
		check.False(t, "taken back", one.Taken(), "%s", name)
	}
	check.False(t, "what was taken back gets more", old.Take(1), "it has to end")
	check.False(t, "arrived", old.Arrived(), "it was taken back")
	check.False(t, "who would have most gets more", other.Take(30), "nobody has more")
	for _, a := range []*Allowance{worked, old, young, other, late} {
		a.Close()
	}
	whole := b.Open("d", func() {})
	check.True(t, "there is memory", whole.Take(60), "everything was given back")
}

func TestABudgetNeverGivesMoreThanItHas(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	b := &Budget{All: 1000, Each: 300}
	open := map[*Allowance]int64{}
	var cut []*Allowance
	steps := 5_000
	if testing.Short() {
		steps = 500
	}
	for range steps {
		switch random.IntN(4) {
		case 0:
			var a *Allowance
			a = b.Open(fmt.Sprint(random.IntN(20)), func() { cut = append(cut, a) })
			open[a] = 0
		case 1, 2:
			for a := range open {
				if n := random.Int64N(100); a.Take(n) {
					open[a] += n
				}
				break
			}
		case 3:
			for a := range open {
				if random.IntN(2) == 0 {
					a.Arrived()
					break
				}
				a.Close()
				delete(open, a)
				break
			}
		}
		for _, a := range cut { // they end at once
			if _, ok := open[a]; ok {
				a.Close()
				delete(open, a)
			}
		}
		cut = cut[:0]
		var used int64
		by := map[string]int64{}
		for a, n := range open {
			used += n
			by[a.member.party.client] += n
		}
		check.True(check.Now(t), "no more is given than there is", used <= b.All && used == b.used && b.freeing == 0, "%d are used, %d by its count, %d are freed", used, b.used, b.freeing)
		for client, n := range by {
			check.True(check.Now(t), "nobody has more than a share", n <= b.Each, "%s has %d", client, n)
		}
	}
	for a := range open {
		a.Close()
	}
	check.Equal(t, "addresses remembered", len(b.crowd.of)+len(b.crowd.ranked), 0, "everything is given back")
}

// What an address costs does not depend on how many others there are.
func BenchmarkBudget(bench *testing.B) {
	for _, n := range []int{100, 10_000} {
		bench.Run(fmt.Sprint(n), func(bench *testing.B) {
			b := &Budget{All: int64(n), Each: 100}
			for i := range n {
				b.Open(fmt.Sprint(i), func() {}).Take(1)
			}
			for bench.Loop() {
				a := b.Open("one", func() {})
				a.Take(1)
				a.Close()
			}
		})
	}
}
