package lti_test

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/lti"
	"github.com/registrar-dev/registrar/internal/flow/flowtest"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/oauth1"
	"github.com/registrar-dev/registrar/internal/kit/seal/sealtest"
)

var now = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)

const address = "https://registrar.test/lti/launch/quiz/7"

// service has the organizations 1 (north) and 2 (south); north has a consumer.
func service(t *testing.T) (k lti.Service, key, secret string) {
	t.Helper()
	box := sealtest.New(t)
	f := flowtest.New(t)
	f.Organization("north")
	f.Organization("south")
	k = lti.Service{DB: f.Database, Box: box}
	c, secret, created, err := k.Renew(t.Context(), audit.Platform, 1, now)
	check.NoError(check.Now(t), err, "%v %v", created, err)
	check.True(check.Now(t), "created", created, "%v %v", created, err)
	return k, c.Key, secret
}

// launch is a good one, unsigned.
func launch(key, nonce string) url.Values {
	return url.Values{
		"lti_message_type": {"basic-lti-launch-request"}, "lti_version": {"LTI-1p0"}, "resource_link_id": {"88391-e1919"},
		"user_id": {"29123"}, "roles": {"Learner"}, "lis_person_contact_email_primary": {"ana@institute.org"},
		"lis_person_name_given": {"Ana"}, "lis_person_name_family": {"Ruiz Núñez"},
		"oauth_consumer_key": {key}, "oauth_nonce": {nonce}, "oauth_timestamp": {strconv.FormatInt(now.Unix(), 10)},
		"oauth_signature_method": {"HMAC-SHA1"}, "oauth_version": {"1.0"}, "oauth_callback": {"about:blank"},
	}
}

func sign(p url.Values, secret string) url.Values {
	p.Set("oauth_signature", oauth1.Sign("POST", address, p, secret, ""))
	return p
}

func codeOf(err error) string {
	var f *fault.Error
	if errors.As(err, &f) {
		return f.Code + " " + f.Field
	}
	return fmt.Sprint(err)
}

func TestALaunchIsGoodOnce(t *testing.T) {
	t.Parallel()
	k, key, secret := service(t)
	p := sign(launch(key, "n1"), secret)
	l, err := k.Verify(t.Context(), address, p, now)
	check.NoError(check.Now(t), err, "%+v, %v", l, err)
	check.Equal(check.Now(t), "l.Organization", l.Organization, 1, "%+v, %v", l, err)
	check.Equal(check.Now(t), "l.Email", l.Email, "ana@institute.org", "%+v, %v", l, err)
	check.Equal(check.Now(t), "l.FirstName", l.FirstName, "Ana", "%+v, %v", l, err)
	check.Equal(check.Now(t), "l.LastName", l.LastName, "Ruiz Núñez", "%+v, %v", l, err)
	check.True(check.Now(t), "it is a learner", l.Learner(), "%+v, %v", l, err)
	if _, err := k.Verify(t.Context(), address, p, now.Add(time.Minute)); codeOf(err) != "used oauth_nonce" {
		t.Errorf("a replay: %v", err)
	}
	var wg sync.WaitGroup
	results := make([]error, 8)
	p = sign(launch(key, "n2"), secret)
	for i := range results {
		wg.Go(func() { _, results[i] = k.Verify(t.Context(), address, p, now) })
	}
	wg.Wait()
	taken := 0
	for _, err := range results {
		if err == nil {
			taken++
		} else if codeOf(err) != "used oauth_nonce" {
			t.Error(err)
		}
	}
	if taken != 1 {
		t.Errorf("of a launch sent 8 times at once %d were taken", taken)
	}
}

