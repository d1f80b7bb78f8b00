package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
)

const (
	demoSlug  = "demo"
	demoName  = "Demo Institute"
	demoOwner = "owner@demo-school.org"
)

// seed makes the demonstration organization, or finds it as an earlier run left it.
func (v *registrar) seed(ctx, _ context.Context) (string, error) {
	p := platform{base: v.platformURL() + "organizations/" + demoSlug, key: v.state.PlatformKey}
	organization := map[string]any{"name": demoName, "language_tests_enabled": true}
	if err := p.call(ctx, http.MethodPut, "", organization, nil); err != nil {
		return "", err
	}
	owner := map[string]any{"first_name": "Olive", "last_name": "Owner", "role": "owner", "password": v.state.ConsolePassword}
	if err := p.call(ctx, http.MethodPut, "/staff/"+url.PathEscape(demoOwner), owner, nil); err != nil {
		return "", err
	}
	if err := v.seedKey(ctx, p, &v.state.APIKey, "Demo, full access", "full"); err != nil {
		return "", err
	}
	if err := v.seedKey(ctx, p, &v.state.APIKeyReadOnly, "Demo, read only", "read_only"); err != nil {
		return "", err
	}
	if err := v.seedEndpoint(ctx, p); err != nil {
		return "", err
	}
	v.receiver.Trust(receiverPath, v.state.Endpoint.Secret)
	return demoName, v.saveState(v.state)
}

// seedKey makes an API key unless the one of the last time still opens the partner API.
func (v *registrar) seedKey(ctx context.Context, p platform, key *string, name, access string) error {
	if *key != "" {
		partner := platform{base: v.baseURL(), key: *key}
		err := partner.call(ctx, http.MethodGet, "ping/", nil, nil)
		var refused *refusal
		if !errors.As(err, &refused) || refused.code != http.StatusUnauthorized {
			return err
		}
	}
	var made struct {
		Key string `json:"key"`
	}
	if err := p.call(ctx, http.MethodPost, "/api-keys", map[string]any{"name": name, "access": access}, &made); err != nil {
		return err
	}
	*key = made.Key
	return v.saveState(v.state) // at once: it is shown only once
}

// seedEndpoint registers the receiver, unless it is registered under today's address already.
func (v *registrar) seedEndpoint(ctx context.Context, p platform) error {
	var list struct {
		Endpoints []registered `json:"webhook_endpoints"`
	}
	if err := p.call(ctx, http.MethodGet, "/webhook-endpoints", nil, &list); err != nil {
		return err
	}
	known, want := v.state.Endpoint, v.receiver.URL(receiverPath)
	for _, e := range list.Endpoints {
		if e.id() == known.ID && e.URL == want {
			return nil
		}
	}
	// The receiver of an earlier run listened elsewhere or its secret is lost: nobody answers there.
	for _, e := range list.Endpoints {
		if e.id() != known.ID && e.URL != want {
			continue
		}
		if err := p.call(ctx, http.MethodDelete, "/webhook-endpoints/"+e.id(), nil, nil); err != nil {
			return err
		}
	}
	var made registered
	if err := p.call(ctx, http.MethodPost, "/webhook-endpoints", map[string]any{"url": want}, &made); err != nil {
		return err
	}
	v.state.Endpoint = endpoint{ID: made.id(), URL: want, Secret: made.Secret}
	return v.saveState(v.state)
}

// A registered endpoint's id is a number or a text in JSON; here it only names it in a path.
type registered struct {
	RawID  json.RawMessage `json:"id"`
	URL    string          `json:"url"`
	Secret string          `json:"signing_secret"`
}

func (r registered) id() string { return strings.Trim(string(r.RawID), `"`) }

// A refusal is an answer other than 2xx.
type refusal struct {
	code int
	text string
}

func (r *refusal) Error() string { return r.text }

// platform calls one of Registrar's APIs with its key.
type platform struct {
	base, key string
}

// call sends a body as JSON and reads the answer into result; nil for neither.
func (p platform) call(ctx context.Context, method, path string, body, result any) error {
	var content io.Reader = http.NoBody
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return err
		}
		content = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, p.base+path, content)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+p.key)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	if res.StatusCode < 200 || res.StatusCode > 299 {
		return &refusal{code: res.StatusCode, text: fmt.Sprintf("%s %s: %s %s", method, req.URL.Path, res.Status, bytes.TrimSpace(answer))}
	}
	if result == nil {
		return nil
	}
	return json.Unmarshal(answer, result)
}
