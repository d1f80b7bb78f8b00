package rest

import (
	"net/http"

	"github.com/registrar-dev/registrar/api-server/internal/edge"
	"github.com/registrar-dev/registrar/internal/domain/catalog"
	"github.com/registrar-dev/registrar/internal/domain/course"
	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/id"
)

type coursesBody struct {
	Status      string           `json:"status"`
	CourseTypes []courseTypeBody `json:"course_types"`
	Courses     []courseBody     `json:"courses"`
}

type courseTypeBody struct {
	Name                  string         `json:"name"`
	DisplayName           string         `json:"display_name"`
	DefaultCourse         *defaultCourse `json:"default_course"`
	DefaultAccessMonths   *int           `json:"default_access_months"`
	DefaultAccessWeeks    *int           `json:"default_access_weeks"`
	StarterTestsAvailable int            `json:"starter_tests_available"`
	TestPlanAvailable     bool           `json:"test_plan_available"`
	TargetScoreMin        float64        `json:"target_score_min"`
	TargetScoreMax        float64        `json:"target_score_max"`
}

type defaultCourse struct {
	ID   id.Course `json:"id"`
	Name string    `json:"name"`
}

type courseBody struct {
	ID                  id.Course  `json:"id"`
	Name                string     `json:"name"`
	CourseType          string     `json:"course_type"`
	CourseTypeDisplay   string     `json:"course_type_display"`
	IsDefault           bool       `json:"is_default"`
	Status              string     `json:"status"`
	OpenForEnrollment   bool       `json:"open_for_enrolment"`
	IsPerpetual         bool       `json:"is_perpetual"`
	StartDate           clock.Date `json:"start_date"`
	EndDate             clock.Date `json:"end_date"`
	DefaultAccessMonths *int       `json:"default_access_months"`
	DefaultAccessWeeks  *int       `json:"default_access_weeks"`
	StudentsWithAccess  int        `json:"students_with_access"`
}

func (s *Server) listCourses(w http.ResponseWriter, r *http.Request) error {
	ctx, o, today := r.Context(), principal(r.Context()).Organization, s.today()
	types, err := course.Types(ctx, s.DB)
	if err != nil {
		return err
	}
	list, err := course.List(ctx, s.DB, o.ID, today)
	if err != nil {
		return err
	}
	starters, err := catalog.StartersAvailable(ctx, s.DB, o.ID)
	if err != nil {
		return err
	}
	body := coursesBody{Status: "ok", CourseTypes: []courseTypeBody{}, Courses: []courseBody{}}
	defaults := map[string]course.Course{}
	for _, c := range list {
		if c.IsDefault {
			defaults[c.Type] = c.Course
		}
		body.Courses = append(body.Courses, courseOf(c, o, today))
	}
	for _, t := range types {
		if t.Active {
			body.CourseTypes = append(body.CourseTypes, courseTypeOf(t, o, defaults[t.Name], starters[t.Name]))
		}
	}
	return edge.Tagged(w, r, body)
}

// courseTypeOf shows what a grant of the type gives now. def is the type's default course, the zero
// Course where the grant would make it.
func courseTypeOf(t course.Type, o org.Organization, def course.Course, starters int) courseTypeBody {
	body := courseTypeBody{Name: t.Name, DisplayName: t.DisplayName, StarterTestsAvailable: starters,
		TestPlanAvailable: t.TestPlanAvailable, TargetScoreMin: t.TargetScoreMin, TargetScoreMax: t.TargetScoreMax}
	if def.ID != 0 {
		body.DefaultCourse = &defaultCourse{def.ID, def.Name}
	}
	if o.Defaults.StarterTestsPerCourse == 0 || o.Defaults.VisibleTestsLimit == 0 {
		body.StarterTestsAvailable = 0 // they are switched off
	}
	def.TypeAccessMonths = t.DefaultAccessMonths
	body.DefaultAccessMonths, body.DefaultAccessWeeks = lengthOf(def, o)
	return body
}

// lengthOf is the access length that holds when a call names none: in months or in weeks, the
// other one is nil.
func lengthOf(c course.Course, o org.Organization) (months, weeks *int) {
	l := c.Length(0, course.Terms{AccessMonths: o.Defaults.AccessMonths})
	if l.Weeks > 0 {
		return nil, &l.Weeks
	}
	return &l.Months, nil
}

// courseOf says in open_for_enrolment what a call would find, so a course past its end is closed.
func courseOf(c course.Listed, o org.Organization, today clock.Date) courseBody {
	body := courseBody{ID: c.ID, Name: c.Name, CourseType: c.Type, CourseTypeDisplay: c.TypeDisplay,
		IsDefault: c.IsDefault, Status: string(c.Status), OpenForEnrollment: c.OpenOn(today), IsPerpetual: c.IsPerpetual,
		StartDate: c.StartDate, EndDate: c.EndDate, StudentsWithAccess: c.StudentsWithAccess}
	body.DefaultAccessMonths, body.DefaultAccessWeeks = lengthOf(c.Course, o)
	return body
}
