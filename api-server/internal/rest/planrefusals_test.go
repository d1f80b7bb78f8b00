package rest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/registrar-dev/registrar/api-server/internal/apitest"
	"github.com/registrar-dev/registrar/api-server/internal/server"
	"github.com/registrar-dev/registrar/internal/kit/check"
)

// The rows are the refusals of plans (reference: plans#refusals).
func TestRefusedPlansSaveNothingNotEvenTheAccount(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	north, south := e.Organization(t, "north"), e.Organization(t, "south")
	for role, name := range map[string]string{"owner": "olive", "teacher": "tariq"} {
		e.Platform.Put(t, "organizations/north/staff/"+name+"@institute.org", map[string]any{"first_name": name, "role": role, "password": "plum-orbit-lantern-42"})
	}
	e.Platform.Put(t, "organizations/south/staff/sam@institute.org", map[string]any{"first_name": "Sam", "role": "owner", "password": "plum-orbit-lantern-42"})
	const begin = `"test_plan": true, "timezone": "UTC", "target_score": 7`
	for _, c := range []struct{ row, courses, plan, code, field string }{
		{"score outside the exam's scale or step", `"ielts"`, `"target_score": 9.5`, "off_scale", "target_score"},
		{"score outside the exam's scale or step", `"ielts"`, `"target_score": 6.25`, "off_scale", "target_score"},
		{"score outside the exam's scale or step", `"sat"`, `"target_score": 1405`, "off_scale", "target_score"},
		{"score outside the exam's scale or step", `"pte_academic"`, `"target_score": 9`, "off_scale", "target_score"},
		{"score outside the exam's scale or step", `"ielts"`, `"target_score": "seven"`, "", "target_score"},
		{"test plan on a course type other than", `"toefl"`, `"test_plan": true, "target_score": 90`, "test_plan_unavailable", "test_plan"},
		{"test plan on a course type other than", `"toefl"`, `"target_score": 90, "pace": "light"`, "test_plan_unavailable", "pace"},
		{"plan started without timezone", `"ielts"`, `"test_plan": true, "target_score": 7`, "missing", "timezone"},
		{"plan started without timezone", `"ielts"`, `"test_plan": true, "target_score": 7, "timezone": ""`, "missing", "timezone"},
		{"plan started without a target", `"ielts"`, `"test_plan": true, "timezone": "UTC"`, "missing", "target_score"},
		{"an unknown zone", `"ielts"`, `"test_plan": true, "target_score": 7, "timezone": "Mars/Olympus"`, "", "timezone"},
		{"plan settings with no plan running", `"ielts"`, `"pace": "light"`, "no_plan", "pace"},
		{"plan settings with no plan running", `"ielts"`, `"practice_drills": false`, "no_plan", "practice_drills"},
		{"plan settings with no plan running", `"ielts"`, `"section_minimums": {}`, "no_plan", "section_minimums"},
		{"settings of a plan that is turned off", `"ielts"`, `"test_plan": false, "pace": "light"`, "plan_ends", "pace"},
		{"exam date too close for a plan", `"ielts"`, begin + `, "exam_date": "2026-11-30"`, "exam_too_close", "exam_date"},
		{"exam date too close for a plan", `"ielts"`, begin + `, "exam_date": "2026-11-01"`, "exam_too_close", "exam_date"},
		{"several courses named without course", `["ielts", "sat"]`, begin, "missing", "course"},
		{"a course that the call does not name", `"ielts"`, begin + `, "course": "sat"`, "unknown_course", "course"},
		{"a recipient that is not an active admin or examiner", `"ielts"`, begin + `, "staff_recipients": ["tariq@institute.org"]`, "not_staff", "staff_recipients"},
		{"a recipient that is not an active admin or examiner", `"ielts"`, begin + `, "staff_recipients": ["sam@institute.org"]`, "not_staff", "staff_recipients"},
		{"more than five further addresses", `"ielts"`, begin + `, "extra_recipients": ["a@b.in", "b@b.in", "c@b.in", "d@b.in", "e@b.in", "f@b.in"]`, "too_many", "extra_recipients"},
		{"an unknown field inside target_score_plan", `"ielts"`, begin + `, "pase": "light"`, "unknown_field", "pase"},
		{"an unknown pace", `"ielts"`, begin + `, "pace": "daily"`, "not_a_choice", "pace"},
		{"custom without its days", `"ielts"`, begin + `, "pace": "custom"`, "missing", "custom_interval_days"},
		{"days without custom", `"ielts"`, begin + `, "custom_interval_days": 3`, "needs_custom_pace", "custom_interval_days"},
		{"custom_interval_days 1 to 14", `"ielts"`, begin + `, "pace": "custom", "custom_interval_days": 15`, "", "custom_interval_days"},
		{"a section that the exam does not have", `"ielts"`, begin + `, "section_minimums": {"math": 6}`, "unknown_section", "section_minimums"},
		{"a section minimum off its scale", `"sat"`, `"test_plan": true, "timezone": "UTC", "target_score": 1400, "section_minimums": {"math": 805}`, "off_scale", "section_minimums"},
	} {
		t.Run(c.row, func(t *testing.T) {
			body := fmt.Sprintf(`{"email": "new@institute.org", "first_name": "New", "courses": %s, "target_score_plan": {%s}}`, c.courses, c.plan)
			f := north.Full.Post(t, provisionPath, body).Want(t, 400)
			var fault apitest.Fault
			f.Into(t, &fault)
			check.Equal(t, "field", fault.Field, "target_score_plan."+c.field, "%s", body)
			if c.code != "" {
				check.Equal(t, "code", fault.Code, c.code, "%s", body)
			}
		})
	}
	t.Run("the reason lists the valid fields", func(t *testing.T) {
		text := north.Full.Post(t, provisionPath, `{"email": "new@institute.org", "first_name": "New", "courses": "ielts", "target_score_plan": {"colour": 1}}`).
			Want(t, 400).Object(t)["error"].(string)
		for _, field := range []string{"course", "target_score", "exam_date", "test_plan", "timezone", "pace", "custom_interval_days", "section_minimums",
			"practice_drills", "staff_recipients", "extra_recipients", "safe_exam_browser"} {
			if !strings.Contains(text, field) {
				t.Errorf("%q does not name %s", text, field)
			}
		}
	})
	t.Run("a read-only key attempting plan changes", func(t *testing.T) {
		north.ReadOnly.Post(t, provisionPath, `{"email": "new@institute.org", "first_name": "New", "courses": "ielts", "target_score_plan": {`+begin+`}}`).
			WantFault(t, 403, "read_only_key", "")
	})
	north.Full.Get(t, "students/?email=new@institute.org").Want(t, 404)
	south.Full.Get(t, "students/?email=new@institute.org").Want(t, 404)
	for _, table := range []string{"accounts WHERE email = 'new@institute.org'", "plans", "plan_goals", "enrollments", "courses", "emails"} {
		var n int
		if err := e.DB.QueryRow(t.Context(), "SELECT count(*) FROM "+table).Scan(&n); check.NoError(t, err, "%d rows of %s were saved: %v", n, table, err) {
			check.Equal(t, "n", n, 0, "%d rows of %s were saved: %v", n, table, err)
		}
	}
}

