package pages_test

import (
	"encoding/json"
	"net/url"
	"testing"

	"github.com/registrar-dev/registrar/internal/kit/check"
)

type notice struct{ Notice, Account, Subject, By, Browser, From, URL string }

// notices are the mails to the address about the security of its account, the first one first.
func (s *site) notices(t *testing.T, address string) (all []notice) {
	t.Helper()
	var texts []string
	err := s.DB.QueryRow(t.Context(), `
		SELECT coalesce(array_agg(params::text ORDER BY id), '{}') FROM emails WHERE recipient = $1 AND type = 'security_notice'`, address).Scan(&texts)
	check.NoError(check.Now(t), err, "%s", address)
	for _, text := range texts {
		var n notice
		check.NoError(check.Now(t), json.Unmarshal([]byte(text), &n), "%s", text)
		all = append(all, n)
	}
	return all
}

const oldPassword, newPassword = "correct horse battery", "plum-orbit-lantern-42"

// Staff hear of a browser that was not known, and of a password that changes; students do not.
func TestStaffAreMailedWhatHappensToTheirAccount(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.setPassword(t)
	const address = "olive@institute.org"
	s.Platform.Put(t, "organizations/north/staff/"+address, `{"first_name": "Olive", "role": "teacher", "password": "`+oldPassword+`"}`).Want(t, 201)
	b := s.browser(t)
	b.Transport = calling("Mozilla/5.0 (X11; Linux x86_64; rv:132.0) Gecko/20100101 Firefox/132.0")
	wants := func(what string, kinds ...string) (last notice) {
		t.Helper()
		all, got := s.notices(t, address), []string{}
		for _, n := range all {
			got, last = append(got, n.Notice), n
		}
		check.Slices(check.Now(t), "the notices", got, kinds, "%s", what)
		return last
	}
	b.signIn(t, address, "wrong password")
	wants("a wrong password")
	b.signIn(t, address, oldPassword)
	got := wants("the first sign-in", "new_device")
	check.Equal(t, "the notice", got, notice{"new_device", address, "", "", "Firefox on Linux", "2001:db8:1:2::/64", s.url + "/sessions/"}, "")
	b.do(t, "/sign-out/", url.Values{})
	b.signIn(t, address, oldPassword)
	wants("the same browser again", "new_device")
	b.do(t, "/change-password/", url.Values{"current": {oldPassword}, "password": {newPassword}, "again": {newPassword}})
	wants("a new password", "new_device", "password_changed")
	b.do(t, "/sign-out/", url.Values{})
	b.signIn(t, address, newPassword)
	wants("the browser that changed it", "new_device", "password_changed")
	s.browser(t).signIn(t, address, newPassword)
	wants("another browser", "new_device", "password_changed", "new_device")
	var changes int
	err := s.DB.QueryRow(t.Context(), `SELECT count(*) FROM audit_log WHERE action = 'changed password' AND organization_id IS NOT NULL AND address <> ''`).Scan(&changes)
	check.NoError(t, err, "")
	check.Equal(t, "changes in the audit log", changes, 1, "")

	s.browser(t).signIn(t, "ana@institute.org", password)
	check.Equal(t, "notices to a student", len(s.notices(t, "ana@institute.org")), 0, "")
}
