package lms

import (
	"crypto/rsa"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/registrar-dev/registrar/internal/kit/fault"
)

// The types of messages: a person opens a link in a course, or chooses what it links to.
const (
	OpensLink = "LtiResourceLinkRequest"
	Chooses   = "LtiDeepLinkingRequest"
)

// Message is what an LMS says in a token that was checked.
type Message struct {
	Deployment string
	Target     string // the address that was to be opened
	Subject    string // the person, as the LMS calls them
	Email      string // "": the LMS does not say it
	FirstName  string
	LastName   string
	Roles      []string
	Link       string // the id of the link in its course
	Nonce      string
	Item       string         // what was chosen for the link (ItemParameter); "": Target alone says it
	LineItem   string         // the address of the column of marks of the link; "": the LMS wants none
	Course     Course         // that the message comes from; the zero Course: the LMS does not list its people
	Choice     *ChoiceRequest // of a message of the type Chooses
}

// claim begins the names of LTI's own claims.
const claim = "https://purl.imsglobal.org/spec/lti/claim/"

type claims struct {
	jwt.Claims

	AuthorizedParty string   `json:"azp"`
	Nonce           string   `json:"nonce"`
	Email           string   `json:"email"`
	Name            string   `json:"name"`
	GivenName       string   `json:"given_name"`
	FamilyName      string   `json:"family_name"`
	Type            string   `json:"https://purl.imsglobal.org/spec/lti/claim/message_type"`
	Version         string   `json:"https://purl.imsglobal.org/spec/lti/claim/version"`
	Deployment      string   `json:"https://purl.imsglobal.org/spec/lti/claim/deployment_id"`
	Target          string   `json:"https://purl.imsglobal.org/spec/lti/claim/target_link_uri"`
	Roles           []string `json:"https://purl.imsglobal.org/spec/lti/claim/roles"`
	Link            struct {
		ID string `json:"id"`
	} `json:"https://purl.imsglobal.org/spec/lti/claim/resource_link"`
	Custom struct {
		Item string `json:"registrar_item"` // ItemParameter
	} `json:"https://purl.imsglobal.org/spec/lti/claim/custom"`
	Course      json.RawMessage `json:"https://purl.imsglobal.org/spec/lti/claim/context"`
	Names       json.RawMessage `json:"https://purl.imsglobal.org/spec/lti-nrps/claim/namesroleservice"`
	DeepLinking deepLinking     `json:"https://purl.imsglobal.org/spec/lti-dl/claim/deep_linking_settings"`
	Grades      struct {
		LineItem string   `json:"lineitem"`
		Scope    []string `json:"scope"`
	} `json:"https://purl.imsglobal.org/spec/lti-ags/claim/endpoint"`
}

const (
	// maxToken is in bytes.
	maxToken = 64 << 10
	// messageAge is how old a message may be, whatever it says of its end.
	messageAge = 10 * time.Minute
	// leeway is how far an LMS's clock may be off.
	leeway = 2 * time.Minute
	// maxSubject is in characters, of ASCII alone: the specification's limit.
	maxSubject = 255
)

// Bounds of the RSA keys that are used, in bits: fewer are not safe, and more cost whoever checks too much.
const (
	minBits = 2048
	maxBits = 8192
)

// maxKeys is how many keys of a set are read.
const maxKeys = 100

// ErrSignature is for tokens that the LMS did not sign, as far as its keys say.
var ErrSignature = fault.Field("id_token", "launch_refused",
	"id_token: no key at the registration's keys_url has signed it with RS256; check that address against what the LMS says")

// ErrUnknownKey says that the LMS's set, as it is at hand, lacks the key of a token: the LMS may have a new one, so the set
// is to be fetched again, once.
var ErrUnknownKey = errors.New("lms: the token's key is not in the set")

// ReadMessage checks a token (id_token) of the LMS r with its keys. RS256 alone is taken: what the specification demands.
// Invalid for one that is not to be taken; ErrUnknownKey.
func ReadMessage(token string, keys jose.JSONWebKeySet, r Registration, now time.Time) (Message, error) {
	if len(token) > maxToken {
		return Message{}, fault.Field("id_token", "not_a_launch", "id_token: longer than %d KiB", maxToken>>10)
	}
	parsed, err := jwt.ParseSigned(token, []jose.SignatureAlgorithm{jose.RS256})
	if err != nil || len(parsed.Headers) != 1 {
		return Message{}, ErrSignature
	}
	key, err := keyOf(parsed.Headers[0], keys)
	if err != nil {
		return Message{}, err
	}
	if parsed.Claims(key) != nil {
		return Message{}, ErrSignature
	}
	var c claims
	if parsed.UnsafeClaimsWithoutVerification(&c) != nil { // verified right before
		return Message{}, refuse("id_token", "its claims are not of the types that LTI 1.3 says")
	}
	if err := c.checkToken(r, now); err != nil {
		return Message{}, err
	}
	if err := c.checkMessage(r); err != nil {
		return Message{}, err
	}
	return c.message(), nil
}