func TestASecondActivePlanForTheExamIsRefused(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	north := e.Organization(t, "north")
	batch := e.Platform.Post(t, "organizations/north/courses", `{"name": "Evening", "course_type": "ielts"}`).Want(t, 201).Object(t)["id"]
	const begin = `"target_score_plan": {"test_plan": true, "timezone": "UTC", "target_score": 7}`
	north.Full.Post(t, provisionPath, `{"email": "ana@institute.org", "first_name": "Ana", "courses": "ielts", `+begin+`}`).Want(t, 201)
	second := fmt.Sprintf(`{"email": "ana@institute.org", "first_name": "Ana", "course_ids": [%v], `, batch) + begin + `}`
	north.Full.Post(t, provisionPath, second).WantFault(t, 400, "second_plan", "target_score_plan.test_plan")
	held := north.Full.Get(t, "students/?email=ana@institute.org").Want(t, 200).Object(t)["enrollments"].([]any)
	if len(held) != 1 {
		t.Errorf("the refused call enrolled: %v", held)
	}
}

// A type names a course only where the call has one of it; its id always does.
func TestACourseTypeThatMeansSeveralCoursesIsRefused(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	north := e.Organization(t, "north")
	var evening struct{ ID int }
	e.Platform.Post(t, "organizations/north/courses", `{"name": "Evening", "course_type": "ielts"}`).Want(t, 201).Into(t, &evening)
	call := func(course any) *apitest.Answer {
		return north.Full.Post(t, provisionPath, fmt.Sprintf(`{"email": "ana@institute.org", "first_name": "Ana", "courses": "ielts, toefl", "course_ids": [%d],
			"target_score_plan": {"course": "%v", "target_score": 7}}`, evening.ID, course))
	}
	for _, name := range []string{"ielts", "IELTS Academic"} {
		f := call(name).WantFault(t, 400, "ambiguous_course", "target_score_plan.course")
		if check.Contains(t, "error", f.Error, "2 courses", "%s", f.Error) {
			check.Contains(t, "error", f.Error, "course id", "%s", f.Error)
		}
	}
	north.Full.Get(t, "students/?email=ana@institute.org").Want(t, 404)
	block := call(evening.ID).Want(t, 201).Object(t)["target_score_plan"].(map[string]any)
	if fmt.Sprint(block["course_id"]) != fmt.Sprint(evening.ID) {
		t.Errorf("%v", block)
	}
}

