package id_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
)

func TestDeliveryWireFormGoesBothWays(t *testing.T) {
	want := id.NewDelivery(time.Now())
	got, err := id.ParseDelivery(want.String())
	check.NoError(check.Now(t), err, "ParseDelivery(%s) = %v, %v", want, got, err)
	check.Equal(check.Now(t), "got", got, want, "ParseDelivery(%s) = %v, %v", want, got, err)
}

func TestForeignFormsAreNotFound(t *testing.T) {
	for _, s := range []string{"", "dlv_", "evt_" + id.NewDelivery(time.Now()).String()[4:], "dlv_zz", "7"} {
		if _, err := id.ParseDelivery(s); fault.KindOf(err) != fault.NotFound {
			t.Errorf("ParseDelivery(%q) = %v, want not found", s, err)
		}
	}
}

// An id carries the time that it is drawn for, whatever the machine's clock says; partitions and
// retention go by it.
func TestIdsAreOfTheirTime(t *testing.T) {
	for _, at := range []time.Time{
		time.Date(2028, 2, 29, 23, 59, 59, 999_999_999, time.UTC),
		time.Date(1997, 1, 1, 0, 0, 0, 0, time.UTC),
		time.Date(9998, 12, 31, 23, 59, 59, 0, time.UTC),
	} {
		u := uuid.UUID(id.NewEvent(at))
		seconds, nanos := u.Time().UnixTime()
		check.Equal(t, "time", time.Unix(seconds, nanos).UnixMilli(), at.UnixMilli(), "%s", u)
		check.Equal(t, "version", u.Version(), 7, "%s", u)
		check.Equal(t, "variant", u.Variant(), uuid.RFC4122, "%s", u)
	}
}

func TestIdsAreInTheOrderOfTheirTimesAndOfDrawing(t *testing.T) {
	start := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	var last id.Event
	for n := range 10_000 {
		next := id.NewEvent(start.Add(time.Duration(n/1000) * time.Microsecond)) // a thousand for each time
		if bytes.Compare(last[:], next[:]) >= 0 {
			t.Fatalf("id %d, %s, is not behind %s", n, next, last)
		}
		last = next
	}
}
