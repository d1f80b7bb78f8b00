package main

import (
	"bytes"
	"fmt"
	"io"
	"testing"

	"github.com/registrar-dev/registrar/internal/kit/check"
)

func TestConfigurationIsCheckedAndShown(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), []string{"-h"}, func(string) string { return "" }, &out); check.NoError(t, err, "%v: %s", err, out.String()) {
		check.Contains(t, "the output", out.String(), "CLUSTER_NAME (required)", "%v: %s", err, out.String())
	}
	good := map[string]string{"DATABASE_URL": "postgres://127.0.0.1:1/x", "CLUSTER_NAME": "one"}
	for _, c := range [][2]string{{"DATABASE_URL", ""}, {"CLUSTER_NAME", ""}, {"CLUSTER_NAME", "one/two"}, {"RESYNC", "soon"}, {"DELETION_PATIENCE", "long"}} {
		name, bad := c[0], c[1]
		err := run(t.Context(), nil, func(n string) string {
			if n == name {
				return bad
			}
			return good[n]
		}, io.Discard)
		if check.True(t, "there is an error", err != nil, "%s=%q: %v", name, bad, err) {
			check.Contains(t, "the error", fmt.Sprint(err), name, "%s=%q: %v", name, bad, err)
		}
	}
}