func TestTheSafeExamBrowserIsRefusedWhereTheSiteHasNone(t *testing.T) {
	t.Parallel()
	e := apitest.New(t, func(d *server.Deps) { d.SafeExamBrowser = false })
	north := e.Organization(t, "north")
	north.Full.Post(t, provisionPath, `{"email": "ana@institute.org", "first_name": "Ana", "courses": "toefl", "target_score_plan": {"safe_exam_browser": true}}`).
		WantFault(t, 400, "safe_exam_browser_unavailable", "target_score_plan.safe_exam_browser")
	north.Full.Get(t, "students/?email=ana@institute.org").Want(t, 404)
	block := north.Full.Post(t, provisionPath, `{"email": "ana@institute.org", "first_name": "Ana", "courses": "toefl", "target_score_plan": {"safe_exam_browser": false}}`).
		Want(t, 201).Object(t)["target_score_plan"].(map[string]any)
	if check.Equal(t, "safe_exam_browser", block["safe_exam_browser"], false, "%v", block) {
		check.Equal(t, "action", block["action"], "unchanged", "%v", block)
	}
}

// A call that is refused for one field is answered with all that is wrong, its target_score_plan included,
// and of nothing that is not.
func TestRefusalsListTheFaultsOfThePlanToo(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	north := e.Organization(t, "north")
	north.Full.Post(t, provisionPath, `{"email": "ria@institute.org", "first_name": "Ria", "username": "Ria.T", "courses": "ielts",
		"target_score_plan": {"test_plan": true, "timezone": "UTC", "target_score": 7}}`).Want(t, 201)
	var closed struct{ ID int }
	e.Platform.Post(t, "organizations/north/courses", `{"name": "Closed", "course_type": "ielts", "open_for_enrolment": false}`).Want(t, 201).Into(t, &closed)
	const ana, ria = `"email": "ana@institute.org", "first_name": "Ana"`, `"email": "ria@institute.org", "first_name": "Ria"`
	for name, c := range map[string]struct{ call, plan, want string }{
		"a field of the wrong type": {ana + `, "courses": "ielts", "send_welcome_email": 7`, `"target_score": 12, "timezone": "Mars", "pace": "custom"`,
			"send_welcome_email not_a_boolean, target_score off_scale, timezone unknown_time_zone, custom_interval_days missing, pace no_plan, timezone no_plan"},
		"a setting of the wrong type": {ana + `, "courses": "ielts"`, `"test_plan": true, "timezone": 7, "target_score": 12, "extra_recipients": "nobody", "section_minimums": {"math": 5}`,
			"timezone wrong_type, extra_recipients invalid_email, target_score off_scale, section_minimums unknown_section"},
		"an unknown setting":                    {ana + `, "courses": "ielts"`, `"pase": 1, "target_score": 12`, "pase unknown_field, target_score off_scale"},
		"a pace of the wrong type":              {ana + `, "courses": "ielts"`, `"test_plan": true, "timezone": "UTC", "target_score": 7, "pace": 7, "custom_interval_days": 3`, "pace not_a_choice"},
		"a switch of the wrong type":            {ana + `, "courses": "ielts"`, `"test_plan": "perhaps", "pace": "light", "timezone": "UTC"`, "test_plan not_a_boolean"},
		"a course of the wrong type":            {ana + `, "courses": ["ielts", "sat"]`, `"course": true, "target_score": 1400, "timezone": "Mars"`, "course wrong_type, timezone unknown_time_zone"},
		"a course that is missing, and more":    {ana + `, "courses": ["ielts", "sat"]`, `"target_score": 1400, "timezone": "Mars"`, "course missing, timezone unknown_time_zone"},
		"no email":                              {`"first_name": "Ana", "courses": "ielts"`, `"target_score": 12, "pace": "light"`, "email missing, target_score off_scale"},
		"no email, and a closed course":         {fmt.Sprintf(`"first_name": "Ana", "course_ids": %d`, closed.ID), `"target_score": 12, "timezone": "Mars"`, "email missing, timezone unknown_time_zone"},
		"no email, and no course":               {`"first_name": "Ana"`, `"target_score": 12`, "email missing, target_score_plan no_course"},
		"an unknown course":                     {ana + `, "courses": "latin"`, `"target_score": 12, "timezone": "Mars"`, "courses unknown_course_type, timezone unknown_time_zone"},
		"a closed course":                       {ana + fmt.Sprintf(`, "course_ids": %d`, closed.ID), `"test_plan": true, "timezone": "Mars"`, "course_ids course_closed, timezone unknown_time_zone"},
		"a length that is wrong":                {ana + `, "courses": "ielts", "tenure_months": 0`, `"test_plan": true, "timezone": "UTC", "target_score": 7`, "tenure_months not_a_whole_number"},
		"a length that is wrong, and an exam":   {ana + `, "courses": "ielts", "tenure_months": 0`, `"test_plan": true, "timezone": "UTC", "target_score": 7, "exam_date": "2026-11-30"`, "tenure_months not_a_whole_number"},
		"a name that is missing, and an exam":   {`"email": "ana@institute.org", "courses": "ielts"`, `"test_plan": true, "timezone": "UTC", "target_score": 7, "exam_date": "2026-11-30"`, "first_name missing, exam_date exam_too_close"},
		"settings that are wrong, and an exam":  {ana + `, "courses": "ielts"`, `"test_plan": true, "timezone": "UTC", "target_score": 12, "exam_date": "2026-11-30"`, "target_score off_scale, exam_date exam_too_close"},
		"a plan that runs":                      {ria + `, "courses": "ielts", "tenure_months": 0`, `"pace": "light", "staff_recipients": "tariq@institute.org"`, "tenure_months not_a_whole_number, staff_recipients not_staff"},
		"a plan that runs, and nothing else":    {ria + `, "courses": "ielts", "resend_welcome_email": []`, `"pace": "light"`, "resend_welcome_email not_a_boolean"},
		"a plan where there is none for it":     {ana + `, "courses": "toefl", "external_ref": []`, `"test_plan": true, "pace": "light"`, "external_ref wrong_type, pace test_plan_unavailable, test_plan test_plan_unavailable"},
		"a username that is taken, and a score": {ana + `, "courses": "ielts", "username": "ria.t"`, `"target_score": 12`, "username username_taken, target_score off_scale"},
	} {
		var got []string
		f := north.Full.Post(t, provisionPath, `{`+c.call+`, "target_score_plan": {`+c.plan+`}}`).Want(t, 400)
		var body apitest.Fault
		f.Into(t, &body)
		for _, each := range body.Errors {
			got = append(got, strings.TrimPrefix(each.Field, "target_score_plan.")+" "+each.Code)
		}
		if text := strings.Join(got, ", "); text != c.want {
			t.Errorf("%s: %s\nwant %s", name, text, c.want)
		}
	}
	north.Full.Get(t, "students/?email=ana@institute.org").Want(t, 404)
}
