package edge

import (
	"bufio"
	"encoding/json"
	"net/http"
	"time"
)

// A Stream writes a long JSON answer piece by piece. Until the first 64 KiB have gone out
// a handler may still return its fault instead; later, Abort tells the client that the
// answer is not whole.
type Stream struct {
	buffer *bufio.Writer
	pipe   *pipe
}

// NewStream makes a stream with status 200 that the client has to have read within the time: what
// waits for it is taken from others.
func NewStream(w http.ResponseWriter, within time.Duration) *Stream {
	return newStream(w, within, "application/json; charset=utf-8")
}

// NewLines is NewStream for JSON lines.
func NewLines(w http.ResponseWriter, within time.Duration) *Stream {
	return newStream(w, within, "application/jsonl")
}

func newStream(w http.ResponseWriter, within time.Duration, content string) *Stream {
	p := &pipe{w: w, control: http.NewResponseController(w), end: time.Now().Add(within), content: content}
	return &Stream{bufio.NewWriterSize(p, 64<<10), p}
}

// Text writes JSON as it is.
func (s *Stream) Text(text string) error {
	_, err := s.buffer.WriteString(text)
	return err
}

// Value writes v as JSON.
func (s *Stream) Value(v any) error {
	text, err := json.Marshal(v)
	if err == nil {
		_, err = s.buffer.Write(text)
	}
	return err
}

// Line writes JSON as a line of its own.
func (s *Stream) Line(text json.RawMessage) error {
	if _, err := s.buffer.Write(text); err != nil {
		return err
	}
	return s.buffer.WriteByte('\n')
}

// Close sends what is left.
func (s *Stream) Close() error { return s.buffer.Flush() }

// Fail returns err while nothing has gone out, for the handler to return. Afterwards the
// connection is cut, so that nobody takes a part for the whole.
func (s *Stream) Fail(err error) error {
	if err != nil && s.pipe.began {
		panic(http.ErrAbortHandler)
	}
	return err
}

// pipe sends; a client may be slow, but not stand still.
type pipe struct {
	w       http.ResponseWriter
	control *http.ResponseController
	end     time.Time
	content string
	began   bool
}

// standstill is the longest that a client may take for a piece.
const standstill = 30 * time.Second

func (p *pipe) Write(b []byte) (int, error) {
	if !p.began {
		p.began = true
		describe(p.w)
		p.w.Header().Set("Content-Type", p.content)
		p.w.WriteHeader(http.StatusOK)
	}
	next := time.Now().Add(standstill)
	if next.After(p.end) {
		next = p.end
	}
	_ = p.control.SetWriteDeadline(next) // without one the server's own holds
	return p.w.Write(b)
}
