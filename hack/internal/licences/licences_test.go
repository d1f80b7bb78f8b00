package licences

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/licenseclassifier/v2/assets"

	"github.com/registrar-dev/registrar/hack/stack"
	"github.com/registrar-dev/registrar/internal/kit/check"
)

func TestALicenceThatIsNotAllowedIsNamed(t *testing.T) {
	t.Parallel()
	gpl, err := assets.ReadLicenseFile("License/GPL-3.0/license.txt")
	if err != nil {
		t.Fatal(err)
	}
	mit, err := assets.ReadLicenseFile("License/MIT/a.txt")
	if err != nil {
		t.Fatal(err)
	}
	d := Dependency{Name: "example.org/x", Version: "v1.0.0", Texts: []Text{{"LICENSE", mit}, {"part/COPYING", gpl}, {"NOTICE", []byte("Made by somebody.")}}}
	if d.Licences, err = classify(d.Texts); err != nil {
		t.Fatal(err)
	}
	check.Equal(t, "licence", d.Expression(), "GPL-3.0 AND MIT", "")
	check.Slices(t, "refused", Refused([]Dependency{d}), []string{"example.org/x v1.0.0: GPL-3.0"}, "")
	for _, text := range []string{"", "All rights reserved."} {
		if got, err := classify([]Text{{"LICENSE", []byte(text)}}); err == nil {
			t.Errorf("%q is taken for %v", text, got)
		}
	}
}

func TestAProgramsNoticesHaveWhatIsInIt(t *testing.T) {
	t.Parallel()
	root, err := stack.Root()
	if err != nil {
		t.Fatal(err)
	}
	all, err := Of(t.Context(), root, "linux", "arm64", false, "./api-server")
	if err != nil {
		t.Fatal(err)
	}
	check.Slices(t, "refused", Refused(all), nil, "")
	said := string(Notices("api-server", all))
	for name, text := range map[string]string{
		"github.com/go-chi/chi/v5": "Peter Kieltyka",
		"minisearch (npm)":         "Luca Ongaro",
		"swagger-ui-dist (npm)":    "SmartBear",
		Stdlib:                     "The Go Authors",
	} {
		i := slices.IndexFunc(all, func(d Dependency) bool { return d.Name == name })
		if i < 0 {
			t.Errorf("%s is not found", name)
			continue
		}
		check.Contains(t, "the notices", said, "\n"+name+" "+all[i].Version+": "+all[i].Expression()+"\n", "%s", name)
		check.True(t, "its text is there", strings.Contains(said, text), "%s: %q", name, text)
	}
	for _, d := range all {
		check.True(t, "it is somebody else's", !own(d.Name), "%s", d.Name)
		check.True(t, "it has a text", len(d.Texts) > 0, "%s", d.Name)
	}
}
