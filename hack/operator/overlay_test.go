package operator_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/registrar-dev/registrar/hack/stack"
	"github.com/registrar-dev/registrar/internal/kit/check"
)

// The overlay of docs/operator.md, of this checkout's config, runs the image by its digest, and no other.
func TestAnOverlayNamesTheImageByItsDigest(t *testing.T) {
	w := theWorld(t)
	root, err := stack.Root()
	check.NoError(check.Now(t), err, "")
	page, err := os.ReadFile(filepath.Join(root, "docs", "operator.md"))
	check.NoError(check.Now(t), err, "")
	overlay := regexp.MustCompile("(?s)```yaml\n(resources: .*?)```").FindSubmatch(page)
	if overlay == nil {
		t.Fatal("docs/operator.md has no overlay")
	}
	dir := t.TempDir()
	base, err := filepath.Rel(dir, filepath.Join(root, "config", "default"))
	check.NoError(check.Now(t), err, "")
	text := strings.Replace(string(overlay[1]), "https://github.com/registrar-dev/registrar//config/default?ref=v0.1.0", base, 1)
	check.NoError(check.Now(t), os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(text), 0o600), "")
	digest := regexp.MustCompile(`sha256:[0-9a-f]{64}`).FindString(text)
	images := regexp.MustCompile(`(?m)^ *(?:- )?image: (.*)$`).FindAllStringSubmatch(w.run(t, "kustomize", dir), -1)
	if check.Equal(check.Now(t), "number of images", len(images), 1, "%q", images) {
		check.Equal(t, "the image", images[0][1], "ghcr.io/registrar-dev/operator@"+digest, "")
	}
	w.run(t, "apply", "--dry-run=server", "-k", dir)
}
