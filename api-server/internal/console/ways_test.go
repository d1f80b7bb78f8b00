package console_test

import (
	"fmt"
	"html"
	"math/rand/v2"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pquerna/otp/totp"

	"github.com/registrar-dev/registrar/internal/domain/factor/factortest"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/seal"
)

// ways is a site whose policies and people change at random, and what should be open to whom.
type ways struct {
	*site
	t      *testing.T
	r      *rand.Rand
	liar   *liar
	people map[string]*wayfarer
	order  []string

	factors  bool // demanded of all roles, without days of grace
	provider bool // demanded; olive and otto need not
	seats    []seat
	steps    []string
}

// wayfarer is one of the staff.
type wayfarer struct {
	active   bool
	password string
	seeds    []string // of authenticator apps
	used     map[string]bool
	recovery []string
	device   *factortest.Device
}

func (w *wayfarer) hasFactor() bool { return len(w.seeds) > 0 || w.device != nil }

// seat is a browser in which somebody is signed in.
type seat struct {
	*browser
	name     string
	provider bool // by the institute's own sign-in
}

// open says whether the console is for the seat.
func (w *ways) open(s seat) bool {
	p := w.people[s.name]
	return p.active && (!w.needsFactor(s.name) || p.hasFactor()) && (!w.provider || s.provider || goesPast(s.name))
}

// goesPast says whether somebody is an owner who need not sign in at the provider.
func goesPast(name string) bool { return name == "olive" || name == "otto" }

func (w *ways) needsFactor(name string) bool { return w.factors || w.provider && goesPast(name) }

func openWays(t *testing.T, seed uint64) *ways {
	t.Helper()
	w := &ways{site: openWithProvider(t, nil), t: t, r: rand.New(rand.NewPCG(seed, 27)), people: map[string]*wayfarer{}, order: []string{"olive", "otto", "adam", "tariq"}}
	w.Platform.Put(t, "organizations/north/staff/otto@north-institute.org", map[string]any{"first_name": "Otto", "role": "owner", "password": password})
	for _, name := range w.order {
		w.people[name] = &wayfarer{active: true, password: password, used: map[string]bool{}}
	}
	w.liar, _ = w.withLiar(t)
	w.exec(t, `UPDATE identity_providers SET role_claim = '', roles = '{}'`)
	return w
}

func (w *ways) any() (string, *wayfarer) {
	name := w.order[w.r.IntN(len(w.order))]
	return name, w.people[name]
}

// second gives what is asked for after the first step; false where the person has given nothing that is taken.
func (w *ways) second(b *browser, p *wayfarer) bool {
	w.t.Helper()
	_, page, _ := b.get(w.t, "/sign-in/second/")
	form := url.Values{}
	switch options := optionsText.FindStringSubmatch(page); {
	case p.device != nil && options != nil && w.r.IntN(2) == 0:
		form.Set("passkey", p.device.Get(w.t, html.UnescapeString(options[1]), "http://registrar.test", "registrar.test", factortest.Verified))
	case len(p.seeds) > 0 && w.r.IntN(3) > 0:
		code, err := totp.GenerateCode(p.seeds[w.r.IntN(len(p.seeds))], time.Now())
		check.NoError(check.Now(w.t), err, "a code")
		form.Set("code", code)
	case len(p.recovery) > 0:
		form.Set("code", p.recovery[w.r.IntN(len(p.recovery))])
	default:
		form.Set("code", "000000")
	}
	code := form.Get("code")
	status, _, _ := b.post(w.t, "/sign-in/second/", form)
	if code != "" {
		check.False(w.t, "a code is taken twice", status == http.StatusSeeOther && p.used[code], "%s", w.steps)
		p.used[code] = p.used[code] || status == http.StatusSeeOther
	}
	return status == http.StatusSeeOther
}

// enter goes on after the first step, which led to where a sign-in leads or to the second step.
func (w *ways) enter(b *browser, name, to string, byProvider bool) {
	w.t.Helper()
	p := w.people[name]
	check.Equal(check.Now(w.t), "a second factor is asked for", to == "/sign-in/second/", p.hasFactor(), "%s: %s", name, w.steps)
	if p.hasFactor() && !w.second(b, p) {
		status, _, _ := b.get(w.t, "/console/north/")
		check.Equal(check.Now(w.t), "without the factor", status, http.StatusSeeOther, "%s: %s", name, w.steps)
		return
	}
	w.seats = append(w.seats, seat{b, name, byProvider})
}

var (
	optionsText  = regexp.MustCompile(`data-passkey="([^"]+)"`)
	recoveryText = regexp.MustCompile(`<li><code>([A-Z2-7-]{19})</code></li>`)
	methodText   = regexp.MustCompile(`name="method" value="([0-9a-f-]{36})"`)
)

