package reconcile

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgconn"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/operator/api/v1beta1"
)

func TestEveryKindOfFaultHasAVerdict(t *testing.T) {
	want := map[fault.Kind]struct {
		reason  string
		retried bool
	}{
		fault.Internal:        {v1beta1.ReasonReconcileError, true},
		fault.Invalid:         {v1beta1.ReasonInvalidSpec, false},
		fault.Unauthenticated: {v1beta1.ReasonReconcileError, true},
		fault.Forbidden:       {v1beta1.ReasonReconcileError, true},
		fault.NotFound:        {"", true},
		fault.Conflict:        {v1beta1.ReasonReconcileError, true},
		fault.TooLarge:        {v1beta1.ReasonReconcileError, true},
		fault.Unavailable:     {v1beta1.ReasonDatabaseUnavailable, true},
	}
	for _, kind := range fault.Kinds() {
		w, known := want[kind]
		if !known {
			t.Errorf("%s has no row", kind)
		}
		wantVerdict(t, kind.String(), fault.New(kind, "some_code", "some text"), w.reason, w.retried)
	}
}

func TestFaultsThatHaveAReason(t *testing.T) {
	wantVerdict(t, "nothing", nil, "", false)
	wantVerdict(t, "no fault", errors.New("surprise"), v1beta1.ReasonReconcileError, true)
	secrets := schema.GroupResource{Resource: "secrets"}
	wantVerdict(t, "quota, admission, RBAC", apierrors.NewForbidden(secrets, "x", errors.New("exceeded quota")), v1beta1.ReasonReconcileError, true)
	wantVerdict(t, "an admission webhook that fails", apierrors.NewInternalError(errors.New("failed calling webhook")), v1beta1.ReasonReconcileError, true)
	wantVerdict(t, "an old copy", apierrors.NewConflict(secrets, "x", nil), "", true)
	wantVerdict(t, "an API server that is away", &url.Error{Op: "Get", URL: "https://kubernetes", Err: errors.New("refused")}, "", true)
	wantVerdict(t, "an API server that is busy", apierrors.NewTooManyRequests("later", 1), "", true)
	wantVerdict(t, "the operator ends", context.Canceled, "", true)
	wantVerdict(t, "away", &pgconn.PgError{Code: "57P01"}, v1beta1.ReasonDatabaseUnavailable, true)
	wantVerdict(t, "limit", fault.New(fault.Conflict, "url_limit", "ten"), v1beta1.ReasonURLLimitReached, false)
	wantVerdict(t, "taken", fault.New(fault.Conflict, "url_exists", "there"), v1beta1.ReasonURLInUse, false)
	wantVerdict(t, "private", fault.Field("url", "address_not_public", "no"), v1beta1.ReasonAddressRefused, false)
	wantVerdict(t, "secret", fault.Field("signing_secret", "invalid_secret", "no"), v1beta1.ReasonSecretInvalid, false)
	wantVerdict(t, "step", refuse(v1beta1.ReasonSecretNotFound, "none"), v1beta1.ReasonSecretNotFound, false)
}

func TestErrorsAreExplained(t *testing.T) {
	for name, c := range map[string]struct {
		err   error
		says  string
		hides string
	}{
		"Kubernetes": {fmt.Errorf("creating: %w", apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "x", errors.New("exceeded quota"))), "exceeded quota", "creating"},
		"a fault":    {fault.New(fault.TooLarge, "some_code", "too much of it"), "too much of it", "log"},
		"inside":     {errors.New("relation does not exist"), "its log says why", "relation"},
		"our fault":  {fault.New(fault.Internal, "some_code", "relation does not exist"), "its log says why", "relation"},
		"very long":  {fault.New(fault.TooLarge, "some_code", "%s", strings.Repeat("é", maxMessage)), "é", "log"},
	} {
		got := explain(c.err)
		check.Contains(t, "the message", got, c.says, "%s", name)
		check.False(t, "the message has what nobody is told", strings.Contains(got, c.hides), "%s: %s", name, got)
		check.True(t, "the message is short", len(got) <= maxMessage && utf8.ValidString(got), "%s", name)
	}
	for code := range conflicts {
		v := judge(fault.New(fault.Conflict, code, "some text"))
		check.True(t, "it waits", v.refusal.waits, "%s resolves itself", code)
	}
}

