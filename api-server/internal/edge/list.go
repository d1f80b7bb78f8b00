package edge

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"

	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/page"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// Page is what the answer of every paged list begins with.
type Page struct {
	Status     string `json:"status"`
	Object     string `json:"object,omitempty"` // where the path has other answers besides
	Count      int    `json:"count"`            // of this page
	HasMore    bool   `json:"has_more"`
	NextCursor string `json:"next_cursor"` // never null
}

// List is a list that is read page by page, of rows of the type T. A row is written as soon
// as it is read, so that PostgreSQL finds the next one meanwhile.
type List[T any] struct {
	Cursors      *page.Cursors
	Organization id.Organization
	Name, Array  string        // of its cursors, and of its rows in the answer
	Object       string        // of its Page
	Reads        *pg.Reads     // where Read reads; nil: the primary
	Limit        int           // rows of a page
	Begin        page.Position // where a walk begins; nil: before the first row
	Epochs       page.Epochs   // what the rows' positions are drawn from; "": they are no such numbers
	Nth          int           // which number of a Position that is

	// Read calls each with up to limit rows after the position. A row may change once each has returned. When a
	// standby fails, it is called again from the beginning of the page.
	Read     func(db *pg.DB, after page.Position, limit int, each func(T) error) error
	Position func(row T) page.Position
	Show     func(row T) any  // what the answer has of a row; nil: the row itself
	Head     func(p Page) any // what stands before the rows; nil: the Page

	// Reached says how far Read has looked that found no further row, and whether there may be some
	// behind. nil: to its last row, and all there are. It is for lists whose filters pass over many rows.
	Reached func() (last page.Position, more bool)
}

// usualRow is about as long as a row's text.
const usualRow = 640

// Answer answers a request whose parameters were all read, and may be faulty.
func (l List[T]) Answer(w http.ResponseWriter, r *http.Request, q *Query) error {
	cursor := q.Text("cursor")
	if err := q.Err(); err != nil {
		return err
	}
	list := page.List{Organization: l.Organization, Name: l.Name, Filters: q.filters}
	last, err := l.Cursors.Decode(r.Context(), list, cursor)
	if err != nil {
		return err
	}
	goesOn := last != nil
	if !goesOn {
		last = l.Begin
	}
	begin := last
	p, rows := Page{Status: "ok", Object: l.Object, NextCursor: cursor}, make([]byte, 0, l.Limit*usualRow)
	err = l.read(r.Context(), func(db *pg.DB) error {
		last, p.Count, p.HasMore, rows = begin, 0, false, rows[:0]
		if goesOn {
			if err := l.lost(w, r, db, list, last); err != nil {
				return err
			}
		}
		// The row beyond the page only shows that there is one.
		return l.Read(db, last, l.Limit+1, func(row T) error {
			if p.HasMore = p.Count == l.Limit; p.HasMore {
				return nil
			}
			if p.Count++; p.Count > 1 {
				rows = append(rows, ',')
			}
			last = l.Position(row)
			text, err := l.text(row)
			rows = append(rows, text...)
			return err
		})
	})
	if err != nil {
		return err
	}
	reached := !p.HasMore && l.Reached != nil
	if reached {
		last, p.HasMore = l.Reached()
	}
	// An empty page ends where it began, so a caller may always store next_cursor.
	if p.Count > 0 || cursor == "" || reached {
		if p.NextCursor, err = l.Cursors.Encode(r.Context(), list, last); err != nil {
			return err
		}
	}
	if p.HasMore {
		w.Header().Set("Link", "<"+pageAfter(r.URL, p.NextCursor)+`>; rel="next"`)
	}
	return l.send(w, p, rows)
}

func (l List[T]) read(ctx context.Context, fn func(db *pg.DB) error) error {
	if l.Reads == nil {
		return fn(l.Cursors.DB)
	}
	return l.Reads.Do(ctx, fn)
}

// lost refuses a cursor behind rows that the database has lost, and says where to go on.
func (l List[T]) lost(w http.ResponseWriter, r *http.Request, db *pg.DB, list page.List, last page.Position) error {
	if l.Epochs == "" {
		return nil
	}
	loss, lost, err := page.Lost(r.Context(), db, l.Organization, l.Epochs, last.At(l.Nth))
	if err != nil || !lost {
		return err
	}
	last = slices.Clone(last)
	last[l.Nth] = loss.Kept
	cursor, err := l.Cursors.Encode(r.Context(), list, last)
	if err != nil {
		return err
	}
	w.Header().Set("Link", "<"+pageAfter(r.URL, cursor)+`>; rel="next"`)
	return fault.New(fault.Conflict, "epoch_changed", "cursor: at %s the database came back with an earlier state, and rows that were listed up to here may be gone; "+
		"go on at the address in the header Link, which misses nothing, or read the list from its beginning to be rid of them", loss.At.UTC().Format("2006-01-02 15:04:05 UTC"))
}

// pageAfter is the address of the page behind a cursor, on the same server.
func pageAfter(page *url.URL, cursor string) string {
	query := page.Query()
	query.Set("cursor", cursor)
	return page.EscapedPath() + "?" + query.Encode()
}

func (l List[T]) text(row T) ([]byte, error) {
	if l.Show == nil {
		return json.Marshal(row)
	}
	return json.Marshal(l.Show(row))
}

func (l List[T]) send(w http.ResponseWriter, p Page, rows []byte) error {
	var head any = p
	if l.Head != nil {
		head = l.Head(p)
	}
	text, err := json.Marshal(head)
	if err != nil {
		return err
	}
	text = append(append(text[:len(text)-1], `,"`+l.Array+`":[`...), rows...)
	writeText(w, http.StatusOK, append(text, "]}\n"...))
	return nil
}

// Each hands on rows that were read at once.
func Each[T any](rows []T, err error, do func(T) error) error {
	for i := 0; err == nil && i < len(rows); i++ {
		err = do(rows[i])
	}
	return err
}
