package signin

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/student"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/seal"
)

// Devices recognizes browsers in which a person has signed in before, by a cookie of their own. It
// opens nothing: tries at a password from such a browser are counted apart from those of strangers,
// so that nobody can lock a person out by trying wrong passwords.
//
// The cookie is sealed, so that nobody can make or read one. It holds for accounts and passwords that
// were signed in with in the browser: with a new password others' browsers are strangers again. Each
// sign-in replaces it.
type Devices struct {
	Box   *seal.Box
	Clock clock.Clock
	HTTPS bool // whether browsers see the site so
}

const (
	deviceValid  = 180 * 24 * time.Hour
	mostAccounts = 5    // in one browser, which a family may share
	maxDevice    = 2000 // characters of the cookie
	deviceSeal   = "cookies/device"
)

// known is one account of a browser.
type known struct {
	User  id.User   `json:"user"`
	Mark  string    `json:"mark"`  // of the password
	Nonce string    `json:"nonce"` // of the browser, new with each sign-in
	Until time.Time `json:"until"`
}

// Known gives the name by which tries of the request's browser at a's password are counted, "" for a
// stranger.
func (d Devices) Known(r *http.Request, a student.Account) string {
	for _, k := range d.read(r) {
		if a.ID != 0 && k.User == a.ID && k.Mark == a.PasswordMark() && d.Clock().Before(k.Until) {
			return strconv.FormatInt(int64(k.User), 10) + ":" + k.Nonce
		}
	}
	return ""
}

// Remember makes the browser one in which a has signed in with the password that it has.
func (d Devices) Remember(w http.ResponseWriter, r *http.Request, a student.Account) error {
	all := slices.DeleteFunc(d.read(r), func(k known) bool { return k.User == a.ID || !d.Clock().Before(k.Until) })
	all = append([]known{{a.ID, a.PasswordMark(), seal.Token()[:16], d.Clock().Add(deviceValid).UTC()}}, all...)
	plain, err := json.Marshal(all[:min(len(all), mostAccounts)])
	if err != nil {
		return err
	}
	sealed, err := d.Box.Seal(r.Context(), plain, deviceSeal)
	if err != nil {
		return err
	}
	//nolint:gosec // it is Secure where the site is at https; one without would lose it otherwise
	http.SetCookie(w, &http.Cookie{Name: d.cookie(), Value: base64.RawURLEncoding.EncodeToString(sealed), Path: "/",
		MaxAge: int(deviceValid.Seconds()), HttpOnly: true, Secure: d.HTTPS, SameSite: http.SameSiteLaxMode})
	return nil
}

// read gives nothing for a cookie that somebody made up, or that a keyset sealed which is gone.
func (d Devices) read(r *http.Request) (all []known) {
	c, err := r.Cookie(d.cookie())
	if err != nil || len(c.Value) > maxDevice {
		return nil
	}
	sealed, err := base64.RawURLEncoding.DecodeString(c.Value)
	if err != nil {
		return nil
	}
	plain, err := d.Box.Open(r.Context(), sealed, deviceSeal)
	if err != nil || json.Unmarshal(plain, &all) != nil {
		return nil
	}
	return all
}

func (d Devices) cookie() string {
	if d.HTTPS {
		return "__Host-registrar_device"
	}
	return "registrar_device"
}
