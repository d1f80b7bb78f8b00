package id_test

import (
	"testing"

	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
)

func TestDeliveryWireFormGoesBothWays(t *testing.T) {
	want := id.NewDelivery()
	got, err := id.ParseDelivery(want.String())
	check.NoError(check.Now(t), err, "ParseDelivery(%s) = %v, %v", want, got, err)
	check.Equal(check.Now(t), "got", got, want, "ParseDelivery(%s) = %v, %v", want, got, err)
}

func TestForeignFormsAreNotFound(t *testing.T) {
	for _, s := range []string{"", "dlv_", "evt_" + id.NewDelivery().String()[4:], "dlv_zz", "7"} {
		if _, err := id.ParseDelivery(s); fault.KindOf(err) != fault.NotFound {
			t.Errorf("ParseDelivery(%q) = %v, want not found", s, err)
		}
	}
}
