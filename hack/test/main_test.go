package main

import (
	"reflect"
	"testing"
)

func TestEachModuleGetsItsPackages(t *testing.T) {
	product := func(args ...string) part { return part{".", append([]string{together, "-vet=off"}, args...)} }
	tools := func(args ...string) part { return part{"hack", append([]string{oneByOne, "-vet=off"}, args...)} }
	everything := []part{product("-count=1", "./..."), tools("-count=1", "./...")}
	for name, c := range map[string]struct {
		args  []string
		check bool
		want  []part
	}{
		"none":              {nil, false, everything},
		"all":               {[]string{"./..."}, false, everything},
		"light ones":        {[]string{"-v"}, true, []part{product("-short", "./...", "-v"), tools(append(append([]string{"-short"}, light...), "-v")...)}},
		"one of a product":  {[]string{"-run", "X", "./worker"}, false, []part{product("-count=1", "./worker", "-run", "X")}},
		"a test's own flag": {[]string{"-run", "X", "./hack/e2e", "-update"}, false, []part{tools("-count=1", "./e2e", "-run", "X", "-update")}},
		"one of the tools":  {[]string{"./hack/e2e", "-args", "-n", "2"}, false, []part{tools("-count=1", "./e2e", "-args", "-n", "2")}},
		"a named one":       {[]string{"./hack/e2e"}, true, []part{tools("-short", "./e2e")}},
		"all of the tools":  {[]string{"./hack/...", "./internal/kit/pg"}, false, []part{product("-count=1", "./internal/kit/pg"), tools("-count=1", "./...")}},
	} {
		if got := split(c.args, c.check); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}
