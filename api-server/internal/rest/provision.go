package rest

import (
	"net/http"
	"time"

	"github.com/registrar-dev/registrar/api-server/internal/edge"
	"github.com/registrar-dev/registrar/internal/domain/plan"
	"github.com/registrar-dev/registrar/internal/flow/provision"
	"github.com/registrar-dev/registrar/internal/kit/id"
)

// provisionStudent answers 201 for a new account, else 200.
func (s *Server) provisionStudent(w http.ResponseWriter, r *http.Request) error {
	who := principal(r.Context())
	if err := provision.Allow(who); err != nil {
		return err
	}
	body, err := edge.ReadBody(w, r)
	if err != nil {
		return err
	}
	cmd := readCommand(body, readQuery(r))
	if cmd.Source != "" {
		edge.Annotate(r.Context(), "source", cmd.Source)
	}
	wait, leave := s.grantWait(r, who.Organization.ID)
	defer leave()
	answer, err := s.Provisioning.Student(r.Context(), who, cmd)
	if err != nil {
		return err
	}
	answer.Warnings = append(answer.Warnings, body.Unread()...)
	if wait > 0 {
		// What was done is committed: if the wait fails, the answer says queued.
		if err := s.Provisioning.AwaitMail(r.Context(), who, &answer, wait); err != nil {
			edge.Annotate(r.Context(), "wait", err.Error())
		}
		edge.Waited(w, wait)
	}
	status := http.StatusOK
	if answer.CreatedUser {
		status = http.StatusCreated
	}
	return edge.JSON(w, status, answer)
}

// grantWait is how long the request may wait for its mail: not at all while as many wait as may.
func (s *Server) grantWait(r *http.Request, of id.Organization) (wait time.Duration, leave func()) {
	if wait = edge.Wait(r, maxWait); wait == 0 {
		return 0, func() {}
	}
	leave, ok := s.Places.waits.Try(of)
	if !ok {
		edge.Annotate(r.Context(), "wait", "too many wait already")
		return 0, func() {}
	}
	return wait, leave
}

// maxWait is the longest that a request waits for its mail.
const maxWait = 10 * time.Second

// maxText bounds what has a limit of its own further in, whose fault says more.
const maxText = 10_000

func readCommand(b *edge.Body, q *query) provision.Command {
	cmd := provision.Command{
		Email:        value(b.Text("email", maxText)),
		FirstName:    value(b.Text("first_name", maxText)),
		LastName:     value(b.Text("last_name", maxText)),
		Courses:      b.List("courses"),
		TenureMonths: value(b.Int("tenure_months", 1, 120)),
		ExternalRef:  value(b.Label("external_ref", maxText)),
		SendEmail:    b.Bool("send_welcome_email"),
		ResendEmail:  value(b.Bool("resend_welcome_email")),
		ExtendAccess: value(b.Bool("extend_access")),
		Source:       value(b.Label("source", 255)),
		Zone:         q.zone,
	}
	for _, n := range b.IDs("course_ids") {
		cmd.CourseIDs = append(cmd.CourseIDs, id.Course(n))
	}
	readDetails(b, &cmd)
	cmd.Plan = readPlan(b.Object(plan.Block))
	_, _ = cmd.Decoding.Add(b.Err()), cmd.Decoding.Add(q.Err()) // faults only
	return cmd
}

// modes are the words of password_mode.
var modes = map[string]provision.Mode{
	"link": provision.ModeLink, "invite": provision.ModeLink,
	"set": provision.ModeSet, "direct": provision.ModeSet,
	"generate": provision.ModeGenerate, "auto": provision.ModeGenerate, "system_generated": provision.ModeGenerate,
}

func readDetails(b *edge.Body, cmd *provision.Command) {
	cmd.Mode = modes[value(b.Choice("password_mode", "link", "set", "generate", "invite", "direct", "auto", "system_generated"))]
	cmd.Username = value(b.Text("username", maxText))
	cmd.Password = value(b.Secret("password"))
}

// value is what p points to, or the zero value for what was not sent.
func value[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}
