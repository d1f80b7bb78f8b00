package fault_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/fault"
)

func TestKindOfWrappedFault(t *testing.T) {
	err := fmt.Errorf("outer: %w", fault.Field("email", "missing", "email is required"))
	if got := fault.KindOf(err); got != fault.Invalid {
		t.Fatalf("kind = %v, want invalid", got)
	}
	check.True(check.Now(t), "the fault has its code", fault.Has(err, "missing"), "Has does not find the code")
	check.False(check.Now(t), "the fault has another code", fault.Has(err, "other"), "Has does not find the code")
	if got := fault.KindOf(errors.New("boom")); got != fault.Internal {
		t.Fatalf("kind of a plain error = %v, want internal", got)
	}
}

func TestBecauseHidesTheCause(t *testing.T) {
	cause := errors.New("pq: secret detail")
	err := fault.New(fault.Unavailable, "busy", "try again later").Because(cause)
	if err.Error() != "try again later" {
		t.Fatalf("text = %q", err.Error())
	}
	if !errors.Is(err, cause) {
		t.Fatal("the cause is lost")
	}
}

func TestListKeepsOrderAndReturnsStrangers(t *testing.T) {
	var l fault.List
	if l.Err() != nil {
		t.Fatal("an empty list is an error")
	}
	stranger := errors.New("stranger")
	if err := l.Add(stranger); !errors.Is(err, stranger) {
		t.Fatalf("stranger = %v", err)
	}
	_ = l.Add(fault.Field("a", "one", "a is wrong"))
	_ = l.Add(fault.Field("b", "two", "b is wrong"))
	var e *fault.Error
	check.True(check.Now(t), "the error is a fault", errors.As(l.Err(), &e), "list = %+v", e)
	check.Equal(check.Now(t), "e.Field", e.Field, "a", "list = %+v", e)
	check.Equal(check.Now(t), "number of faults", len(e.All()), 2, "list = %+v", e)
	check.Equal(check.Now(t), "the second fault's field", e.All()[1].Field, "b", "list = %+v", e)
}

func TestListKeepsTheFirstFaultsAlone(t *testing.T) {
	var many, l fault.List
	for i := range 3 * fault.Most {
		_ = many.Add(fault.Field(fmt.Sprint(i), "one", "%d is wrong", i))
	}
	_ = l.Add(fault.Field("first", "one", "first is wrong"))
	_ = l.Add(many.Err())
	var e *fault.Error
	check.True(check.Now(t), "the error is a fault", errors.As(l.Err(), &e), "%d faults", len(e.All()))
	check.Equal(check.Now(t), "number of faults", len(e.All()), fault.Most, "%d faults", len(e.All()))
	check.Equal(check.Now(t), "e.Field", e.Field, "first", "%d faults", len(e.All()))
	check.Equal(check.Now(t), "the last fault's field", e.All()[fault.Most-1].Field, fmt.Sprint(fault.Most-2), "%d faults", len(e.All()))
	check.False(check.Now(t), "there are more faults", l.Has(fmt.Sprint(fault.Most)), "%d faults", len(e.All()))
}

func TestEveryKindHasItsOwnName(t *testing.T) {
	seen := map[string]bool{}
	for _, k := range fault.Kinds() {
		if seen[k.String()] {
			t.Fatalf("two kinds are called %q", k)
		}
		seen[k.String()] = true
	}
	if len(seen) != 8 {
		t.Fatalf("%d kinds, want 8", len(seen))
	}
}

func TestACopyOfAListIsItsOwn(t *testing.T) {
	var l fault.List
	_ = l.Add(fault.Field("a", "one", "a: first"))
	for range 2 { // each begins with what the list had
		c := l.Copy()
		_ = c.Add(fault.Field("b", "two", "b: second"))
		check.True(check.Now(t), "the copy has the first", c.Has("a"), "%v, %v", c.Err(), l.Err())
		check.True(check.Now(t), "the copy has the second", c.Has("b"), "%v, %v", c.Err(), l.Err())
		check.False(check.Now(t), "the list has the second", l.Has("b"), "%v, %v", c.Err(), l.Err())
	}
}