func TestLaunchesThatAreRefused(t *testing.T) {
	t.Parallel()
	k, key, secret := service(t)
	if _, _, _, err := k.Renew(t.Context(), audit.Platform, 2, now); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func(url.Values)
		after  func(url.Values) // the signing
		secret string
		want   string
	}{
		"another secret":           {secret: "x", want: "launch_refused "},
		"an unknown key":           {change: func(p url.Values) { p.Set("oauth_consumer_key", "lti_unknown") }, want: "launch_refused "},
		"no key":                   {change: func(p url.Values) { p.Del("oauth_consumer_key") }, want: "launch_refused "},
		"changed after signing":    {after: func(p url.Values) { p.Set("lis_person_contact_email_primary", "eve@institute.org") }, want: "launch_refused "},
		"no signature":             {after: func(p url.Values) { p.Del("oauth_signature") }, want: "launch_refused "},
		"two signatures":           {after: func(p url.Values) { p.Add("oauth_signature", "x") }, want: "not_a_launch oauth_signature"},
		"a timestamp of yesterday": {change: func(p url.Values) { p.Set("oauth_timestamp", strconv.FormatInt(now.AddDate(0, 0, -1).Unix(), 10)) }, want: "not_fresh oauth_timestamp"},
		"a timestamp ahead":        {change: func(p url.Values) { p.Set("oauth_timestamp", strconv.FormatInt(now.Unix()+301, 10)) }, want: "not_fresh oauth_timestamp"},
		"no timestamp":             {change: func(p url.Values) { p.Del("oauth_timestamp") }, want: "not_fresh oauth_timestamp"},
		"no nonce":                 {change: func(p url.Values) { p.Del("oauth_nonce") }, want: "not_a_launch oauth_nonce"},
		"a long nonce":             {change: func(p url.Values) { p.Set("oauth_nonce", strings.Repeat("x", 256)) }, want: "not_a_launch oauth_nonce"},
		"plaintext":                {change: func(p url.Values) { p.Set("oauth_signature_method", "PLAINTEXT") }, want: "not_a_launch oauth_signature_method"},
		"LTI 1.3":                  {change: func(p url.Values) { p.Set("lti_version", "1.3.0") }, want: "not_a_launch lti_version"},
		"another message":          {change: func(p url.Values) { p.Set("lti_message_type", "ContentItemSelectionRequest") }, want: "not_a_launch lti_message_type"},
		"no email":                 {change: func(p url.Values) { p.Del("lis_person_contact_email_primary") }, want: "missing lis_person_contact_email_primary"},
		"broken UTF-8":             {change: func(p url.Values) { p.Set("lis_person_name_given", "\xff") }, want: "not_a_launch lis_person_name_given"},
	} {
		p := launch(key, name)
		if c.change != nil {
			c.change(p)
		}
		if c.secret == "" {
			c.secret = secret
		}
		p = sign(p, c.secret)
		if c.after != nil {
			c.after(p)
		}
		if l, err := k.Verify(t.Context(), address, p, now); codeOf(err) != c.want {
			t.Errorf("%s: %+v, %v; want %s", name, l, err, c.want)
		}
	}
	if _, err := k.Verify(t.Context(), strings.Replace(address, "/7", "/8", 1), sign(launch(key, "a"), secret), now); !errors.Is(err, lti.ErrLaunch) {
		t.Errorf("signed for another address: %v", err)
	}
	if _, err := k.Verify(t.Context(), address, sign(launch(key, "a"), secret), now); err != nil {
		t.Errorf("what was refused has used up the nonce: %v", err)
	}
}

