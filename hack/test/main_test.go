package main

import (
	"reflect"
	"testing"
)

func TestEachModuleGetsItsPackages(t *testing.T) {
	everything := []part{{".", []string{"-count=1", "./..."}}, {"hack", []string{"-count=1", "./..."}}}
	for name, c := range map[string]struct {
		args  []string
		check bool
		want  []part
	}{
		"none":             {nil, false, everything},
		"all":              {[]string{"./..."}, false, everything},
		"light ones":       {[]string{"-v"}, true, []part{{".", []string{"-short", "-v", "./..."}}, {"hack", append([]string{"-short", "-v"}, light...)}}},
		"one of a product": {[]string{"-run", "X", "./worker"}, false, []part{{".", []string{"-count=1", "-run", "X", "./worker"}}}},
		"one of the tools": {[]string{"./hack/e2e", "-args", "-n", "2"}, false, []part{{"hack", []string{"-count=1", "./e2e", "-args", "-n", "2"}}}},
		"a named one":      {[]string{"./hack/e2e"}, true, []part{{"hack", []string{"-short", "./e2e"}}}},
		"all of the tools": {[]string{"./hack/...", "./internal/kit/pg"}, false, []part{{".", []string{"-count=1", "./internal/kit/pg"}}, {"hack", []string{"-count=1", "./..."}}}},
	} {
		if got := split(c.args, c.check); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}
