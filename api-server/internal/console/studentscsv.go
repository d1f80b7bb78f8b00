package console

import (
	"context"
	"encoding/csv"
	"net/http"
	"strconv"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/roster"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// studentsExported is how many students a file has at most, exportGroup how many of them are in memory at a time.
const (
	studentsExported = 100_000
	exportGroup      = 500
)

// downloadStudents gives the students that the page shows, and those of its further pages, as CSV.
func (s *Server) downloadStudents(w http.ResponseWriter, r *http.Request) error {
	f, err := s.frame(r, "students", "Students")
	if err != nil {
		return err
	}
	file := download(w, r, "students-"+f.Here.Slug)
	if err := file.Write([]string{"user_id", "email", "first_name", "last_name", "membership", "last_sign_in",
		"course", "course_status", "access_until", "other_courses", "plan_exam", "plan_target", "plan_status"}); err != nil {
		return err
	}
	which, after := s.chooseStudents(f, r.URL.Query()), ""
	for group := range studentsExported / exportGroup {
		if after, err = s.exportStudents(r.Context(), which, after, file); err != nil && group > 0 {
			panic(http.ErrAbortHandler) // nobody takes a part for the whole
		}
		if err != nil || after == "" {
			return err
		}
	}
	return nil
}

// exportStudents writes the next group, and gives where the one behind it begins; "": nowhere.
func (s *Server) exportStudents(ctx context.Context, which chosenStudents, after string, file *csv.Writer) (next string, err error) {
	var lines []studentLine
	err = s.Reads.Do(ctx, func(db *pg.DB) error {
		people, behind, err := which.find(ctx, db, after, exportGroup)
		if err != nil {
			return err
		}
		next = behind
		lines, err = which.lines(ctx, db, people)
		return err
	})
	if err != nil {
		return "", err
	}
	for _, l := range lines {
		if err := file.Write(cellsOf(l)); err != nil {
			return "", err
		}
	}
	file.Flush()
	return next, file.Error()
}

func cellsOf(l studentLine) []string {
	cells := []string{formatID(l.ID), l.Email, l.FirstName, l.LastName, l.Status, "", "", "", "", strconv.Itoa(l.More), "", "", ""}
	if !l.LastLogin.IsZero() {
		cells[5] = l.LastLogin.UTC().Format(time.RFC3339)
	}
	if c := l.Course; c != nil {
		cells[6], cells[7] = c.Course.Name, string(c.Status)
		if c.Status.Access() {
			cells[8] = c.GracePeriodEnd.String()
		}
	}
	if p := l.Plan; p != nil {
		cells[10], cells[11], cells[12] = p.Exam, p.Target.String(), string(p.Status)
		if p.AtRisk {
			cells[12] = "at_risk"
		}
	}
	for i := range cells {
		cells[i] = roster.Defuse(cells[i])
	}
	return cells
}