// step does something at random.
func (w *ways) step() {
	w.t.Helper()
	name, p := w.any()
	b := w.browser(w.t)
	did := func(what string) { w.steps = append(w.steps, name+" "+what) }
	switch w.r.IntN(13) {
	case 0, 1:
		did("signs in with the password")
		_, _, header := b.post(w.t, "/sign-in/", url.Values{"name": {name + "@north-institute.org"}, "password": {p.password}})
		w.enter(b, name, header.Get("Location"), false)
	case 2:
		did("is tried with a wrong password")
		status, _, _ := b.post(w.t, "/sign-in/", url.Values{"name": {name + "@north-institute.org"}, "password": {p.password + "x"}})
		check.Equal(w.t, "a wrong password", status, http.StatusUnauthorized, "%s", w.steps)
	case 3, 4:
		did("signs in at the provider")
		state := w.liar.asked(w.t, b, "")
		w.liar.claims = func(c map[string]any) { c["email"] = name + "@north-institute.org" }
		status, _, header := b.get(w.t, "/sign-in/answer/north/?code=x&state="+state)
		check.Equal(w.t, "the answer is taken", status == http.StatusSeeOther, p.active, "%s", w.steps)
		if status == http.StatusSeeOther {
			w.enter(b, name, header.Get("Location"), true)
		}
	case 5:
		if p.device == nil {
			return
		}
		did("signs in with a passkey")
		_, page, _ := b.post(w.t, "/sign-in/passkey/", nil)
		options := html.UnescapeString(optionsText.FindStringSubmatch(page)[1])
		status, _, _ := b.post(w.t, "/sign-in/passkey/answer/", url.Values{"passkey": {p.device.Get(w.t, options, "http://registrar.test", "registrar.test", factortest.Verified)}})
		check.Equal(check.Now(w.t), "the passkey is taken", status, http.StatusSeeOther, "%s", w.steps)
		w.seats = append(w.seats, seat{b, name, false})
	case 6:
		did("sets a password over a mailed link")
		w.reset(b, name, p)
	case 7:
		did("adds or removes a factor")
		w.changeFactor(name, p)
	case 8:
		w.factors = !w.factors
		did(fmt.Sprint("sees the factor policy ", w.factors))
		w.exec(w.t, `INSERT INTO sign_in_policies (organization_id, factor_roles, factor_since, grace_days, updated_at)
			SELECT id, CASE WHEN `+fmt.Sprint(w.factors)+` THEN '{owner,admin,examiner,teacher}'::text[] ELSE '{}' END, now() - interval '1 hour', 0, now() FROM organizations WHERE slug = 'north'
			ON CONFLICT (organization_id) DO UPDATE SET factor_roles = excluded.factor_roles, factor_since = excluded.factor_since, grace_days = 0`)
		w.exec(w.t, `UPDATE members SET joined_at = now() - interval '1 hour' WHERE role <> 'member'`)
	case 9:
		w.provider = !w.provider
		did(fmt.Sprint("sees the provider policy ", w.provider))
		w.exec(w.t, `INSERT INTO sign_in_policies (organization_id, factor_since, grace_days, updated_at, provider_only, break_glass)
			SELECT o.id, now() - interval '1 hour', 0, now(), `+fmt.Sprint(w.provider)+`, ARRAY(SELECT id FROM accounts WHERE email LIKE 'olive@%' OR email LIKE 'otto@%')
			FROM organizations o WHERE slug = 'north'
			ON CONFLICT (organization_id) DO UPDATE SET provider_only = excluded.provider_only, break_glass = excluded.break_glass`)
	case 10:
		p.active = !p.active
		did(fmt.Sprint("is active: ", p.active))
		w.exec(w.t, fmt.Sprintf(`UPDATE members SET status = '%s' WHERE user_id = %d`, map[bool]string{true: "active", false: "inactive"}[p.active], w.userID(w.t, name)))
	case 11:
		did("signs out somewhere")
		for i, s := range w.seats {
			if s.name == name {
				s.post(w.t, "/sign-out/", nil)
				w.closed(s)
				w.seats = slices.Delete(w.seats, i, i+1)
				return
			}
		}
	case 12:
		did("brings an old answer")
		status, _, _ := b.get(w.t, "/sign-in/answer/north/?code=x&state="+seal.Token())
		check.Equal(w.t, "an answer to nothing", status, http.StatusUnauthorized, "%s", w.steps)
	}
}

func (w *ways) closed(s seat) {
	w.t.Helper()
	status, _, _ := s.get(w.t, "/console/north/")
	check.Equal(check.Now(w.t), "the console", status, http.StatusSeeOther, "%s: %s", s.name, w.steps)
}

