package lti

import (
	"context"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/oauth1"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// freshness is how far a launch's timestamp may be from now, either way; nonceLife how
// long a nonce is remembered, which is more than twice that.
const (
	freshness = 5 * time.Minute
	nonceLife = 15 * time.Minute
)

const maxNonce = 255

// Launch is what an LMS says about the person who opened a link in it.
type Launch struct {
	Organization id.Organization
	Email        string
	FirstName    string
	LastName     string
	Roles        []string
}

// Learner says whether the launch is a student's: somebody without a role, or with a learner's
// role, whatever other roles there are.
func (l Launch) Learner() bool {
	return len(l.Roles) == 0 || slices.ContainsFunc(l.Roles, func(r string) bool {
		r = strings.ToLower(r)
		return strings.Contains(r, "learner") || strings.Contains(r, "student")
	})
}

// ErrLaunch is the same for all launches that no known LMS signed, so that it reveals nothing.
var ErrLaunch = fault.New(fault.Unauthenticated, "launch_refused",
	"the launch was not signed with the consumer key and secret of an organization; check both in the LMS, and that the address is exactly the one of the catalog")

// Verify reads a launch that was posted to address with the parameters of its query and
// form, and stores its nonce, so that it is accepted once. Invalid when it is no LTI 1.1 launch,
// its timestamp is not fresh, its nonce was used or the learner's address is missing;
// Unauthenticated (ErrLaunch) for a wrong key or signature.
func (k Service) Verify(ctx context.Context, address string, params url.Values, now time.Time) (Launch, error) {
	if err := checkForm(params); err != nil {
		return Launch{}, err
	}
	c, err := selectByKey(ctx, k.DB, params.Get("oauth_consumer_key"))
	if pg.None(err) {
		return Launch{}, ErrLaunch
	}
	if err != nil {
		return Launch{}, err
	}
	secret, err := k.Box.Open(ctx, c.sealed, c.boundTo())
	if err != nil {
		return Launch{}, err
	}
	if !oauth1.Verify(params.Get("oauth_signature"), "POST", address, params, string(secret), "") {
		return Launch{}, ErrLaunch
	}
	if err := k.checkFresh(ctx, c.Organization, params, now); err != nil {
		return Launch{}, err
	}
	return launchOf(c.Organization, params)
}

// checkForm checks what does not depend on the signature.
func checkForm(params url.Values) error {
	want := func(name string, values ...string) error {
		if !slices.Contains(values, params.Get(name)) {
			return fault.Field(name, "not_a_launch", "%s: this is no LTI 1.1 launch; it must be %s", name, values[0])
		}
		return nil
	}
	var faults fault.List
	_ = faults.Add(want("lti_message_type", "basic-lti-launch-request"))
	_ = faults.Add(want("lti_version", "LTI-1p0"))
	_ = faults.Add(want("oauth_signature_method", "HMAC-SHA1"))
	_ = faults.Add(want("oauth_version", "1.0", ""))
	for name, values := range params {
		if strings.HasPrefix(name, "oauth_") && len(values) > 1 {
			_ = faults.Add(fault.Field(name, "not_a_launch", "%s: sent twice", name))
		}
		if !utf8.ValidString(name + strings.Join(values, "")) {
			_ = faults.Add(fault.Field(name, "not_a_launch", "the form is not UTF-8"))
		}
	}
	if nonce := params.Get("oauth_nonce"); nonce == "" || len(nonce) > maxNonce || strings.ContainsRune(nonce, 0) {
		_ = faults.Add(fault.Field("oauth_nonce", "not_a_launch", "oauth_nonce: send 1 to %d characters", maxNonce))
	}
	return faults.Err()
}

// checkFresh refuses replayed launches.
func (k Service) checkFresh(ctx context.Context, org id.Organization, params url.Values, now time.Time) error {
	seconds, err := strconv.ParseInt(params.Get("oauth_timestamp"), 10, 64)
	if at := time.Unix(seconds, 0); err != nil || at.Before(now.Add(-freshness)) || at.After(now.Add(freshness)) {
		return fault.Field("oauth_timestamp", "not_fresh",
			"oauth_timestamp: the launch is older than %d minutes, or the clock of the LMS is wrong; open the link in the LMS again", int(freshness.Minutes()))
	}
	fresh, err := insertNonce(ctx, k.DB, org, params.Get("oauth_nonce"), now)
	if err == nil && !fresh {
		err = fault.Field("oauth_nonce", "used", "oauth_nonce: this launch was used already; open the link in the LMS again")
	}
	return err
}

func launchOf(org id.Organization, params url.Values) (Launch, error) {
	l := Launch{Organization: org, Email: strings.TrimSpace(params.Get("lis_person_contact_email_primary")),
		FirstName: Tidy(params.Get("lis_person_name_given")), LastName: Tidy(params.Get("lis_person_name_family"))}
	for role := range strings.SplitSeq(params.Get("roles"), ",") {
		if role = strings.TrimSpace(role); role != "" {
			l.Roles = append(l.Roles, role)
		}
	}
	if l.Email == "" {
		return Launch{}, fault.Field("lis_person_contact_email_primary", "missing",
			"the LMS did not send the learner's email address; switch on sharing it in the LMS's settings of this tool")
	}
	if l.FirstName == "" {
		first, last, _ := strings.Cut(Tidy(params.Get("lis_person_name_full")), " ")
		l.FirstName = first
		if l.LastName == "" {
			l.LastName = last
		}
	}
	if l.FirstName == "" {
		l.FirstName, _, _ = strings.Cut(l.Email, "@")
	}
	return l, nil
}

// maxName is in characters (reference: limits#fields).
const maxName = 150

// Tidy makes a name one line of at most 150 characters.
func Tidy(name string) string {
	runes := []rune(strings.Join(strings.FieldsFunc(name, func(r rune) bool { return r <= ' ' || r == 0x7f }), " "))
	return strings.TrimSpace(string(runes[:min(len(runes), maxName)]))
}

// DropUsedNonces deletes the nonces of launches whose timestamp is no longer accepted.
func DropUsedNonces(ctx context.Context, q pg.Querier, now time.Time) error {
	return deleteNonces(ctx, q, now.Add(-nonceLife))
}