func TestANewSecretReplacesTheOldOneAtOnce(t *testing.T) {
	t.Parallel()
	k, key, old := service(t)
	c, secret, created, err := k.Renew(t.Context(), audit.Platform, 1, now.Add(time.Hour))
	check.NoError(check.Now(t), err, "%+v %v %v", c, created, err)
	check.False(check.Now(t), "created", created, "%+v %v %v", c, created, err)
	check.Equal(check.Now(t), "c.Key", c.Key, key, "%+v %v %v", c, created, err)
	check.True(check.Now(t), "the secret is another", secret != old, "%+v %v %v", c, created, err)
	check.True(check.Now(t), "it was created now", c.CreatedAt.Equal(now), "%+v %v %v", c, created, err)
	check.Equal(check.Now(t), "c.Version", c.Version, 2, "%+v %v %v", c, created, err)
	if _, err := k.Verify(t.Context(), address, sign(launch(key, "a"), old), now); !errors.Is(err, lti.ErrLaunch) {
		t.Errorf("the old secret: %v", err)
	}
	if _, err := k.Verify(t.Context(), address, sign(launch(key, "a"), secret), now); err != nil {
		t.Errorf("the new secret: %v", err)
	}
	var sealed []byte
	if err := k.DB.QueryRow(t.Context(), `SELECT sealed FROM lti_consumers`).Scan(&sealed); check.NoError(t, err, "the secret is stored as it is (%v)", err) {
		check.Lacks(t, "the stored secret", string(sealed), secret, "the secret is stored as it is (%v)", err)
	}
	if err := k.Remove(t.Context(), audit.Platform, 1, now); err != nil {
		t.Fatal(err)
	}
	if _, err := k.Verify(t.Context(), address, sign(launch(key, "b"), secret), now); !errors.Is(err, lti.ErrLaunch) {
		t.Errorf("after the removal: %v", err)
	}
	if _, err := k.Find(t.Context(), 1); fault.KindOf(err) != fault.NotFound {
		t.Error(err)
	}
	if err := k.Remove(t.Context(), audit.Platform, 1, now); fault.KindOf(err) != fault.NotFound {
		t.Error(err)
	}
}

func TestNoncesAreForgottenWhenTheirLaunchIsOver(t *testing.T) {
	t.Parallel()
	k, key, secret := service(t)
	if _, err := k.Verify(t.Context(), address, sign(launch(key, "a"), secret), now); err != nil {
		t.Fatal(err)
	}
	remembered := func(after time.Duration) (n int) {
		t.Helper()
		if err := lti.DropUsedNonces(t.Context(), k.DB, now.Add(after)); err != nil {
			t.Fatal(err)
		}
		if err := k.DB.QueryRow(t.Context(), `SELECT count(*) FROM lti_nonces`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	if remembered(10*time.Minute) != 1 {
		t.Error("a nonce is forgotten while its timestamp may still be taken")
	}
	if remembered(16*time.Minute) != 0 {
		t.Error("a nonce is remembered for ever")
	}
}

func TestRolesAndNames(t *testing.T) {
	t.Parallel()
	for roles, want := range map[string]bool{"": true, "Learner": true, "urn:lti:role:ims/lis/Learner": true, "Instructor,Learner": true,
		"urn:lti:instrole:ims/lis/Student": true, "urn:lti:role:ims/lis/Learner/NonCreditLearner": true,
		"Instructor": false, "urn:lti:role:ims/lis/TeachingAssistant": false, "Administrator, urn:lti:sysrole:ims/lis/SysAdmin": false} {
		l := lti.Launch{}
		if roles != "" {
			l.Roles = strings.Split(roles, ",")
		}
		if l.Learner() != want {
			t.Errorf("%q is a learner: %v", roles, !want)
		}
	}
	k, key, secret := service(t)
	for i, c := range []struct{ given, family, full, first, last string }{
		{"", "", "Ana María Ruiz", "Ana", "María Ruiz"}, {"", "", "", "ana", ""}, {" Ana\n ", "Ruiz", "x y", "Ana", "Ruiz"},
		{strings.Repeat("á", 200), "", "", strings.Repeat("á", 150), ""},
	} {
		p := launch(key, fmt.Sprint(i))
		p.Set("lis_person_name_given", c.given)
		p.Set("lis_person_name_family", c.family)
		p.Set("lis_person_name_full", c.full)
		if l, err := k.Verify(t.Context(), address, sign(p, secret), now); check.NoError(t, err, "%+v: %+v, %v", c, l, err) &&
			check.Equal(t, "l.FirstName", l.FirstName, c.first, "%+v: %+v, %v", c, l, err) {
			check.Equal(t, "l.LastName", l.LastName, c.last, "%+v: %+v, %v", c, l, err)
		}
	}
}
