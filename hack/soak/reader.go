package main

import (
	"context"
	"net/http"
	"net/url"
	"time"
)

// reader follows the results of an organization with a stored cursor.
type reader struct {
	*load

	call   *caller
	org    string
	cursor string
	last   map[string]float64 // by result id
	rows   int
}

// follow reads on until it is told to come to an end, and then to the end.
func (r *reader) follow(ctx context.Context) {
	for {
		ending := r.shut.Load()
		more, err := r.page(ctx)
		if err != nil {
			if ctx.Err() == nil {
				r.report.find("reading results of %s: %v", r.org, err)
			}
			return
		}
		if ending && !more {
			return
		}
		if !more && pause(ctx, time.Second) != nil {
			return
		}
	}
}

func (r *reader) page(ctx context.Context) (more bool, err error) {
	var page struct {
		HasMore    bool   `json:"has_more"`
		NextCursor string `json:"next_cursor"`
		Results    []struct {
			ID    string
			Score float64
		}
	}
	path := "results/?limit=100"
	if r.cursor != "" {
		path += "&cursor=" + url.QueryEscape(r.cursor)
	}
	if _, err := r.call.ask(ctx, request{method: http.MethodGet, path: path, org: r.org}, &page); err != nil {
		return false, err
	}
	for _, row := range page.Results {
		r.last[row.ID] = row.Score
		r.rows++
	}
	r.cursor = page.NextCursor
	return page.HasMore, nil
}
