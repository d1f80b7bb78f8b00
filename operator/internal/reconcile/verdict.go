package reconcile

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/operator/api/v1beta1"
)

// refusal is why a resource cannot be Ready. Trying again at once would not help.
type refusal struct {
	reason  string // of the condition
	message string
	waits   bool // it may resolve itself; otherwise a person has to act
}

func (r *refusal) Error() string { return r.message }

// condition is what Ready says of it.
func (r *refusal) condition() condition {
	return condition{metav1.ConditionFalse, r.reason, r.message, !r.waits}
}

// refuse makes a refusal that a person has to resolve.
func refuse(reason, format string, args ...any) error {
	return &refusal{reason: reason, message: fmt.Sprintf(format, args...)}
}

// waitFor makes a refusal that ends when something else happens.
func waitFor(reason, format string, args ...any) error {
	return &refusal{reason: reason, message: fmt.Sprintf(format, args...), waits: true}
}

// verdict is the meaning of a step's error: a refusal for the conditions, an error to retry
// after, or both.
type verdict struct {
	refusal *refusal
	retry   error
}

// errFailing is the error of a visit that does not ask a PostgreSQL that has not answered others.
var errFailing = errors.New("PostgreSQL does not answer")

// away says whether err means that PostgreSQL cannot be used now. One that is frozen does not fail: the time
// of the visit ends. Where Kubernetes has used it up, the error is an url.Error.
func away(err error) bool {
	var ofKubernetes *url.Error
	late := errors.Is(err, context.DeadlineExceeded) && !errors.As(err, &ofKubernetes)
	return late || pg.Away(err) || errors.Is(err, errFailing)
}

// judge maps the kinds of faults to verdicts.
func judge(err error) verdict {
	var refused *refusal
	var f *fault.Error
	switch {
	case err == nil:
		return verdict{}
	case errors.As(err, &refused):
		return verdict{refusal: refused}
	case away(err), fault.KindOf(err) == fault.Unavailable:
		return verdict{refusal: &refusal{reason: v1beta1.ReasonDatabaseUnavailable, waits: true,
			message: "PostgreSQL does not answer; the operator tries again by itself."}, retry: err}
	case passes(err):
		return verdict{retry: err}
	case !errors.As(err, &f):
		return failed(err)
	}
	switch f.Kind {
	case fault.Invalid:
		return verdict{refusal: &refusal{reason: invalidReason(f), message: f.Message}}
	case fault.Conflict:
		if reason, known := conflicts[f.Code]; known {
			return verdict{refusal: &refusal{reason: reason, message: f.Message, waits: true}}
		}
	case fault.NotFound: // an endpoint or organization that was removed during the visit
		return verdict{retry: err}
	case fault.Internal, fault.Unauthenticated, fault.Forbidden, fault.TooLarge, fault.Unavailable:
	}
	return failed(err)
}

// failed is the verdict on an error that nothing here expects: it is shown, and tried again.
func failed(err error) verdict {
	return verdict{refusal: &refusal{reason: v1beta1.ReasonReconcileError, waits: true, message: explain(err)}, retry: err}
}

// passes says whether err is that of an old copy of a resource, of an API server that does not answer, or of an
// operator that ends. There is nothing to show, or no way to do so.
func passes(err error) bool {
	var unreachable *url.Error
	return apierrors.IsConflict(err) || apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err) || apierrors.IsTooManyRequests(err) ||
		apierrors.IsServiceUnavailable(err) || errors.As(err, &unreachable) || errors.Is(err, context.Canceled)
}

const maxMessage = 2000

// explain is the text of an error for whoever reads a resource. What went wrong inside is in the log alone.
func explain(err error) string {
	message := "The operator has failed; its log says why. It tries again by itself."
	var refused apierrors.APIStatus
	var f *fault.Error
	switch {
	case errors.As(err, &refused):
		message = "Kubernetes refuses what the operator has to do: " + refused.Status().Message
	case errors.As(err, &f) && f.Kind != fault.Internal:
		message = f.Message
	}
	return strings.ToValidUTF8(message[:min(len(message), maxMessage)], "")
}

// conflicts are the states in which what spec says cannot be. Each ends when something else changes.
var conflicts = map[string]string{
	"url_limit":            v1beta1.ReasonURLLimitReached,
	"url_exists":           v1beta1.ReasonURLInUse,
	"organization_managed": v1beta1.ReasonSlugInUse,
	"source_managed":       v1beta1.ReasonSourceInUse,
	"last_owner":           v1beta1.ReasonLastOwner,
	"break_glass":          v1beta1.ReasonLastOwner,
	"switched_off":         v1beta1.ReasonURLSwitchedOff,
	"recovery_running":     v1beta1.ReasonReplayRunning,
}

func invalidReason(f *fault.Error) string {
	switch {
	case f.Code == "address_not_public":
		return v1beta1.ReasonAddressRefused
	case f.Field == "signing_secret":
		return v1beta1.ReasonSecretInvalid
	}
	return v1beta1.ReasonInvalidSpec
}

// waitsForOthers are the reasons that end when another URL or organization changes.
// PostgreSQL's notifications do not say which resources that concerns.
var waitsForOthers = map[string]bool{
	v1beta1.ReasonURLLimitReached:      true,
	v1beta1.ReasonURLInUse:             true,
	v1beta1.ReasonOrganizationNotFound: true,
	v1beta1.ReasonSlugInUse:            true,
	v1beta1.ReasonSourceInUse:          true,
	v1beta1.ReasonLastOwner:            true,
	v1beta1.ReasonSandboxNotFound:      true,
	v1beta1.ReasonEndpointNotFound:     true,
	v1beta1.ReasonURLSwitchedOff:       true,
	v1beta1.ReasonReplayRunning:        true,
}

// recheck bounds how long a refused resource waits when a notification was missed.
const recheck = time.Minute
