package lms

import (
	"context"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/registrar-dev/registrar/internal/kit/decimal"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/seal"
)

// Deep Linking 2.0: somebody who teaches chooses in the LMS what a course links to. The LMS sends the browser with a message as it
// does for a launch; Choose keeps what it asks for while the person looks through the catalog, and Chosen ends that, once. The
// answer goes back through the browser, signed with our key.

const (
	// choiceLife is how long a person may look through the catalog.
	choiceLife = 2 * time.Hour
	// answerLife is how long the LMS may take the answer.
	answerLife = 5 * time.Minute
	// linkType is the one type of items that we have.
	linkType = "ltiResourceLink"
	// MaxChosen is how many items one answer may have.
	MaxChosen = 50
)

// ItemParameter is the custom parameter of a link that says which item it opens.
const ItemParameter = "registrar_item"

// deepLinking is the claim of a message of the type Chooses.
type deepLinking struct {
	ReturnURL string          `json:"deep_link_return_url"`
	Types     []string        `json:"accept_types"`
	Targets   []string        `json:"accept_presentation_document_targets"`
	Multiple  bool            `json:"accept_multiple"`
	LineItem  *bool           `json:"accept_lineitem"`
	Data      json.RawMessage `json:"data"`
}

func (d deepLinking) check() error {
	switch {
	case d.ReturnURL == "":
		return refuse("deep_linking_settings", "its deep_link_return_url is required")
	case !slices.Contains(d.Types, linkType):
		return refuse("deep_linking_settings", "the LMS takes no links to work here: its accept_types lack "+linkType)
	}
	return nil
}

func (d deepLinking) request(deployment string) *ChoiceRequest {
	return &ChoiceRequest{Deployment: deployment, ReturnURL: d.ReturnURL, Multiple: d.Multiple, Marks: d.LineItem == nil || *d.LineItem,
		Frame: slices.Contains(d.Targets, "iframe"), Window: slices.Contains(d.Targets, "window"), Data: d.Data}
}

// ChoiceRequest is what an LMS asks for.
type ChoiceRequest struct {
	Deployment string `json:"deployment"`
	ReturnURL  string `json:"return_url"` // where the browser takes the answer
	Multiple   bool   `json:"multiple"`   // several items at once
	Marks      bool   `json:"marks"`      // columns of marks may come with the links; so, too, where the LMS does not say
	Frame      bool   `json:"frame"`      // links may open within the LMS's page,
	Window     bool   `json:"window"`     // or in a window of their own
	Data       []byte `json:"data"`       // JSON that goes back as it came; nil: there is none
}

// Choice is one that is under way.
type Choice struct {
	ChoiceRequest

	Registration     id.Registration
	Issuer, ClientID string
}

// Teaches says whether the LMS sends the person as somebody who has a say in what a course has.
func (m Message) Teaches() bool {
	return slices.ContainsFunc(m.Roles, func(role string) bool {
		role = strings.ToLower(role)
		return slices.ContainsFunc([]string{"instructor", "administrator", "contentdeveloper", "faculty", "sysadmin"},
			func(name string) bool { return strings.Contains(role, name) })
	})
}

// Choose takes the launch of the state, and begins a choice in its stead. It gives the text that the person's page has to show. That
// the address of the answer is the LMS's is what its signature says; the specification names no other sign. Invalid for an address
// that no browser is sent to, and for a launch that was taken.
func (s Service) Choose(
	ctx context.Context, org id.Organization, r id.Registration, state string, c ChoiceRequest, now time.Time,
) (token string, err error) {
	if c.ReturnURL, err = s.returnURL(c.ReturnURL); err != nil {
		return "", err
	}
	token = seal.Token()
	return token, s.DB.InTx(ctx, func(tx *pg.Tx) error {
		if err := Finish(ctx, tx, org, state, now); err != nil {
			return err
		}
		return insertChoice(ctx, tx, org, seal.Hash(token), Choice{ChoiceRequest: c, Registration: r}, now.Add(choiceLife))
	})
}

