package main

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
)

func TestConfigurationIsCheckedAndShown(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), []string{"-h"}, func(string) string { return "" }, &out); err != nil || !strings.Contains(out.String(), "CLUSTER_NAME (required)") {
		t.Errorf("%v: %s", err, out.String())
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
		if err == nil || !strings.Contains(fmt.Sprint(err), name) {
			t.Errorf("%s=%q: %v", name, bad, err)
		}
	}
}
