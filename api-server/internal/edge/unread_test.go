package edge

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/registrar-dev/registrar/internal/kit/check"
)

// Reference: conventions#unknown-fields.
func TestAFieldThatDoesNotExistIsNamedWithTheNearestOne(t *testing.T) {
	t.Parallel()
	for sent, want := range map[string]string{
		"course":                      "`course` is not a field; did you mean `courses`?",
		"couses":                      "`couses` is not a field; did you mean `courses`?",
		"Courses":                     "`Courses` is not a field; did you mean `courses`?",
		"coursse":                     "`coursse` is not a field; did you mean `courses`?",
		"firstName":                   "`firstName` is not a field; did you mean `first_name`?",
		"fist_nmae":                   "`fist_nmae` is not a field; did you mean `first_name`?",
		"tenure":                      "`tenure` is not a field; did you mean `tenure_months`?",
		"shoe_size":                   "`shoe_size` is not a field, and was ignored",
		"x":                           "`x` is not a field, and was ignored",
		"":                            "`` is not a field, and was ignored",
		"a\"b\n":                      "`a\\\"b\\n` is not a field, and was ignored",
		"Übergröße":                   "`Übergröße` is not a field, and was ignored",
		"first_name":                  "",
		"course_idsss":                "`course_idsss` is not a field; did you mean `course_ids`?",
		strings.Repeat("course", 100): "`" + strings.Repeat("course", 100)[:59] + "…` is not a field, and was ignored",
	} {
		body, err := json.Marshal(map[string]string{sent: "1", "email": "a@b.c"})
		check.NoError(check.Now(t), err, "%q", sent)
		b := parse(t, string(body))
		_, _, _ = b.Text("email", 9), b.Text("first_name", 9), b.Secret("password")
		_, _, _, _ = b.List("courses"), b.IDs("course_ids"), b.Int("tenure_months", 1, 2), b.Bool("extend_access")
		var warnings []string
		if want != "" {
			warnings = []string{want}
		}
		if got := b.Unread(); !slices.Equal(got, warnings) {
			t.Errorf("%q: %q, want %q", sent, got, warnings)
		}
	}
}

func TestManyFieldsThatDoNotExistAreCounted(t *testing.T) {
	t.Parallel()
	var fields []string
	for n := range 5000 {
		fields = append(fields, fmt.Sprintf(`"field%04d": 1`, n))
	}
	b := parse(t, "{"+strings.Join(fields, ",")+"}")
	got := b.Unread()
	check.Equal(t, "warnings", len(got), maxUnread+1, "%q", got)
	check.Equal(t, "the last", got[maxUnread], "4990 more names are not fields, and were ignored", "%q", got)
}