// A PostgreSQL that is frozen gives no error of its own.
func TestWhatIsLateIsPostgreSQL(t *testing.T) {
	late := fmt.Errorf("begin: %w", context.DeadlineExceeded)
	for name, c := range map[string]struct {
		err  error
		want bool
	}{
		"the visit's time":       {late, true},
		"known not to answer":    {errFailing, true},
		"a lost server":          {&pgconn.PgError{Code: "57P01"}, true},
		"Kubernetes' time":       {&url.Error{Op: "Get", URL: "https://kubernetes", Err: late}, false},
		"the operator is to end": {context.Canceled, false},
		"something else":         {errors.New("surprise"), false},
	} {
		check.Equal(t, "PostgreSQL is away", away(c.err), c.want, "%s", name)
	}
}

func wantVerdict(t *testing.T, name string, err error, reason string, retried bool) {
	t.Helper()
	v := judge(err)
	got := ""
	if v.refusal != nil {
		got = v.refusal.reason
	}
	check.Equal(t, "reason", got, reason, "%s", name)
	check.Equal(t, "it is tried again", v.retry != nil, retried, "%s", name)
}

func TestTransitionsThatAreTold(t *testing.T) {
	on := &webhook.Endpoint{SwitchedOn: true}
	off := &webhook.Endpoint{SwitchedOffReason: "50 failed attempts in a row."}
	suspended := &webhook.Endpoint{SwitchedOffReason: offSuspended}
	limit := &refusal{reason: v1beta1.ReasonURLLimitReached, message: "ten"}
	of := func(e *webhook.Endpoint, refused *refusal) []metav1.Condition {
		var c condition
		if refused != nil {
			c = refused.condition()
		} else {
			c = readiness(e)
		}
		return []metav1.Condition{{Type: v1beta1.ConditionReady, Status: c.status, Reason: c.reason, Message: c.message}}
	}
	var none []metav1.Condition
	endpoints := new(Reconciler).endpoints()
	for name, c := range map[string]struct {
		from, to     []metav1.Condition
		kind, reason string
	}{
		"registered":   {none, of(on, nil), normal, "Registered"},
		"nothing new":  {of(on, nil), of(on, nil), "", ""},
		"still off":    {of(off, nil), of(off, nil), "", ""},
		"switched off": {of(on, nil), of(off, nil), warning, "SwitchedOff"},
		"turned on":    {of(off, nil), of(on, nil), normal, "TurnedOn"},
		"suspended":    {of(on, nil), of(suspended, nil), normal, "Suspended"},
		"resumed":      {of(suspended, nil), of(on, nil), normal, "Resumed"},
		"refused":      {none, of(nil, limit), warning, "URLLimitReached"},
		"recovered":    {of(nil, limit), of(on, nil), normal, "Registered"},
	} {
		h, notified := endpoints.transition(c.from, c.to)
		check.Equal(t, "there is an Event", notified, c.reason != "", "%s: %+v", name, h)
		check.Equal(t, "kind", h.kind, c.kind, "%s", name)
		check.Equal(t, "reason", h.reason, c.reason, "%s", name)
	}
}

func TestAResourceIsVisitedWhenSomethingIsDue(t *testing.T) {
	now := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	for what, c := range map[string]struct {
		next time.Time
		want time.Duration
	}{
		"nothing":        {time.Time{}, time.Hour},
		"soon":           {now.Add(time.Minute), time.Minute},
		"later":          {now.Add(2 * time.Hour), time.Hour},
		"long ago":       {now.Add(-time.Hour), firstRetry},
		"at this moment": {now, firstRetry},
	} {
		check.Equal(t, "the pause", pause(time.Hour, now, c.next), c.want, "%s is due", what)
	}
}
