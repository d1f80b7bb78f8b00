package console_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"testing"

	"github.com/registrar-dev/registrar/internal/kit/check"
)

// Owners and admins are mailed which keys are made, by whomever.
func TestManagersAreMailedWhichKeysAreMade(t *testing.T) {
	t.Parallel()
	s := open(t)
	before := s.keyNotices(t, "olive")
	s.Platform.Post(t, "organizations/north/api-keys", `{"name": "Student system", "access": "full"}`).Want(t, 201)
	status, _, _ := s.signedIn(t, "adam").post(t, "/console/north/api-keys/", url.Values{"name": {"Reports"}, "access": {"read_only"}})
	check.Equal(check.Now(t), "making a key", status, http.StatusCreated, "")
	for _, name := range []string{"olive", "adam"} {
		all := s.keyNotices(t, name)
		check.Equal(check.Now(t), "notices of keys", len(all), 2, "%s before: %v", name, before)
		check.Equal(t, "the first", all[0], keyNotice{"Institute north", "Student system", "platform administrator", "http://registrar.test/console/north/api-keys/"}, "%s", name)
		check.Equal(t, "the second", all[1], keyNotice{"Institute north", "Reports", "adam@north-institute.org", "http://registrar.test/console/north/api-keys/"}, "%s", name)
	}
	for _, name := range []string{"elena", "tariq"} {
		check.Equal(t, "notices of keys", len(s.keyNotices(t, name)), 0, "%s", name)
	}
}

type keyNotice struct{ Organization, Subject, By, URL string }

// keyNotices are the mails to the person about keys, the first one first.
func (s *site) keyNotices(t *testing.T, name string) (all []keyNotice) {
	t.Helper()
	var texts []string
	err := s.DB.QueryRow(t.Context(), `
		SELECT coalesce(array_agg(params::text ORDER BY id), '{}') FROM emails
		WHERE recipient = $1 AND type = 'security_notice' AND params ->> 'notice' = 'key_created'`, name+"@north-institute.org").Scan(&texts)
	check.NoError(check.Now(t), err, "%s", name)
	for _, text := range texts {
		var n keyNotice
		check.NoError(check.Now(t), json.Unmarshal([]byte(text), &n), "%s", text)
		all = append(all, n)
	}
	return all
}
