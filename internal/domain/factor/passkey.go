package factor

import (
	"context"
	"encoding/json"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/go-webauthn/webauthn/protocol"
	"github.com/go-webauthn/webauthn/webauthn"

	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/seal"
)

// New makes a Service for the site at publicURL. Passkeys belong to its host. One that is an address and
// no name can have none.
func New(db *pg.DB, box *seal.Box, publicURL string) *Service {
	s := &Service{DB: db, Box: box, site: "Registrar"}
	u, err := url.Parse(publicURL)
	if err != nil || protocol.ValidateRPID(u.Hostname()) != nil {
		return s
	}
	s.site = u.Hostname()
	wait := webauthn.TimeoutConfig{Timeout: ceremony, TimeoutUVD: ceremony, Enforce: true}
	s.relying, err = webauthn.New(&webauthn.Config{RPID: u.Hostname(), RPDisplayName: s.site, RPOrigins: []string{u.Scheme + "://" + u.Host},
		AttestationPreference: protocol.PreferNoAttestation,
		AuthenticatorSelection: protocol.AuthenticatorSelection{
			ResidentKey: protocol.ResidentKeyRequirementRequired, UserVerification: protocol.VerificationRequired},
		Timeouts: webauthn.TimeoutsConfig{Login: wait, Registration: wait}})
	if err != nil {
		s.relying = nil
	}
	return s
}

// ceremony is how long a person may take to use a passkey.
const ceremony = 5 * time.Minute

// Passkeys says whether the site can have passkeys.
func (s *Service) Passkeys() bool { return s.relying != nil }

// Ceremony is a question to a browser's passkeys: Options are what the browser gets, State is kept in the
// session until the answer, and taken out of it then, so that each answer counts once.
type Ceremony struct {
	Options string // JSON
	State   string
}

var errNoPasskeys = fault.New(fault.Conflict, "no_passkeys", "This site can have no passkeys, as its address is no name.")

// person is what the library wants of one. Its id names the account and shows nothing else.
type person struct {
	user  id.User
	email string
	keys  []webauthn.Credential
}

const handlePrefix = "user "

func (p person) WebAuthnID() []byte {
	return []byte(handlePrefix + strconv.FormatInt(int64(p.user), 10))
}
func (p person) WebAuthnName() string                       { return p.email }
func (p person) WebAuthnDisplayName() string                { return p.email }
func (p person) WebAuthnCredentials() []webauthn.Credential { return p.keys }

func (s *Service) person(ctx context.Context, user id.User, email string) (person, error) {
	rows, err := selectPasskeys(ctx, s.DB, user)
	if err != nil {
		return person{}, err
	}
	p := person{user: user, email: email}
	for _, row := range rows {
		text, err := s.Box.Open(ctx, row.Sealed, place(row.ID))
		if err != nil {
			return person{}, err
		}
		var key webauthn.Credential
		if err := json.Unmarshal(text, &key); err != nil {
			return person{}, err
		}
		p.keys = append(p.keys, key)
	}
	return p, nil
}

// AskNew asks a browser for a new passkey of the person, on a device that has none of theirs yet.
func (s *Service) AskNew(ctx context.Context, user id.User, email string) (Ceremony, error) {
	if s.relying == nil {
		return Ceremony{}, errNoPasskeys
	}
	p, err := s.person(ctx, user, email)
	if err != nil {
		return Ceremony{}, err
	}
	options, state, err := s.relying.BeginRegistration(p, webauthn.WithExclusions(webauthn.Credentials(p.keys).CredentialDescriptors()))
	if err != nil {
		return Ceremony{}, err
	}
	return ceremonyOf(forNew, options.Response, state)
}

// Ask asks a browser for a passkey: one of the person's or, for the zero user, any of the site's.
func (s *Service) Ask(ctx context.Context, user id.User) (Ceremony, error) {
	if s.relying == nil {
		return Ceremony{}, errNoPasskeys
	}
	if user == 0 {
		options, state, err := s.relying.BeginDiscoverableLogin()
		if err != nil {
			return Ceremony{}, err
		}
		return ceremonyOf(forUse, options.Response, state)
	}
	p, err := s.person(ctx, user, "")
	if err != nil {
		return Ceremony{}, err
	}
	options, state, err := s.relying.BeginLogin(p)
	if err != nil {
		return Ceremony{}, err
	}
	return ceremonyOf(forUse, options.Response, state)
}

