package oidc

import (
	"encoding/json"
	"testing"

	"github.com/registrar-dev/registrar/internal/kit/check"
)

func TestWhatVouchesForAnAddress(t *testing.T) {
	t.Parallel()
	const entra = "https://login.microsoftonline.com/x/v2.0"
	for _, c := range []struct {
		issuer, claims string
		vouched        bool
	}{
		{entra, `{}`, false},
		{entra, `{"email_verified": true}`, true},
		{entra, `{"email_verified": "true"}`, true},
		{entra, `{"email_verified": false}`, false},
		{entra, `{"email_verified": null}`, false},
		{entra, `{"email_verified": ["true"]}`, false},
		{entra, `{"xms_edov": 1}`, true},
		{entra, `{"xms_edov": true, "email_verified": false}`, false},
		{google, `{"email_verified": true}`, false}, // of somebody who could once read the mailbox
		{google, `{"email_verified": true, "hd": ""}`, false},
		{google, `{"email_verified": true, "hd": "institute.org"}`, true},
	} {
		var claims map[string]json.RawMessage
		check.NoError(check.Now(t), json.Unmarshal([]byte(c.claims), &claims), "%s", c.claims)
		check.Equal(t, "it vouches", vouched(claims, c.issuer), c.vouched, "%s: %s", c.issuer, c.claims)
	}
}
