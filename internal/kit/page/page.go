// Package page makes the cursors of lists: opaque texts that say where the next page of a
// list begins.
//
// A cursor carries the organization, the list, a hash of the filters and the position,
// and is signed, so that it works for nothing else. It never expires: the signing key is
// drawn once for a database and stored in it, sealed with the programs' secret keyset, so
// that a stored cursor stays valid with new replicas and rotated keysets.
package page

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"slices"
	"strings"
	"sync"

	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/seal"
)

// List is what a cursor belongs to.
type List struct {
	Organization id.Organization
	Name         string // "results"
	// Filters are what the rows were chosen by, each as name=value, in any order. What
	// only shapes or bounds a page (limit, tz, since, until) is not among them.
	Filters []string
}

// Position is a position in a list: the values by which the last row that was read is
// ordered, most significant first. The zero Position is before the first row.
type Position []int64

// At is the i-th number of the position, or zero where it has none.
func (p Position) At(i int) int64 {
	if i < len(p) {
		return p[i]
	}
	return 0
}

// Cursors encodes and decodes. It is safe for use by many goroutines.
type Cursors struct {
	DB  *pg.DB
	box *seal.Box

	mu  sync.Mutex
	key []byte // nil until it was needed
}

// New makes a Cursors, which reads its key when it first needs it.
func New(db *pg.DB, box *seal.Box) *Cursors { return &Cursors{DB: db, box: box} }

const (
	version  = 1
	macSize  = 16
	hashSize = 8
	maxText  = 1000 // of a cursor, which has some 60 characters
)

// Encode makes the cursor of a position.
func (c *Cursors) Encode(ctx context.Context, l List, p Position) (string, error) {
	key, err := c.signingKey(ctx)
	if err != nil {
		return "", err
	}
	return encode(key, l, p), nil
}

// Decode reads a cursor of the list; "" is the zero Position. Invalid (invalid_cursor)
// when it is damaged, or was made for another organization, list or set of filters.
func (c *Cursors) Decode(ctx context.Context, l List, cursor string) (Position, error) {
	if cursor == "" {
		return nil, nil
	}
	key, err := c.signingKey(ctx)
	if err != nil {
		return nil, err
	}
	return decode(key, l, cursor)
}

// Epochs are the numbers that a list draws its positions from (migration 00090).
type Epochs string

// The numbers. Students and events share some.
const (
	Positions   Epochs = "positions"
	Assignments Epochs = "assignments"
	Results     Epochs = "results"
)

// Lost says whether the database came back with an earlier state since the position of a list was read,
// so that rows up to it may be gone. Nothing after it is passed over in any case.
func Lost(ctx context.Context, q pg.Querier, org id.Organization, e Epochs, position int64) (l Loss, lost bool, err error) {
	l, err = selectLoss(ctx, q, org, string(e), position)
	if pg.None(err) {
		return Loss{}, false, nil
	}
	return l, err == nil, err
}

func encode(key []byte, l List, p Position) string {
	b := head(l)
	for _, n := range p {
		b = binary.AppendVarint(b, n)
	}
	return base64.RawURLEncoding.EncodeToString(append(b, sign(key, b)...))
}

// head is what every cursor of the list begins with.
func head(l List) []byte {
	b := binary.AppendUvarint([]byte{version}, uint64(l.Organization))
	b = binary.AppendUvarint(b, uint64(len(l.Name)))
	b = append(b, l.Name...)
	return append(b, hash(l.Filters)...)
}

func hash(filters []string) []byte {
	filters = slices.Sorted(slices.Values(filters))
	sum := sha256.Sum256([]byte(strings.Join(filters, "\x00")))
	return sum[:hashSize]
}

func sign(key, b []byte) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write(b)
	return mac.Sum(nil)[:macSize]
}

func decode(key []byte, l List, cursor string) (Position, error) {
	if len(cursor) > maxText || strings.ContainsAny(cursor, "\r\n") { // which base64 passes over
		return nil, errDamaged
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	if err != nil || len(b) < macSize {
		return nil, errDamaged
	}
	b, mac := b[:len(b)-macSize], b[len(b)-macSize:]
	if !hmac.Equal(mac, sign(key, b)) {
		return nil, errDamaged
	}
	// A signed cursor is whole: what differs now is where it is used.
	rest, ok := strings.CutPrefix(string(b), string(head(l)))
	if !ok {
		return nil, errForeign
	}
	p := Position{}
	for numbers := []byte(rest); len(numbers) > 0; {
		n, size := binary.Varint(numbers)
		if size <= 0 {
			return nil, errDamaged
		}
		p, numbers = append(p, n), numbers[size:]
	}
	return p, nil
}

var (
	errDamaged = fault.Field("cursor", "invalid_cursor", "cursor: it is damaged; send next_cursor exactly as it was received")
	errForeign = fault.Field("cursor", "invalid_cursor",
		"cursor: it was made for another list or with other filters; send it with the filters of the request that gave it, or begin without a cursor")
)

// keyContext is what the sealed key is bound to.
const keyContext = "page_keys/1"

func (c *Cursors) signingKey(ctx context.Context) ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.key != nil {
		return c.key, nil
	}
	sealed, err := selectKey(ctx, c.DB)
	if pg.None(err) {
		sealed, err = c.draw(ctx)
	}
	if err != nil {
		return nil, err
	}
	c.key, err = c.box.Open(ctx, sealed, keyContext)
	return c.key, err
}

// draw stores a new key, unless another process was faster, and returns what is stored.
func (c *Cursors) draw(ctx context.Context) ([]byte, error) {
	fresh := make([]byte, 32)
	_, _ = rand.Read(fresh) // never fails
	sealed, err := c.box.Seal(ctx, fresh, keyContext)
	if err != nil {
		return nil, err
	}
	if err := insertKey(ctx, c.DB, sealed); err != nil {
		return nil, err
	}
	return selectKey(ctx, c.DB)
}