// An answer is to the question that was asked: what a passkey shows who somebody is with adds none.
const (
	forNew = "new "
	forUse = "use "
)

func ceremonyOf(purpose string, options, state any) (c Ceremony, err error) {
	for into, from := range map[*string]any{&c.Options: options, &c.State: state} {
		text, err := json.Marshal(from)
		if err != nil {
			return Ceremony{}, err
		}
		*into = string(text)
	}
	c.State = purpose + c.State
	return c, nil
}

func stateOf(purpose, text string) (webauthn.SessionData, bool) {
	var state webauthn.SessionData
	text, ok := strings.CutPrefix(text, purpose)
	err := json.Unmarshal([]byte(text), &state)
	return state, ok && err == nil && state.Challenge != ""
}

// AddPasskey stores the passkey with which a browser answered AskNew. The person's first factor comes
// with recovery codes. Unauthenticated (ErrRefused) for an answer that does not fit; Invalid on name;
// Conflict: factor_limit, factor_exists.
func (s *Service) AddPasskey(
	ctx context.Context, tx *pg.Tx, user id.User, name, state, answer string, now time.Time,
) (Factor, []string, error) {
	name, err := checkName(name)
	if err != nil {
		return Factor{}, nil, err
	}
	asked, ok := stateOf(forNew, state)
	parsed, err := protocol.ParseCredentialCreationResponseBytes([]byte(answer))
	if !ok || err != nil || s.relying == nil {
		return Factor{}, nil, ErrRefused
	}
	key, err := s.relying.CreateCredential(person{user: user}, asked, parsed)
	if err != nil {
		return Factor{}, nil, ErrRefused
	}
	key.Attestation = webauthn.CredentialAttestation{} // nothing is made of it
	text, err := json.Marshal(key)
	if err != nil {
		return Factor{}, nil, err
	}
	f := Factor{ID: newID(), Kind: Passkey, Name: name, CreatedAt: now}
	recovery, err := s.add(ctx, tx, user, f, text, key.ID, 0)
	return f, recovery, err
}

// CheckPasskey takes the answer to Ask, once, and says whose passkey it was: the one of the user who was
// asked, if any. Unauthenticated (ErrRefused) for any other, and for a copy of a device's key that has
// been used beside it.
func (s *Service) CheckPasskey(ctx context.Context, state, answer string, now time.Time) (id.User, error) {
	asked, ok := stateOf(forUse, state)
	parsed, err := protocol.ParseCredentialRequestResponseBytes([]byte(answer))
	if !ok || err != nil || s.relying == nil {
		return 0, ErrRefused
	}
	row, err := selectPasskey(ctx, s.DB, parsed.RawID)
	if pg.None(err) {
		return 0, ErrRefused
	}
	if err != nil {
		return 0, err
	}
	p, err := s.person(ctx, row.User, "")
	if err != nil {
		return 0, err
	}
	var key *webauthn.Credential
	if len(asked.UserID) > 0 {
		key, err = s.relying.ValidateLogin(p, asked, parsed)
	} else {
		key, err = s.relying.ValidateDiscoverableLogin(func(_, _ []byte) (webauthn.User, error) { return p, nil }, asked, parsed)
	}
	if err != nil || key.Authenticator.CloneWarning {
		return 0, ErrRefused
	}
	text, err := json.Marshal(key)
	if err != nil {
		return 0, err
	}
	sealed, err := s.Box.Seal(ctx, text, place(row.ID))
	if err != nil {
		return 0, err
	}
	// It may have been removed meanwhile.
	there, err := updatePasskey(ctx, s.DB, row.ID, sealed, now)
	if err == nil && !there {
		err = ErrRefused
	}
	return row.User, err
}
