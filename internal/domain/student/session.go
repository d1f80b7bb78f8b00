package student

import (
	"context"

	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// Sessions stores the sessions of signed-in browsers: data is a JSON object whose
// values.user names the account, if anybody is signed in, and values.proof what the session proves
// (Proof). Tokens arrive hashed.
type Sessions struct{ DB *pg.DB }

// Open is a session as its person may see it. Agent, From, Began, Used and UsedFrom are what the
// session holds under the names agent, from, began, used and used_from; "" for none. Name tells it from
// the person's others and opens nothing.
type Open struct {
	Name                               string
	Agent, From, Began, Used, UsedFrom string
	Current                            bool
}

// maxOpen bounds a person's list of sessions.
const maxOpen = 50

// Find reads a session that has not expired.
func (s Sessions) Find(ctx context.Context, hash string) (data []byte, found bool, err error) {
	data, err = selectSession(ctx, s.DB, hash)
	if pg.None(err) {
		return nil, false, nil
	}
	return data, err == nil, err
}
