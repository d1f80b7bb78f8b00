package platform_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/api-server/internal/apitest"
	"github.com/registrar-dev/registrar/internal/kit/check"
)

func TestActivity(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	north := e.Organization(t, "north")
	north.Full.Post(t, "provision/student/", `{"email": "ana@institute.org", "first_name": "Ana"}`).Want(t, 201)
	events := `{"events": [
		{"organization": "north", "user_id": 1, "at": "2026-11-21T09:58:00+00:00", "kind": "visit"},
		{"organization": "north", "user_id": "1", "at": "2026-11-21T15:29:00+05:30", "kind": "page_view"},
		{"organization": "north", "user_id": 1, "at": "2026-11-21T15:29:00", "kind": "page_view"},
		{"organization": "south", "user_id": 1, "at": "2026-11-21T09:58:00Z", "kind": "visit"},
		{"organization": "north", "user_id": {}, "at": "2026-11-21T09:58:00Z", "kind": "visit"},
		{"organization": "north", "user_id": 2, "at": "2026-11-21T09:58:00Z", "kind": "visit"},
		{"organization": "north", "user_id": 1, "kind": "visit"},
		7]}`
	for range 2 { // a repeat answers the same, and counts once
		e.Platform.Post(t, "activity", events).Want(t, 200).Golden(t, "activity")
	}
	e.Platform.Post(t, "activity/compile", `{"date": "2026-11-21"}`).Want(t, 200).Golden(t, "activity-compiled")
	e.Platform.Post(t, "activity/compile", `{"date": "2026-11-22"}`).WantFault(t, 400, "out_of_range", "date")
	e.Platform.Post(t, "activity/compile", `{"date": "21 November"}`).WantFault(t, 400, "not_a_date", "date")
	e.Platform.Post(t, "activity/compile", `{}`).WantFault(t, 400, "missing", "date")
	var views int
	if err := e.DB.QueryRow(t.Context(), `SELECT page_views FROM activity_days WHERE date = '2026-11-21'`).Scan(&views); check.NoError(t, err, "%d page views (%v)", views, err) {
		check.Equal(t, "views", views, 1, "%d page views (%v)", views, err)
	}
}

func TestActivityRefusesWhatIsNoListOfEvents(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	for _, body := range []string{`{}`, `{"events": []}`, `{"events": {}}`, `{"events": "visit"}`, `{"events": [` + strings.Repeat("{},", 10_000) + `{}]}`} {
		e.Platform.Post(t, "activity", body).WantFault(t, 400, "not_a_list", "events")
	}
	e.Platform.Post(t, "activity", `{"events": [{"kind": "`+strings.Repeat("x", 4<<20)+`"}]}`).WantFault(t, 413, "body_too_large", "")
	e.Platform.Post(t, "activity", `[]`).WantFault(t, 400, "not_an_object", "")
	e.Platform.With("Authorization", "").Post(t, "activity", `{}`).WantFault(t, 401, "invalid_platform_key", "")
}

func TestAFullCallOfActivity(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	north := e.Organization(t, "north")
	north.Full.Post(t, "provision/student/", `{"email": "ana@institute.org", "first_name": "Ana"}`).Want(t, 201)
	list := make([]string, 10_000)
	for i := range list {
		list[i] = fmt.Sprintf(`{"organization": "north", "user_id": 1, "at": %q, "kind": "heartbeat"}`,
			apitest.Start.Add(-time.Duration(i)*time.Second).Format(time.RFC3339))
	}
	answer := e.Platform.Post(t, "activity", `{"events": [`+strings.Join(list, ",")+`]}`).Want(t, 200).Object(t)
	if answer["accepted"] != 10_000.0 {
		t.Errorf("answer %v", answer)
	}
}
