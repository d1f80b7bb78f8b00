package gather_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/gather"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// errRefused is a failure that may be the fault of single calls; errAway is nobody's.
var errRefused, errAway = errors.New("refused"), errors.New("away")

// item is a call of a test.
type item struct {
	key string
	n   int
}

// bench is a group whose sets are what a test makes of them, and what has been done.
type bench struct {
	gather.Group[string, item, int]

	do func(ctx context.Context, of []item) error // nil: nothing fails

	mu   sync.Mutex
	sets [][]item
}

func newBench(sets, size int) *bench {
	b := &bench{}
	b.Run, b.Apart = b.run, func(err error) bool { return errors.Is(err, errRefused) }
	b.Sets, b.Size, b.Waiting, b.Limit = sets, size, 1000, time.Minute
	return b
}

func (b *bench) run(ctx context.Context, of []item) ([]int, error) {
	b.mu.Lock()
	b.sets = append(b.sets, slices.Clone(of))
	b.mu.Unlock()
	if b.do != nil {
		if err := b.do(ctx, of); err != nil {
			return nil, err
		}
	}
	answers := make([]int, len(of))
	for i, it := range of {
		answers[i] = it.n
	}
	return answers, nil
}

// made are the sets so far.
func (b *bench) made() [][]item {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.sets)
}

// call does one in a goroutine and waits until it is under way or waits.
func (b *bench) call(ctx context.Context, key string, n int) <-chan error {
	done := make(chan error, 1)
	go func() {
		got, err := b.Do(ctx, key, item{key, n})
		if err == nil && got != n {
			err = fmt.Errorf("the answer %d of another call instead of %d", got, n)
		}
		done <- err
	}()
	synctest.Wait()
	return done
}

func pause(d time.Duration) func(context.Context, []item) error {
	return func(context.Context, []item) error { time.Sleep(d); return nil }
}

func wait(t *testing.T, calls ...<-chan error) {
	t.Helper()
	for i, c := range calls {
		if err := <-c; err != nil {
			t.Errorf("call %d: %v", i, err)
		}
	}
}

func TestWhatArrivesMeanwhileGoesTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(1, 100)
		b.do = pause(time.Second)
		began := time.Now()
		wait(t, b.call(t.Context(), "a", 1), b.call(t.Context(), "a", 2), b.call(t.Context(), "b", 3), b.call(t.Context(), "a", 4))
		check.Equal(t, "the time", time.Since(began), 2*time.Second, "nothing waits for company: %v", b.made())
		check.Equal(t, "the sets", fmt.Sprint(b.made()), "[[{a 1}] [{b 3} {a 2} {a 4}]]", "")
	})
}

func TestAKeyIsInOneSetAtATime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(3, 100)
		b.do = pause(time.Second)
		a := []<-chan error{b.call(t.Context(), "a", 1), b.call(t.Context(), "a", 2)}
		time.Sleep(time.Second / 2)
		wait(t, b.call(t.Context(), "b", 3), b.call(t.Context(), "b", 4))
		wait(t, a...)
		check.Equal(t, "the sets", fmt.Sprint(b.made()), "[[{a 1}] [{b 3}] [{a 2}] [{b 4}]]", "")
	})
}

func TestKeysTakeTurnsInASet(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(1, 3)
		b.do = pause(time.Second)
		all := []<-chan error{b.call(t.Context(), "a", 0)}
		for n := range 5 {
			all = append(all, b.call(t.Context(), "many", n))
		}
		all = append(all, b.call(t.Context(), "b", 1), b.call(t.Context(), "c", 1))
		wait(t, all...)
		check.Equal(t, "the sets", fmt.Sprint(b.made()), "[[{a 0}] [{many 0} {b 1} {c 1}] [{many 1} {many 2} {many 3}] [{many 4}]]", "")
	})
}

// A caller that hangs up takes back what waits, and waits for nothing.
func TestACallerHangsUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(1, 100)
		b.do = pause(time.Second)
		gone := errors.New("gone")
		ctx, hangUp := context.WithCancelCause(t.Context())
		working, waiting, next := b.call(ctx, "a", 1), b.call(ctx, "a", 2), b.call(t.Context(), "a", 3)
		alone := b.call(ctx, "b", 4)
		hangUp(gone)
		for _, c := range []<-chan error{working, waiting, alone} {
			check.Equal(t, "the error", <-c, gone, "")
		}
		wait(t, next)
		check.Equal(t, "the sets", fmt.Sprint(b.made()), "[[{a 1}] [{a 3}]]", "")
	})
}

func TestTooManyWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(1, 100)
		b.do, b.Waiting = pause(time.Second), 2
		all := []<-chan error{b.call(t.Context(), "a", 1), b.call(t.Context(), "a", 2), b.call(t.Context(), "b", 3)}
		check.Equal(t, "what waits", b.Len(), 2, "")
		check.Equal(t, "the error", <-b.call(t.Context(), "c", 4), error(gather.ErrFull), "")
		wait(t, all...)
		wait(t, b.call(t.Context(), "c", 5))
	})
}

