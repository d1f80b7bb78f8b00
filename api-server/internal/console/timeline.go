package console

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/registrar-dev/registrar/internal/flow/explain"
)

// timelineAPage is how many entries of a timeline a page shows.
const timelineAPage = 25

func (s *Server) readTimeline(ctx context.Context, p *studentPage, from explain.Position) (err error) {
	if p.Timeline, err = s.Explains.Student(ctx, p.Here.Organization, p.Student, from, timelineAPage+1); err != nil {
		return err
	}
	if len(p.Timeline) > timelineAPage {
		p.Timeline = p.Timeline[:timelineAPage]
		p.Earlier = formatTimelinePosition(p.Timeline[timelineAPage-1].Position)
	}
	return nil
}

// formatTimelinePosition writes a position for the address of a page.
func formatTimelinePosition(p explain.Position) string {
	return strconv.FormatInt(p.At.UnixMicro(), 10) + "-" + strconv.Itoa(p.Behind)
}

// parseTimelinePosition reads what formatTimelinePosition wrote; anything else is the beginning.
func parseTimelinePosition(text string) explain.Position {
	at, behind, _ := strings.Cut(text, "-")
	micros, err := strconv.ParseInt(at, 10, 64)
	if err != nil || micros <= 0 || micros > time.Date(9998, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro() {
		return explain.Position{}
	}
	n, err := strconv.Atoi(behind)
	if err != nil || n < 0 || n > 10_000 {
		return explain.Position{}
	}
	return explain.Position{At: time.UnixMicro(micros), Behind: n}
}