// returnURL checks an address that goes into a page and its policy, where some characters of a host would end what they stand in.
func (s Service) returnURL(address string) (string, error) {
	kept, err := s.Policy.CheckURL("deep_link_return_url", address)
	if err != nil {
		return "", err
	}
	u, err := url.Parse(kept)
	if err != nil || strings.Trim(u.Host, "abcdefghijklmnopqrstuvwxyz0123456789.-_:[]") != "" {
		return "", refuse("deep_link_return_url", "it is no address of a site")
	}
	return kept, nil
}

var errChoice = fault.Field("choice", "used", "choice: it was sent already, took too long, or was not begun here; begin it in the LMS again")

// Choosing finds the choice that a page shows. Invalid (used) for one that has ended, is over or never was.
func (s Service) Choosing(ctx context.Context, org id.Organization, token string, now time.Time) (Choice, error) {
	c, err := selectChoice(ctx, s.DB, org, seal.Hash(token), now)
	if pg.None(err) {
		return c, errChoice
	}
	return c, err
}

// Chosen ends a choice: of several at once, one. Invalid (used) for the others.
func (s Service) Chosen(ctx context.Context, org id.Organization, token string, now time.Time) error {
	err := deleteChoice(ctx, s.DB, org, seal.Hash(token), now)
	if pg.None(err) {
		return errChoice
	}
	return err
}

// ChosenItem is one that an LMS is to make a link to.
type ChosenItem struct {
	Name     string // as ItemParameter has it, such as quiz/7
	Title    string
	Link     string // the address of the link
	MaxScore decimal.Number
}

// link is an item of the answer.
type link struct {
	Type   string            `json:"type"`
	Title  string            `json:"title"`
	URL    string            `json:"url"`
	Custom map[string]string `json:"custom"`
	Frame  *struct{}         `json:"iframe,omitempty"`
	Window *target           `json:"window,omitempty"`
	Line   *column           `json:"lineItem,omitempty"`
}

type target struct {
	Name string `json:"targetName"`
}

type column struct {
	Max      decimal.Number `json:"scoreMaximum"`
	Label    string         `json:"label"`
	Resource string         `json:"resourceId"`
}

// answer is the message that goes back.
type answer struct {
	jwt.Claims

	Nonce      string          `json:"nonce"`
	Type       string          `json:"https://purl.imsglobal.org/spec/lti/claim/message_type"`
	Version    string          `json:"https://purl.imsglobal.org/spec/lti/claim/version"`
	Deployment string          `json:"https://purl.imsglobal.org/spec/lti/claim/deployment_id"`
	Items      []link          `json:"https://purl.imsglobal.org/spec/lti-dl/claim/content_items"`
	Data       json.RawMessage `json:"https://purl.imsglobal.org/spec/lti-dl/claim/data,omitempty"`
	Text       string          `json:"https://purl.imsglobal.org/spec/lti-dl/claim/msg,omitempty"`
}

// Answer is what the LMS gets, to be signed. No items say that nothing was chosen; text is shown to the person, "" for none.
func (c Choice) Answer(items []ChosenItem, text string, now time.Time) any {
	a := answer{Claims: jwt.Claims{Issuer: c.ClientID, Audience: jwt.Audience{c.Issuer}, IssuedAt: jwt.NewNumericDate(now), Expiry: jwt.NewNumericDate(now.Add(answerLife))},
		Nonce: seal.Token(), Type: "LtiDeepLinkingResponse", Version: "1.3.0", Deployment: c.Deployment, Items: []link{}, Data: c.Data, Text: text}
	for _, i := range items {
		l := link{Type: linkType, Title: i.Title, URL: i.Link, Custom: map[string]string{ItemParameter: i.Name}}
		if c.Frame {
			l.Frame = &struct{}{}
		}
		if c.Window {
			l.Window = &target{"_blank"}
		}
		if c.Marks {
			l.Line = &column{i.MaxScore, i.Title, i.Name}
		}
		a.Items = append(a.Items, l)
	}
	return a
}
