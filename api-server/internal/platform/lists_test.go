package platform_test

import (
	"fmt"
	"reflect"
	"strconv"
	"testing"

	"github.com/registrar-dev/registrar/api-server/internal/apitest"
	"github.com/registrar-dev/registrar/internal/kit/check"
)

// lists are those that have pages, each with its rows' name in the answer and the rows of a page
// at most, of an organization that newLists makes.
var lists = []struct {
	path, rows string
	most       int
}{
	{"plans?organization=north", "plans", 500},
	{"organizations/north/roster-runs?", "roster_runs", 500},
	{"organizations/north/roster-runs/1/changes?", "changes", 1000},
	{"organizations/north/webhook-endpoints/1/deliveries?", "deliveries", 500},
}

// newLists makes an organization that has three rows in each list.
func newLists(t *testing.T) *apitest.Client {
	t.Helper()
	e := apitest.New(t)
	e.ImportRosters(t)
	north := e.Organization(t, "north")
	e.Platform.Post(t, "organizations/north/webhook-endpoints", `{"url": "https://hooks.north-institute.org/in"}`).Want(t, 201)
	for i := range 3 {
		e.Platform.Put(t, fmt.Sprintf("organizations/north/catalog/tests/mock-%d", i), `{"title": "Mock", "type": "ielts"}`).Want(t, 201)
	}
	for _, name := range []string{"ana", "bo", "cy"} {
		north.Full.Post(t, "provision/student/", fmt.Sprintf(`{"email": "%s@institute.org", "first_name": "A", "courses": "ielts",
			"target_score_plan": {"target_score": 7, "test_plan": true, "timezone": "Asia/Kolkata"}}`, name)).Want(t, 201)
	}
	for range 3 {
		north.Full.With("Content-Type", "text/csv").Post(t, "roster/import/",
			"person_external_id,email,first_name\np1,p1@institute.org,P\np2,p2@institute.org,P\np3,p3@institute.org,P\n").Want(t, 200)
	}
	return e.Platform.Freely()
}

func TestListsArePagedByCursor(t *testing.T) {
	t.Parallel()
	c := newLists(t)
	for _, l := range lists {
		all := c.Get(t, l.path).Want(t, 200).Object(t)
		rows := all[l.rows].([]any)
		if check.True(t, "number of rows is at least 3", len(rows) >= 3, "%s: %v", l.path, all) &&
			check.Equal(t, "count", all["count"], any(float64(len(rows))), "%s: %v", l.path, all) {
			check.Equal(t, "has_more", all["has_more"], false, "%s: %v", l.path, all)
		}
		var walked []any
		cursor := ""
		for more := true; more; {
			p := c.Get(t, l.path+"&limit=1&cursor="+cursor).Want(t, 200).Object(t)
			walked, cursor, more = append(walked, p[l.rows].([]any)...), p["next_cursor"].(string), p["has_more"].(bool)
		}
		if check.True(t, "the rows one by one are those of one page", reflect.DeepEqual(walked, rows), "%s: one by one %v, at once %v", l.path, walked, rows) {
			check.Equal(t, "next_cursor", any(cursor), all["next_cursor"], "%s: one by one %v, at once %v", l.path, walked, rows)
		}
		end := c.Get(t, l.path+"&cursor="+cursor).Want(t, 200).Object(t)
		if check.Equal(t, "count", end["count"], 0.0, "%s: behind the last row: %v", l.path, end) {
			check.Equal(t, "next_cursor", end["next_cursor"], any(cursor), "%s: behind the last row: %v", l.path, end)
		}
		for _, other := range lists {
			if other != l {
				c.Get(t, other.path+"&cursor="+cursor).WantFault(t, 400, "invalid_cursor", "cursor")
			}
		}
	}
	of := c.Get(t, "organizations/north/roster-runs/1/changes").Want(t, 200).Object(t)["next_cursor"].(string)
	c.Get(t, "organizations/north/roster-runs/2/changes?cursor="+of).WantFault(t, 400, "invalid_cursor", "cursor")
}

// Every list refuses the same parameters in the same words.
func TestListsRefuseWhatIsWrong(t *testing.T) {
	t.Parallel()
	c := newLists(t)
	for _, l := range lists {
		c.Get(t, l.path+"&limit="+strconv.Itoa(l.most)).Want(t, 200)
		for _, limit := range []string{"0", "-1", "1.5", "x", strconv.Itoa(l.most + 1)} {
			c.Get(t, l.path+"&limit="+limit).WantFault(t, 400, "out_of_range", "limit")
		}
		cursor := c.Get(t, l.path).Want(t, 200).Object(t)["next_cursor"].(string)
		c.Get(t, l.path+"&cursor=7").WantFault(t, 400, "invalid_cursor", "cursor")
		c.Get(t, l.path+"&cursor="+cursor[1:]).WantFault(t, 400, "invalid_cursor", "cursor")
		c.Get(t, l.path+"&cursor="+cursor+"&cursor=").WantFault(t, 400, "sent_twice", "cursor")
	}
	c.Get(t, "plans?organization=north&user_id=x").WantFault(t, 400, "not_an_id", "user_id")
	c.Get(t, "plans?organization=nowhere&limit=0").WantFault(t, 400, "out_of_range", "limit") // 400 before 404
	c.Get(t, "organizations/nowhere/roster-runs?limit=0").WantFault(t, 400, "out_of_range", "limit")
}
