package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/registrar-dev/registrar/hack/stack"
)

const (
	demoSlug  = "demo"
	demoName  = "Demo Institute"
	demoOwner = "owner@demo-school.org"
)

// seed makes the demonstration organization, or finds it as an earlier run left it.
func (v *registrar) seed(ctx, _ context.Context) (string, error) {
	organization := map[string]any{"name": demoName, "language_tests_enabled": true}
	if err := v.demo(ctx, http.MethodPut, "", organization, nil); err != nil {
		return "", err
	}
	owner := map[string]any{"first_name": "Olive", "last_name": "Owner", "role": "owner", "password": v.state.ConsolePassword}
	if err := v.demo(ctx, http.MethodPut, "/staff/"+url.PathEscape(demoOwner), owner, nil); err != nil {
		return "", err
	}
	if err := v.seedKey(ctx, &v.state.APIKey, "Demo, full access", "full"); err != nil {
		return "", err
	}
	if err := v.seedKey(ctx, &v.state.APIKeyReadOnly, "Demo, read only", "read_only"); err != nil {
		return "", err
	}
	if err := v.seedEndpoint(ctx); err != nil {
		return "", err
	}
	v.receiver.Trust(receiverPath, v.state.Endpoint.Secret)
	return demoName, v.saveState(v.state)
}

// demo calls the platform API about the demonstration organization.
func (v *registrar) demo(ctx context.Context, method, path string, body, result any) error {
	return v.settings.Platform(ctx, method, "organizations/"+demoSlug+path, body, result)
}

// seedKey makes an API key unless the one of the last time still opens the partner API.
func (v *registrar) seedKey(ctx context.Context, key *string, name, access string) error {
	if *key != "" {
		err := stack.Call(ctx, http.MethodGet, v.baseURL()+"ping/", *key, nil, nil)
		var refused *stack.Refusal
		if !errors.As(err, &refused) || refused.Status != http.StatusUnauthorized {
			return err
		}
	}
	var made struct {
		Key string `json:"key"`
	}
	if err := v.demo(ctx, http.MethodPost, "/api-keys", map[string]any{"name": name, "access": access}, &made); err != nil {
		return err
	}
	*key = made.Key
	return v.saveState(v.state) // at once: it is shown only once
}

// seedEndpoint registers the receiver, unless it is registered under today's address already.
func (v *registrar) seedEndpoint(ctx context.Context) error {
	var list struct {
		Endpoints []registered `json:"webhook_endpoints"`
	}
	if err := v.demo(ctx, http.MethodGet, "/webhook-endpoints", nil, &list); err != nil {
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
		if err := v.demo(ctx, http.MethodDelete, "/webhook-endpoints/"+e.id(), nil, nil); err != nil {
			return err
		}
	}
	var made registered
	if err := v.demo(ctx, http.MethodPost, "/webhook-endpoints", map[string]any{"url": want}, &made); err != nil {
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
