// Package grade sends students' marks to LMSes (LTI: Assignment and Grade Services). What is pending is a row with the mark
// (lms.Mark), written in the transaction of the result. A process that dies leaves its marks to be handed out again, so a mark may be
// sent twice, and none is lost; the LMS goes by its time, and takes none that is older than what it has.
package grade

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"github.com/registrar-dev/registrar/internal/domain/lms"
	"github.com/registrar-dev/registrar/internal/kit/decimal"
	"github.com/registrar-dev/registrar/webhook-sender/internal/advantage"
)

// send posts a mark. Its error is a *advantage.Trouble, or of our own.
func (s *Sender) send(ctx context.Context, m lms.Mark) (status int, err error) {
	if m.Subject == "" {
		return 0, advantage.Because(0, "The LMS’s user was forgotten. Once the student opens a link in the LMS again, send the marks again.")
	}
	to, err := scores(m.LineItem)
	if err != nil {
		return 0, advantage.Because(0, "The LMS gave no address of its marks that can be used.")
	}
	token, err := s.client.Token(ctx, m.Services, lms.ScoreScope)
	if err != nil {
		return 0, err
	}
	body, err := json.Marshal(score{Timestamp: m.ScoredAt.UTC().Format("2006-01-02T15:04:05.000Z07:00"), Given: m.Score, Maximum: m.MaxScore,
		Activity: "Completed", Grading: "FullyGraded", User: m.Subject})
	if err != nil {
		return 0, err
	}
	answer, err := s.client.Call(ctx, advantage.Request{Method: http.MethodPost, Address: to, ContentType: "application/vnd.ims.lis.v1.score+json", Token: token, Body: body})
	status = answer.Status
	switch {
	case err != nil:
		return status, err
	case status/100 == 2, status == http.StatusConflict: // it has this one, or a later one
		return status, nil
	case status == http.StatusUnauthorized:
		s.client.Forget(m.Services, lms.ScoreScope)
		return status, advantage.Because(status, "The LMS did not accept its own token. Check that the tool may still use Assignment and Grade Services there.")
	case status == http.StatusForbidden:
		return status, advantage.Because(status, "The LMS does not let the tool write marks. Allow Assignment and Grade Services for it there.")
	case status == http.StatusNotFound:
		return status, advantage.Because(status, "The LMS has no such column of marks any more, or does not know the student in its course. If the link was made again, the student has to open it once.")
	}
	return status, advantage.Because(status, "The LMS answered %d%s.", status, advantage.Quoted(answer.Body))
}

type score struct {
	Timestamp string         `json:"timestamp"`
	Given     decimal.Number `json:"scoreGiven"`
	Maximum   decimal.Number `json:"scoreMaximum"`
	Activity  string         `json:"activityProgress"`
	Grading   string         `json:"gradingProgress"`
	User      string         `json:"userId"`
}

// scores is the address that takes the marks of a column, whose own may have a query.
func scores(lineItem string) (string, error) {
	u, err := url.Parse(lineItem)
	if err != nil {
		return "", err
	}
	u.Path = strings.TrimSuffix(u.Path, "/") + "/scores"
	u.RawPath = ""
	return u.String(), nil
}