// keyOf finds the key that a token names. A set of one key may leave out its name.
func keyOf(h jose.Header, keys jose.JSONWebKeySet) (any, error) {
	var found []jose.JSONWebKey
	for _, k := range keys.Keys {
		if h.KeyID == "" || k.KeyID == h.KeyID {
			found = append(found, k)
		}
	}
	switch {
	case len(found) == 1:
		return found[0].Key, nil
	case h.KeyID == "" && len(found) > 1:
		return nil, refuse("id_token", "its header names no key (kid), and the LMS has several")
	}
	return nil, ErrUnknownKey
}

func refuse(name, why string) error {
	return fault.Field(strings.TrimPrefix(name, claim), "not_a_launch", "%s: %s", strings.TrimPrefix(name, claim), why)
}

// checkToken checks what OpenID Connect says of every token.
func (c claims) checkToken(r Registration, now time.Time) error {
	late := func(why string) error {
		return fault.Field("id_token", "not_fresh", "id_token: %s, or the clock of the LMS is wrong; open the link in the LMS again", why)
	}
	switch {
	case c.Issuer != r.Issuer:
		return refuse("iss", "it is not the issuer of the registration")
	case !c.Audience.Contains(r.ClientID):
		return refuse("aud", "it is not for the client id of the registration")
	case len(c.Audience) > 1 && c.AuthorizedParty == "":
		return refuse("azp", "required where there are several audiences")
	case c.AuthorizedParty != "" && c.AuthorizedParty != r.ClientID:
		return refuse("azp", "it is not the client id of the registration")
	case c.Expiry == nil:
		return refuse("exp", "required")
	case c.IssuedAt == nil:
		return refuse("iat", "required")
	case now.After(c.Expiry.Time().Add(leeway)):
		return late("it is over")
	case now.After(c.IssuedAt.Time().Add(messageAge + leeway)):
		return late("it is too old")
	case now.Before(c.IssuedAt.Time().Add(-leeway)), c.NotBefore != nil && now.Before(c.NotBefore.Time().Add(-leeway)):
		return late("it is of the future")
	case c.Nonce == "":
		return refuse("nonce", "required")
	}
	return nil
}

// checkMessage checks what LTI says of messages.
func (c claims) checkMessage(r Registration) error {
	switch {
	case c.Version != "1.3.0":
		return refuse(claim+"version", "it has to be 1.3.0")
	case c.Type != OpensLink && c.Type != Chooses:
		return refuse(claim+"message_type", "it has to be "+OpensLink+" or "+Chooses)
	case !slices.Contains(r.Deployments, c.Deployment):
		return refuse(claim+"deployment_id", "the registration does not list this deployment; an owner or admin adds it in the console, under LMS")
	case c.Type == OpensLink && c.Target == "":
		return refuse(claim+"target_link_uri", "required")
	case c.Type == OpensLink && (c.Link.ID == "" || len(c.Link.ID) > maxSubject):
		return refuse(claim+"resource_link", "its id is required, of at most 255 characters")
	case c.Subject == "":
		return refuse("sub", "nobody is named; work is not opened for people without a name")
	case len(c.Subject) > maxSubject || !plain(c.Subject):
		return refuse("sub", "it may have 255 characters of ASCII")
	case c.Type == Chooses:
		return c.DeepLinking.check()
	}
	return nil
}

func (c claims) message() Message {
	m := Message{Deployment: c.Deployment, Target: c.Target, Subject: c.Subject, Email: strings.TrimSpace(c.Email), FirstName: c.GivenName, LastName: c.FamilyName,
		Roles: c.Roles, Link: c.Link.ID, Nonce: c.Nonce, Item: c.Custom.Item, Course: readCourse(c.Course, c.Names)}
	if c.Type == Chooses {
		m.Choice = c.DeepLinking.request(c.Deployment)
	}
	if slices.Contains(c.Grades.Scope, ScoreScope) {
		m.LineItem = c.Grades.LineItem
	}
	if strings.TrimSpace(m.FirstName) == "" {
		first, last, _ := strings.Cut(strings.TrimSpace(c.Name), " ")
		m.FirstName = first
		if m.LastName == "" {
			m.LastName = last
		}
	}
	return m
}

// ReadKeys reads an LMS's set of keys. What is no RSA key to sign with, or one that is too small or too large, is left out: sets
// have keys for other uses, too.
func ReadKeys(text []byte) (set jose.JSONWebKeySet, err error) {
	var raw struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(text, &raw); err != nil {
		return set, err
	}
	for _, one := range raw.Keys[:min(len(raw.Keys), maxKeys)] {
		var k jose.JSONWebKey
		if k.UnmarshalJSON(one) == nil && signs(k) {
			set.Keys = append(set.Keys, k)
		}
	}
	return set, nil
}

func signs(k jose.JSONWebKey) bool {
	public, isRSA := k.Key.(*rsa.PublicKey)
	return isRSA && public.N.BitLen() >= minBits && public.N.BitLen() <= maxBits && k.Valid() &&
		(k.Use == "" || k.Use == "sig") && (k.Algorithm == "" || k.Algorithm == string(jose.RS256))
}
