package lms

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"maps"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/egress"
	"github.com/registrar-dev/registrar/internal/kit/fault"
)

var (
	first, second = newKey("k1", 2048), newKey("k2", 2048)
	noon          = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	school        = Registration{Issuer: "https://lms.school", ClientID: "client-1", Deployments: []string{"d1"}}
)

// What a message has to say, and what each fault is answered with. docs/lti.md lists them by their names.
func TestMessages(t *testing.T) {
	t.Parallel()
	set := jose.JSONWebKeySet{Keys: []jose.JSONWebKey{first.Public()}}
	good := map[string]any{"iss": school.Issuer, "aud": "client-1", "sub": "u1", "iat": noon.Unix(), "exp": noon.Add(time.Minute).Unix(), "nonce": "n",
		claim + "message_type": OpensLink, claim + "version": "1.3.0", claim + "deployment_id": "d1", claim + "target_link_uri": "https://registrar/x",
		claim + "resource_link": map[string]any{"id": "r1"}, claim + "roles": []string{"Learner"}, "email": "ana@school.org", "given_name": "Ana"}
	with := func(name string, v any) map[string]any {
		all := maps.Clone(good)
		if all[name] = v; v == nil {
			delete(all, name)
		}
		return all
	}
	choosing := func(settings map[string]any) map[string]any {
		all := with(claim+"message_type", Chooses)
		delete(all, claim+"target_link_uri")
		delete(all, claim+"resource_link")
		asked := map[string]any{"deep_link_return_url": "https://lms.school/x", "accept_types": []string{"ltiResourceLink"}}
		maps.Copy(asked, settings)
		all[deepLinkingClaim] = asked
		return all
	}
	at := func(name string, d time.Duration) map[string]any { return with(name, noon.Add(d).Unix()) }
	for name, c := range map[string]struct {
		claims map[string]any
		want   string // the fault's code and field; "": it is taken
	}{
		"a good one":                          {good, ""},
		"another issuer":                      {with("iss", "https://other.school"), "not_a_launch iss"},
		"another audience":                    {with("aud", "client-2"), "not_a_launch aud"},
		"no audience":                         {with("aud", nil), "not_a_launch aud"},
		"several audiences without azp":       {with("aud", []string{"client-1", "client-2"}), "not_a_launch azp"},
		"azp of another party":                {with("azp", "client-2"), "not_a_launch azp"},
		"azp that is ours":                    {with("azp", "client-1"), ""},
		"expired":                             {at("exp", -3*time.Minute), "not_fresh id_token"},
		"expired within the leeway":           {at("exp", -time.Minute), ""},
		"without exp":                         {with("exp", nil), "not_a_launch exp"},
		"made long ago, with a late end":      {at("iat", -time.Hour), "not_fresh id_token"},
		"of the future":                       {at("iat", 5*time.Minute), "not_fresh id_token"},
		"of the future within the leeway":     {at("iat", time.Minute), ""},
		"not to be used yet":                  {at("nbf", time.Hour), "not_fresh id_token"},
		"without iat":                         {with("iat", nil), "not_a_launch iat"},
		"without a nonce":                     {with("nonce", nil), "not_a_launch nonce"},
		"another deployment":                  {with(claim+"deployment_id", "d2"), "not_a_launch deployment_id"},
		"without a deployment":                {with(claim+"deployment_id", nil), "not_a_launch deployment_id"},
		"another version":                     {with(claim+"version", "1.1"), "not_a_launch version"},
		"another message":                     {with(claim+"message_type", "LtiSubmissionReviewRequest"), "not_a_launch message_type"},
		"without a person":                    {with("sub", nil), "not_a_launch sub"},
		"a person with a long name":           {with("sub", strings.Repeat("x", 256)), "not_a_launch sub"},
		"a person with a NUL":                 {with("sub", "a\x00b"), "not_a_launch sub"},
		"without a link":                      {with(claim+"resource_link", nil), "not_a_launch resource_link"},
		"without a target":                    {with(claim+"target_link_uri", nil), "not_a_launch target_link_uri"},
		"roles that are no list of texts":     {with(claim+"roles", 7), "not_a_launch id_token"},
		"a time that is a text":               {with("exp", "tomorrow"), "not_a_launch id_token"},
		"longer than 64 KiB":                  {with("name", strings.Repeat("x", 64<<10)), "not_a_launch id_token"},
		"a claim that nobody knows":           {with("https://other.example/claim", "x"), ""},
		"a name alone, without its two parts": {with("given_name", nil), ""},
		"a teacher who chooses":               {choosing(nil), ""},
		"a teacher without an address":        {choosing(map[string]any{"deep_link_return_url": ""}), "not_a_launch deep_linking_settings"},
		"an LMS that takes other items":       {choosing(map[string]any{"accept_types": []string{"html"}}), "not_a_launch deep_linking_settings"},
		"accept_multiple that is no boolean":  {choosing(map[string]any{"accept_multiple": 1}), "not_a_launch id_token"},
		"an item that is no text":             {with(claim+"custom", map[string]any{"registrar_item": 7}), "not_a_launch id_token"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, err := ReadMessage(signed(t, first, jose.RS256, c.claims), set, school, noon)
			check.Equal(t, "fault", codeOf(err), c.want, "%v", err)
			if c.want == "" {
				check.Equal(t, "subject", m.Subject, "u1", "%+v", m)
				check.Equal(t, "email", m.Email, "ana@school.org", "%+v", m)
			}
		})
	}
}

