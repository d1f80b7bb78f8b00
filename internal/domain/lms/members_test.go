package lms_test

import (
	"testing"

	"github.com/registrar-dev/registrar/internal/domain/lms"
)

// A page is read as a whole or refused, whatever it holds.
func FuzzMembers(f *testing.F) {
	for _, seed := range []string{
		`{"id": "https://lms.example/names", "context": {"id": "c"}, "members": [{"status": "Active", "name": "Una", "user_id": "u1", "email": "u1@school.example",
			"roles": ["http://purl.imsglobal.org/vocab/lis/v2/membership#Learner"]}]}`,
		`{"members": []}`, `{"members": null}`, `[]`, `{"members": [{"user_id": "\u0000", "roles": ["#", "/", ""]}]}`, `{"members": [null]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		members, err := lms.ReadMembers(text, "c")
		if err != nil && members != nil {
			t.Error("members of a page that is refused")
		}
		for _, m := range members {
			if m.ID == "" {
				t.Errorf("%+v has no id", m)
			}
		}
	})
}