// One call that is refused, or that panics, fails alone. Those of its key are done in their order.
func TestOneOfThemIsRefused(t *testing.T) {
	t.Parallel()
	poisons := map[string]func() error{"refused": func() error { return errRefused }, "panics": func() error { panic("poison") }}
	for name, poison := range poisons {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := newBench(1, 100)
				b.do = func(_ context.Context, of []item) error {
					time.Sleep(time.Second)
					if slices.Contains(of, item{"a", 3}) {
						return poison()
					}
					return nil
				}
				good := []<-chan error{b.call(t.Context(), "a", 1), b.call(t.Context(), "a", 2)}
				bad := b.call(t.Context(), "a", 3)
				good = append(good, b.call(t.Context(), "a", 4), b.call(t.Context(), "b", 5))
				wait(t, good...)
				if err := <-bad; !errors.Is(err, errRefused) && !errors.Is(err, gather.ErrPanic) {
					t.Errorf("the refused call: %v", err)
				}
				wait(t, b.call(t.Context(), "a", 6))
				var a []item
				for _, set := range b.made() {
					if len(set) == 1 && set[0].key == "a" {
						a = append(a, set[0])
					}
				}
				check.Equal(t, "the single calls", fmt.Sprint(a), "[{a 1} {a 2} {a 3} {a 4} {a 6}]", "%v", b.made())
			})
		})
	}
}

func TestOneKeyIsHeldUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(1, 100)
		b.do = func(_ context.Context, of []item) error {
			held := slices.ContainsFunc(of, func(i item) bool { return i.key == "held" })
			switch several := slices.ContainsFunc(of, func(i item) bool { return i.key != of[0].key }); {
			case held && several:
				return errRefused
			case held:
				time.Sleep(time.Hour)
			default:
				time.Sleep(time.Second)
			}
			return nil
		}
		b.Limit = 2 * time.Hour
		began := time.Now()
		first := b.call(t.Context(), "a", 1)
		held, other := b.call(t.Context(), "held", 1), b.call(t.Context(), "b", 1)
		wait(t, first, other)
		later := b.call(t.Context(), "held", 2)
		wait(t, b.call(t.Context(), "b", 2), b.call(t.Context(), "a", 2))
		check.Equal(t, "the others' time", time.Since(began), 4*time.Second, "%v", b.made())
		wait(t, held, later)
	})
}

func TestAnErrorThatIsNobodysFault(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(1, 100)
		b.do = func(_ context.Context, of []item) error {
			time.Sleep(time.Second)
			if len(of) > 1 {
				return errAway
			}
			return nil
		}
		all := []<-chan error{b.call(t.Context(), "a", 1), b.call(t.Context(), "a", 2), b.call(t.Context(), "b", 3)}
		wait(t, all[0])
		check.Equal(t, "the error", <-all[1], errAway, "")
		check.Equal(t, "the error", <-all[2], errAway, "")
		check.Equal(t, "the number of sets", len(b.made()), 2, "%v", b.made())
	})
}

// Callers of many keys call as fast as they can: each gets its own answer, and those of one key are done
// one after the other.
func TestManyCallersAtOnce(t *testing.T) {
	t.Parallel()
	const keys, callers, rounds = 7, 5, 300
	b := newBench(3, 8)
	var busy [keys]atomic.Bool
	last := map[string]int{}
	var mu sync.Mutex
	b.do = func(_ context.Context, of []item) error {
		in := map[string]bool{}
		for _, it := range of {
			in[it.key] = true
		}
		for key := range in {
			if busy[key[0]-'0'].Swap(true) {
				t.Errorf("%s is in two sets", key)
			}
			defer busy[key[0]-'0'].Store(false)
		}
		mu.Lock()
		defer mu.Unlock()
		for _, it := range of {
			caller := fmt.Sprint(it.key, it.n%callers)
			if it.n/callers < last[caller] {
				t.Errorf("%s: call %d after %d", caller, it.n/callers, last[caller])
			}
			last[caller] = it.n / callers
		}
		if of[0].n%50 == 7 {
			return errRefused
		}
		return nil
	}
	var wg sync.WaitGroup
	for key := range keys {
		for caller := range callers {
			wg.Go(func() {
				for n := range rounds {
					ctx, cancel := context.WithCancel(t.Context())
					if n%10 == 3 {
						go cancel()
					}
					want := item{fmt.Sprint(key), n*callers + caller}
					got, err := b.Do(ctx, want.key, want)
					cancel()
					if err == nil && got != want.n {
						t.Errorf("%d instead of %d", got, want.n)
					}
				}
			})
		}
	}
	wg.Wait()
	if len(b.made()) >= keys*callers*rounds {
		t.Errorf("%d sets for %d calls", len(b.made()), keys*callers*rounds)
	}
}