// reset sets a new password over a link, which ends all sessions and goes no way around a factor.
func (w *ways) reset(b *browser, name string, p *wayfarer) {
	w.t.Helper()
	token := seal.Token()
	_, err := w.DB.Exec(w.t.Context(), `INSERT INTO set_password_tokens (hash, user_id, mailed, created_at, expires_at) VALUES ($1, $2, true, now(), now() + interval '1 hour')`,
		seal.Hash(token), w.userID(w.t, name))
	check.NoError(check.Now(w.t), err, "a link")
	p.password = fmt.Sprintf("plum-orbit-lantern-%d", w.r.IntN(1_000_000))
	status, page, _ := b.post(w.t, "/set-password/"+token, url.Values{"password": {p.password}, "again": {p.password}})
	want(w.t, "a new password", status, page, http.StatusOK)
	w.seats = slices.DeleteFunc(w.seats, func(s seat) bool {
		if s.name == name {
			w.closed(s)
		}
		return s.name == name
	})
	to := ""
	if strings.Contains(page, "/sign-in/second/") {
		to = "/sign-in/second/"
	}
	w.enter(b, name, to, false)
}

// changeFactor adds or removes one, in a session of the person that was just confirmed.
func (w *ways) changeFactor(name string, p *wayfarer) {
	w.t.Helper()
	i := slices.IndexFunc(w.seats, func(s seat) bool { return s.name == name })
	if i < 0 {
		return
	}
	b, first := w.seats[i].browser, !p.hasFactor()
	w.exec(w.t, `UPDATE sessions SET data = jsonb_set(data, '{values,password_at}', to_jsonb(to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')))`)
	var page string
	var status int
	switch {
	case p.hasFactor() && w.r.IntN(2) == 0:
		_, page, _ = b.get(w.t, "/sign-in-methods/")
		all := methodText.FindAllStringSubmatch(page, -1)
		for _, m := range all {
			status, page, _ = b.post(w.t, "/sign-in-methods/remove/", url.Values{"method": {m[1]}})
		}
		if w.needsFactor(name) && p.active { // the last one stays
			check.Equal(check.Now(w.t), "removing the last one", status, http.StatusBadRequest, "%s", w.steps)
			if kept := strings.Contains(page, "Passkey:"); kept {
				p.seeds = nil
			} else {
				p.device = nil
				p.seeds = p.seeds[len(p.seeds)-1:]
			}
			return
		}
		p.seeds, p.device, p.recovery = nil, nil, nil
		return
	case p.device == nil && w.r.IntN(2) == 0:
		_, page, _ = b.post(w.t, "/sign-in-methods/passkey/", nil)
		options := html.UnescapeString(optionsText.FindStringSubmatch(page)[1])
		p.device = &factortest.Device{}
		status, page, _ = b.post(w.t, "/sign-in-methods/passkey/add/", url.Values{"name": {"Laptop"}, "passkey": {p.device.Create(w.t, options, "http://registrar.test", "registrar.test")}})
	case len(p.seeds) < 3:
		_, page, _ = b.post(w.t, "/sign-in-methods/app/", nil)
		seed := strings.ReplaceAll(seedText.FindStringSubmatch(page)[1], " ", "")
		code, err := totp.GenerateCode(seed, time.Now())
		check.NoError(check.Now(w.t), err, "a code")
		p.used[code] = true
		status, page, _ = b.post(w.t, "/sign-in-methods/app/add/", url.Values{"name": {"Telephone"}, "code": {code}})
		p.seeds = append(p.seeds, seed)
	default:
		return
	}
	check.True(check.Now(w.t), "it is added", status == http.StatusCreated || status == http.StatusSeeOther, "%d %s: %s", status, page, w.steps)
	for _, m := range recoveryText.FindAllStringSubmatch(page, -1) {
		p.recovery = append(p.recovery, m[1])
	}
	if first { // the others end
		w.seats = slices.DeleteFunc(w.seats, func(s seat) bool { return s.name == name && s.browser != b })
	}
}

// Whatever happens, in whatever order: nobody gets around a policy, in after being deactivated, or in with a way that
// has ended.
func TestNoWayAroundAPolicy(t *testing.T) {
	t.Parallel()
	walks, steps := 3, 60
	if testing.Short() {
		walks, steps = 1, 30
	}
	for seed := range uint64(walks) {
		w := openWays(t, seed)
		for range steps {
			w.step()
			for _, s := range w.seats {
				status, _, _ := s.get(t, "/console/north/")
				check.Equal(check.Now(t), "it opens", status == http.StatusOK, w.open(s), "seed %d: %s by the provider %v: %d after %q", seed, s.name, s.provider, status, w.steps)
			}
		}
		check.True(t, "somebody was signed in", len(w.seats) > 0, "seed %d", seed)
	}
}
