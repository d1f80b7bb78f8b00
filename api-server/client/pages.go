package client

import (
	"context"
	"iter"
	"net/http"
)

// ActivityPage is a page of the attendance register.
type ActivityPage = ListActivity200JSONResponseBody

// StudentPages reads the list of students from params.Cursor on, or from its beginning.
// It asks for a page when the one before has been worked on, and ends after the last page
// or at an error.
func (c *ClientWithResponses) StudentPages(ctx context.Context, params StudentsParams) iter.Seq2[*StudentPage, error] {
	return pages(params.Cursor, func(cursor *string) (*StudentPage, error) {
		params.Cursor = cursor
		answer, err := c.StudentsWithResponse(ctx, &params)
		if err != nil {
			return nil, err
		}
		if answer.JSON200 == nil {
			return nil, unexpected(answer.HTTPResponse)
		}
		page, err := answer.JSON200.AsStudentPage()
		return &page, err
	}, func(p *StudentPage) (string, bool) { return p.NextCursor, p.HasMore })
}

// AssignmentPages reads the list of assignments, as [ClientWithResponses.StudentPages] does
// that of students.
func (c *ClientWithResponses) AssignmentPages(ctx context.Context, params ListAssignmentsParams) iter.Seq2[*AssignmentPage, error] {
	return pages(params.Cursor, func(cursor *string) (*AssignmentPage, error) {
		params.Cursor = cursor
		answer, err := c.ListAssignmentsWithResponse(ctx, &params)
		if err != nil {
			return nil, err
		}
		return documented(answer.JSON200, answer.HTTPResponse)
	}, func(p *AssignmentPage) (string, bool) { return p.NextCursor, p.HasMore })
}

// ResultPages reads the list of results, as [ClientWithResponses.StudentPages] does that of
// students. Store a page's NextCursor together with its results: whoever reads on from
// there loses none and gets none twice.
func (c *ClientWithResponses) ResultPages(ctx context.Context, params ListResultsParams) iter.Seq2[*ResultPage, error] {
	return pages(params.Cursor, func(cursor *string) (*ResultPage, error) {
		params.Cursor = cursor
		answer, err := c.ListResultsWithResponse(ctx, &params)
		if err != nil {
			return nil, err
		}
		return documented(answer.JSON200, answer.HTTPResponse)
	}, func(p *ResultPage) (string, bool) { return p.NextCursor, p.HasMore })
}

// EventPages reads the events in the order of their sequence, as [ClientWithResponses.StudentPages]
// does the list of students. Store a page's NextCursor once its events are worked on: whoever reads
// on from there misses none.
func (c *ClientWithResponses) EventPages(ctx context.Context, params ListEventsParams) iter.Seq2[*EventPage, error] {
	return pages(params.Cursor, func(cursor *string) (*EventPage, error) {
		params.Cursor = cursor
		answer, err := c.ListEventsWithResponse(ctx, &params)
		if err != nil {
			return nil, err
		}
		return documented(answer.JSON200, answer.HTTPResponse)
	}, func(p *EventPage) (string, bool) { return p.NextCursor, p.HasMore })
}

// ExplanationPages reads what happened to a student, an event or a delivery, the latest first.
func (c *ClientWithResponses) ExplanationPages(ctx context.Context, params ExplainParams) iter.Seq2[*ExplanationPage, error] {
	return pages(params.Cursor, func(cursor *string) (*ExplanationPage, error) {
		params.Cursor = cursor
		answer, err := c.ExplainWithResponse(ctx, &params)
		if err != nil {
			return nil, err
		}
		return documented(answer.JSON200, answer.HTTPResponse)
	}, func(p *ExplanationPage) (string, bool) { return p.NextCursor, p.HasMore })
}

// WebhookDeliveryPages reads what was sent to a webhook URL, newest first, as [ClientWithResponses.StudentPages]
// does the list of students.
func (c *ClientWithResponses) WebhookDeliveryPages(ctx context.Context, endpoint int, params ListWebhookDeliveriesParams) iter.Seq2[*WebhookDeliveryPage, error] {
	return pages(params.Cursor, func(cursor *string) (*WebhookDeliveryPage, error) {
		params.Cursor = cursor
		answer, err := c.ListWebhookDeliveriesWithResponse(ctx, endpoint, &params)
		if err != nil {
			return nil, err
		}
		return documented(answer.JSON200, answer.HTTPResponse)
	}, func(p *WebhookDeliveryPage) (string, bool) { return p.NextCursor, p.HasMore })
}

// ActivityPages reads the attendance register, as [ClientWithResponses.StudentPages] does
// the list of students.
func (c *ClientWithResponses) ActivityPages(ctx context.Context, params ListActivityParams) iter.Seq2[*ActivityPage, error] {
	return pages(params.Cursor, func(cursor *string) (*ActivityPage, error) {
		params.Cursor = cursor
		answer, err := c.ListActivityWithResponse(ctx, &params)
		if err != nil {
			return nil, err
		}
		return documented(answer.JSON200, answer.HTTPResponse)
	}, func(p *ActivityPage) (string, bool) { return p.NextCursor, p.HasMore })
}

func documented[P any](page *P, res *http.Response) (*P, error) {
	if page == nil {
		return nil, unexpected(res)
	}
	return page, nil
}

// pages fetches page after page; next says where the one after begins and whether there is
// one.
func pages[P any](cursor *string, fetch func(cursor *string) (*P, error), next func(*P) (string, bool)) iter.Seq2[*P, error] {
	return func(yield func(*P, error) bool) {
		for at, more := cursor, true; more; {
			page, err := fetch(at)
			if err != nil {
				yield(nil, err)
				return
			}
			var position string
			position, more = next(page)
			at = &position
			if !yield(page, nil) {
				return
			}
		}
	}
}
