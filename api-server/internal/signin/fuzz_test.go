package signin_test

import (
	"net/url"
	"testing"

	"github.com/registrar-dev/registrar/api-server/internal/signin"
	"github.com/registrar-dev/registrar/internal/kit/check"
)

// Whatever next says, a browser stays on this site.
func FuzzNext(f *testing.F) {
	for _, seed := range []string{"", "/console/north?x=1", "https://evil.test/", "//evil.test", "/\\evil.test", "\\\\evil.test", "/a\nb", "/\t/evil.test", "/%2f/evil.test",
		"/%5cevil.test", "javascript:alert(1)", "/./\\/evil.test", "/.//evil.test", "/..//evil.test", "///evil.test", "/\u2028/evil.test", "/@evil.test", "/:80", "/\x00/evil.test",
		" /evil", "/#//evil.test", "/?//evil.test", "http:/evil.test", "http:evil.test"} {
		f.Add(seed)
	}
	base := &url.URL{Scheme: "https", Host: "registrar.test", Path: "/sign-in/"}
	f.Fuzz(func(t *testing.T, next string) {
		got := signin.Next(next, "/home")
		if got == "/home" {
			return
		}
		check.Equal(t, "the address", got, next, "%q", next)
		for _, r := range got {
			check.True(t, "a character that browsers read as another", r != '\\' && r >= ' ', "%q", got)
		}
		to, err := base.Parse(got)
		check.NoError(check.Now(t), err, "%q", got)
		check.Equal(t, "the site", to.Scheme+"://"+to.Host, "https://registrar.test", "%q", got)
	})
}