const deepLinkingClaim = "https://purl.imsglobal.org/spec/lti-dl/claim/deep_linking_settings"

func codeOf(err error) string {
	var f *fault.Error
	if errors.As(err, &f) {
		return f.Code + " " + f.Field
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

// Whoever has no private key of the LMS signs nothing: not with another key, not with its public key as a secret, and not with nothing.
func TestSignatures(t *testing.T) {
	t.Parallel()
	claims := map[string]any{"iss": school.Issuer, "aud": "client-1"}
	one, both := jose.JSONWebKeySet{Keys: []jose.JSONWebKey{first.Public()}}, jose.JSONWebKeySet{Keys: []jose.JSONWebKey{first.Public(), second.Public()}}
	pem := func(k jose.JSONWebKey) jose.JSONWebKey {
		text, err := k.Public().MarshalJSON()
		check.NoError(check.Now(t), err, "the public key")
		return jose.JSONWebKey{Key: text, KeyID: k.KeyID}
	}
	unnamed, pretender := first, second
	unnamed.KeyID, pretender.KeyID = "", "k1"
	good := signed(t, first, jose.RS256, claims)
	parts := strings.Split(good, ".")
	for name, c := range map[string]struct {
		token string
		set   jose.JSONWebKeySet
		want  string
	}{
		"a key that the set lacks":         {signed(t, second, jose.RS256, claims), one, ErrUnknownKey.Error()},
		"a key that it has by now":         {signed(t, second, jose.RS256, claims), both, "not_a_launch exp"}, // it is read
		"another key with the name":        {signed(t, pretender, jose.RS256, claims), one, "launch_refused id_token"},
		"no name, of one key":              {signed(t, unnamed, jose.RS256, claims), one, "not_a_launch exp"},
		"no name, of several keys":         {signed(t, unnamed, jose.RS256, claims), both, "not_a_launch id_token"},
		"an empty set":                     {good, jose.JSONWebKeySet{}, ErrUnknownKey.Error()},
		"HS256 with the public key":        {signed(t, pem(first), jose.HS256, claims), one, "launch_refused id_token"},
		"RS512":                            {signed(t, first, jose.RS512, claims), one, "launch_refused id_token"},
		"PS256":                            {signed(t, first, jose.PS256, claims), one, "launch_refused id_token"},
		"none":                             {"eyJhbGciOiJub25lIn0." + parts[1] + ".", one, "launch_refused id_token"},
		"none, with a signature":           {"eyJhbGciOiJub25lIn0." + parts[1] + "." + parts[2], one, "launch_refused id_token"},
		"without its signature":            {parts[0] + "." + parts[1] + ".", one, "launch_refused id_token"},
		"other claims under the signature": {parts[0] + ".e30." + parts[2], one, "launch_refused id_token"},
		"nothing":                          {"", one, "launch_refused id_token"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := ReadMessage(c.token, c.set, school, noon)
			check.Equal(t, "fault", codeOf(err), c.want, "%v", err)
		})
	}
}

// Of an LMS's set only RSA keys of a size that is safe and cheap are taken, for signatures, and without their private part.
func TestKeysThatAreLeftOut(t *testing.T) {
	t.Parallel()
	text := func(k jose.JSONWebKey) string {
		b, err := k.MarshalJSON()
		check.NoError(check.Now(t), err, "a key")
		return string(b)
	}
	small := newKey("s", 1024)
	encrypts, otherwise := first.Public(), first.Public()
	encrypts.Use, otherwise.Algorithm = "enc", "RS512"
	huge := `{"kty":"RSA","kid":"huge","e":"AQAB","n":"` + strings.Repeat("_", 40000) + `"}`
	for name, c := range map[string]struct {
		key   string
		taken int
	}{
		"a good one":           {text(first.Public()), 1},
		"a private one":        {text(first), 0},
		"a small one":          {text(small.Public()), 0},
		"a huge one":           {huge, 0},
		"one for encryption":   {text(encrypts), 0},
		"of another algorithm": {text(otherwise), 0},
		"a secret":             {`{"kty":"oct","kid":"k1","k":"AAAA"}`, 0},
		"on a curve":           {`{"kty":"EC","crv":"P-256","x":"AA","y":"AA"}`, 0},
		"of a kind to come":    {`{"kty":"XYZ"}`, 0},
		"no object":            {`7`, 0},
	} {
		set, err := ReadKeys([]byte(`{"keys": [` + c.key + `]}`))
		check.NoError(t, err, "%s", name)
		check.Equal(t, name, len(set.Keys), c.taken, "")
	}
	many, err := ReadKeys([]byte(`{"keys": [` + strings.Repeat(text(first.Public())+",", 200) + text(first.Public()) + `]}`))
	check.NoError(t, err, "many")
	check.Equal(t, "many", len(many.Keys), maxKeys, "")
	if _, err := ReadKeys([]byte(`<html>`)); err == nil {
		t.Error("a page was read as a set of keys")
	}
}

func newKey(name string, bits int) jose.JSONWebKey {
	k, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		panic(err)
	}
	return jose.JSONWebKey{Key: k, KeyID: name, Use: "sig"}
}

