package roster

import (
	"context"
	"errors"
	"io"

	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// chunkSize is how many bytes of an upload are in memory at a time, on its way in and out.
const chunkSize = 256 << 10

// ErrTooLarge refuses an upload over MaxUpload.
var ErrTooLarge = fault.New(fault.TooLarge, "file_too_large", "the file is over %d MB; send fewer people at a time, or a zip archive", MaxUpload>>20)

// Store copies an upload into the run's chunks and returns its size in bytes. TooLarge
// over MaxUpload; what was stored then goes with Abandon.
func Store(ctx context.Context, q pg.Querier, run id.RosterRun, from io.Reader) (int64, error) {
	buffer := make([]byte, chunkSize)
	var size int64
	for n := 0; ; n++ {
		filled, err := io.ReadFull(from, buffer)
		if size += int64(filled); size > MaxUpload {
			return size, ErrTooLarge
		}
		if filled > 0 {
			if err := insertChunk(ctx, q, run, n, buffer[:filled]); err != nil {
				return size, err
			}
		}
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF) && filled < chunkSize && ended(from):
			return size, nil
		case err != nil:
			return size, err
		}
	}
}

// ended tells a short last chunk from a source that broke off: ReadFull calls both an
// unexpected end.
func ended(from io.Reader) bool {
	_, err := from.Read(make([]byte, 1))
	return errors.Is(err, io.EOF)
}

// Upload reads a run's chunks as one file; it keeps a few of them.
type Upload struct {
	ctx   context.Context
	q     pg.Querier
	run   id.RosterRun
	size  int64
	kept  map[int][]byte
	order []int
}

// keptChunks serve an archive's list at its end beside two sections that are read in turn.
const keptChunks = 4

// OpenUpload reads the upload of r while ctx lives.
func OpenUpload(ctx context.Context, q pg.Querier, r Run) *Upload {
	return &Upload{ctx: ctx, q: q, run: r.ID, size: r.Size, kept: map[int][]byte{}}
}

// ReadAt implements io.ReaderAt.
func (u *Upload) ReadAt(p []byte, off int64) (int, error) {
	read := 0
	for read < len(p) && off < u.size {
		chunk, err := u.chunk(int(off / chunkSize))
		if err != nil {
			return read, err
		}
		from := off % chunkSize
		if from >= int64(len(chunk)) {
			return read, io.ErrUnexpectedEOF
		}
		n := copy(p[read:], chunk[from:])
		read, off = read+n, off+int64(n)
	}
	if read < len(p) {
		return read, io.EOF
	}
	return read, nil
}

func (u *Upload) chunk(n int) ([]byte, error) {
	if data, ok := u.kept[n]; ok {
		return data, nil
	}
	data, err := selectChunk(u.ctx, u.q, u.run, n)
	if err != nil {
		return nil, err
	}
	if len(u.order) == keptChunks {
		delete(u.kept, u.order[0])
		u.order = u.order[1:]
	}
	u.kept[n], u.order = data, append(u.order, n)
	return data, nil
}
