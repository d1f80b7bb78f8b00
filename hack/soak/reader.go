package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// reader follows a list of an organization with a stored cursor.
type reader struct {
	*load

	call     *caller
	org      string
	list     string // "results", "students", "assignments" or "events"
	cursor   string
	told     int                // how often rows before the cursor were said to be lost
	last     map[string]float64 // scores by result id
	rows     map[string]string  // by id, what was last read: the text, for events
	sequence int64              // of the last event
}

func newReader(l *load, c *caller, org, list string) *reader {
	return &reader{load: l, call: c, org: org, list: list, last: map[string]float64{}, rows: map[string]string{}}
}

// follow reads on until it is told to come to an end, and then to the end.
func (r *reader) follow(ctx context.Context) {
	for {
		ending := r.shut.Load()
		more, err := r.page(ctx)
		if err != nil {
			if ctx.Err() == nil {
				r.report.find("reading %s of %s: %v", r.list, r.org, err)
			}
			return
		}
		if ending && !more {
			return
		}
		if !more && pause(ctx, 3*time.Second) != nil {
			return
		}
	}
}

func (r *reader) page(ctx context.Context) (more bool, err error) {
	path := r.list + "/?limit=100"
	if r.cursor != "" {
		path += "&cursor=" + url.QueryEscape(r.cursor)
	}
	a, err := r.call.do(ctx, request{method: http.MethodGet, path: path, org: r.org})
	if err != nil {
		return false, err
	}
	if a.status == http.StatusConflict && strings.Contains(string(a.body), "epoch_changed") {
		return true, r.goOn(a.next)
	}
	if a.status != http.StatusOK {
		return false, fmt.Errorf("%s: %d %s", path, a.status, a.body)
	}
	var page map[string]json.RawMessage
	var rest struct {
		HasMore    bool   `json:"has_more"`
		NextCursor string `json:"next_cursor"`
	}
	if err := json.Unmarshal(a.body, &page); err != nil {
		return false, err
	}
	if err := json.Unmarshal(a.body, &rest); err != nil {
		return false, err
	}
	var rows []json.RawMessage
	if err := json.Unmarshal(page[r.list], &rows); err != nil {
		return false, err
	}
	for _, row := range rows {
		if err := r.take(row); err != nil {
			return false, err
		}
	}
	r.cursor = rest.NextCursor
	return rest.HasMore, nil
}

// goOn takes the cursor of the address that the header Link has.
func (r *reader) goOn(link string) error {
	address, err := url.Parse(strings.Trim(strings.Split(link, ">")[0], "<"))
	if err != nil {
		return err
	}
	r.told++
	if r.cursor = address.Query().Get("cursor"); r.cursor == "" {
		return fmt.Errorf("epoch_changed names no cursor to go on at: %s", link)
	}
	return nil
}

func (r *reader) take(text json.RawMessage) error {
	var row struct {
		ID       string
		UserID   int64 `json:"user_id"`
		Score    float64
		Sequence int64
	}
	if err := json.Unmarshal(text, &row); err != nil {
		return err
	}
	switch r.list {
	case "results":
		r.last[row.ID] = row.Score
	case "students":
		row.ID = fmt.Sprint(row.UserID)
	case "events":
		if row.Sequence <= r.sequence {
			r.report.find("the feed of %s has the sequence %d after %d", r.org, row.Sequence, r.sequence)
		}
		r.sequence = row.Sequence
		body, err := canonical(text)
		if err != nil {
			return err
		}
		r.rows[row.ID] = body
		return nil
	}
	r.rows[row.ID] = ""
	return nil
}

// canonical is an event without its sequence, with its fields in one order, so that what was pulled and what was pushed
// can be compared.
func canonical(text []byte) (string, error) {
	var event map[string]any
	if err := json.Unmarshal(text, &event); err != nil {
		return "", err
	}
	delete(event, "sequence")
	body, err := json.Marshal(event)
	return string(body), err
}