func signed(t *testing.T, key jose.JSONWebKey, by jose.SignatureAlgorithm, claims map[string]any) string {
	t.Helper()
	key.Algorithm = ""
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: by, Key: key}, nil)
	check.NoError(check.Now(t), err, "a signer")
	token, err := jwt.Signed(signer).Claims(claims).Serialize()
	check.NoError(check.Now(t), err, "a token")
	return token
}

// Whatever an LMS sends as its keys or as a token is read or refused.
func FuzzMessage(f *testing.F) {
	public, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{first.Public()}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add("eyJhbGciOiJSUzI1NiJ9.e30.AA", string(public))
	f.Add("eyJhbGciOiJub25lIn0.e30.", `{"keys":[{"kty":"RSA","n":"AQAB","e":"AQAB"}]}`)
	f.Fuzz(func(t *testing.T, token, keys string) {
		set, err := ReadKeys([]byte(keys))
		if err != nil {
			set = jose.JSONWebKeySet{}
		}
		for _, k := range set.Keys {
			check.True(t, "the key is public", k.IsPublic(), "%q", keys)
		}
		if m, err := ReadMessage(token, set, school, noon); err == nil {
			check.Equal(t, "deployment", m.Deployment, "d1", "%q", token)
		}
	})
}

// Whatever stands in a token that is signed is taken as one of this registration, or refused with a fault that names a field.
func FuzzClaims(f *testing.F) {
	f.Add(`{"iss": "https://lms.school", "aud": ["client-1"], "exp": 1e400, "sub": null}`)
	f.Add(`{"aud": {"a": 1}, "exp": -1, "` + claim + `resource_link": []}`)
	set := jose.JSONWebKeySet{Keys: []jose.JSONWebKey{first.Public()}}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: first}, nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, claims string) {
		object, err := signer.Sign([]byte(claims))
		check.NoError(check.Now(t), err, "signing")
		token, err := object.CompactSerialize()
		check.NoError(check.Now(t), err, "signing")
		m, err := ReadMessage(token, set, school, noon)
		if err != nil {
			check.Equal(t, "kind", fault.KindOf(err), fault.Invalid, "%v", err)
			return
		}
		check.True(t, "somebody is named", m.Subject != "" && len(m.Subject) <= maxSubject && plain(m.Subject), "%q", claims)
		check.Equal(t, "deployment", m.Deployment, "d1", "%q", claims)
	})
}

// Whatever an LMS asks for, the answer is a message that can be signed, and says nothing but what is to be said.
func FuzzChoice(f *testing.F) {
	f.Add(`{"deep_link_return_url": "https://lms.school/x", "accept_types": ["ltiResourceLink"], "data": {"a": [1.50, null, "\u2028"]}, "accept_lineitem": false}`)
	f.Add(`{"deep_link_return_url": 7}`)
	f.Add(`{"deep_link_return_url": "https://a;b/", "accept_types": ["ltiResourceLink"], "accept_presentation_document_targets": ["window", "window"], "data": null}`)
	s := Service{Policy: egress.New(egress.Config{})}
	f.Fuzz(func(t *testing.T, settings string) {
		var c claims
		if json.Unmarshal([]byte(`{"`+deepLinkingClaim+`": `+settings+`}`), &c) != nil || c.DeepLinking.check() != nil {
			return
		}
		r := *c.DeepLinking.request("d1")
		text, err := json.Marshal(Choice{ChoiceRequest: r, Issuer: "i", ClientID: "c"}.Answer([]ChosenItem{{Name: "quiz/1", Title: "x", Link: "https://x", MaxScore: 1}}, "", noon))
		check.NoError(check.Now(t), err, "%q", settings)
		check.Equal(t, "columns", strings.Contains(string(text), "scoreMaximum"), r.Marks, "%s", text)
		to, err := s.returnURL(r.ReturnURL)
		if err != nil {
			check.Equal(t, "kind", fault.KindOf(err), fault.Invalid, "%v", err)
			return
		}
		u, err := url.Parse(to)
		check.NoError(check.Now(t), err, "%q", to)
		check.True(t, "it is a site's, by TLS", u.Scheme == "https" && u.User == nil && !strings.ContainsAny(u.Host, ";, '\""), "%q", to)
	})
}
