package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/registrar-dev/registrar/internal/kit/check"
)

// What Postman makes of the document, with parameters from its examples and without the optional ones, can be sent as
// it is: nothing of it is refused as wrong. Newman, Postman's own runner, sends it to a whole Registrar.
func TestACollectionOfPostmanCanBeSent(t *testing.T) {
	t.Parallel()
	modules := nodeTools(t)
	h := newHouse(t)
	h.likeTheExamples()
	day := func(n int) string { return time.Now().AddDate(0, 0, n).Format(time.DateOnly) }
	partner := filepath.Join(h.dir, "partner.yaml")
	// The examples are of one November. What they ask for must be ahead.
	must(t, os.WriteFile(partner, []byte(strings.NewReplacer("2026-11-30", day(9), "2026-12-31", day(40)).Replace(partnerDocument(t))), 0o600))
	people := filepath.Join(h.dir, "people.csv")
	must(t, os.WriteFile(people, []byte("person_external_id,email,first_name,last_name,role\n7,bo@north-institute.org,Bo,Li,student\n"), 0o600))

	for _, c := range []struct {
		options string
		least   int // calls that succeed
		all     bool
	}{
		{"parametersResolution=Schema", 3, false}, // Postman's default: every text is <string>
		{"parametersResolution=Example,enableOptionalParameters=false", 19, true},
	} {
		collection := filepath.Join(h.dir, "collection.json")
		printedBy(t, command(t, filepath.Join(modules, ".bin", "openapi2postmanv2"), "-s", partner, "-o", collection, "-O", c.options))
		choose(t, collection, people)
		report := filepath.Join(h.dir, "report.json")
		printedBy(t, command(t, filepath.Join(modules, ".bin", "newman"), "run", collection, "--env-var", "baseUrl="+h.settings.PublicURL(),
			"--env-var", "apiKey="+h.key, "--reporters", "json", "--reporter-json-export", report))
		sent := executions(t, report)
		succeeded := 0
		for _, e := range sent {
			switch {
			case e.Response.Code/100 == 2:
				succeeded++
			case c.all && !slices.Contains([]int{404, 409}, e.Response.Code): // of things that other calls of the collection have taken away
				t.Errorf("%s: %d %s", e.Item.Name, e.Response.Code, string(e.Response.Stream.Data))
			}
		}
		t.Logf("%s: %d of %d calls succeed", c.options, succeeded, len(sent))
		check.True(t, "enough calls succeed", succeeded >= c.least, "%s: %d of %d", c.options, succeeded, len(sent))
	}
}

// likeTheExamples lets ids begin with those of the document's examples, and adds the test that they assign.
func (h *house) likeTheExamples() {
	t := h.t
	conn, err := pgx.Connect(t.Context(), h.database)
	must(t, err)
	defer func() { _ = conn.Close(t.Context()) }()
	for table, first := range map[string]string{"accounts": "318", "catalog_items": "99", "enrollments": "12", "assignments": "5"} {
		_, err := conn.Exec(t.Context(), "ALTER TABLE "+table+" ALTER COLUMN id RESTART WITH "+first)
		must(t, err)
	}
	h.platform("PUT", "organizations/demo/catalog/tests/mock12", `{"title": "Mock 12", "type": "ielts"}`, nil)
}

// choose gives the collection what only a person can choose: the form's file, and which one of the parameters of
// GET /explain/ is sent.
func choose(t *testing.T, collection, file string) {
	t.Helper()
	text, err := os.ReadFile(collection)
	must(t, err)
	var all any
	must(t, json.Unmarshal(text, &all))
	chosen := 0
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, one := range v {
				walk(one)
			}
		case map[string]any:
			if v["type"] == "file" && v["key"] == "archive" {
				v["src"] = file
				chosen++
			}
			if path, ok := v["path"].([]any); ok && slices.Contains(path, any("explain")) {
				for _, q := range v["query"].([]any) {
					if q := q.(map[string]any); q["key"] == "email" {
						q["value"], q["disabled"] = "asha@north-institute.org", false
					}
				}
			}
			for _, one := range v {
				walk(one)
			}
		}
	}
	walk(all)
	check.True(check.Now(t), "the form has a file", chosen > 0, "")
	text, err = json.Marshal(all)
	must(t, err)
	must(t, os.WriteFile(collection, text, 0o600))
}

// execution is a request that newman sent.
type execution struct {
	Item     struct{ Name string }
	Response struct {
		Code   int                   // 0 of none
		Stream struct{ Data []rune } // the body's bytes
	}
}

func executions(t *testing.T, report string) []execution {
	t.Helper()
	text, err := os.ReadFile(report)
	must(t, err)
	var all struct {
		Run struct{ Executions []execution }
	}
	must(t, json.Unmarshal(text, &all))
	check.True(check.Now(t), "newman has sent the calls", len(all.Run.Executions) >= 19, "%d", len(all.Run.Executions))
	return all.Run.Executions
}
