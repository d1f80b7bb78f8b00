package program

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/registrar-dev/registrar/hack/stack"
)

// Who builds by the Dockerfile gets the same program with the same settings.
func TestTheDockerfileSaysTheSame(t *testing.T) {
	root, err := stack.Root()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, "hack", "images", "Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	module, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	version := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindSubmatch(module)[1]
	im, _, _ := buildImage(t)
	made, err := im.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	wants := []string{"golang:" + string(version) + " AS build", "CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH go build " + strings.Join(quoted(buildFlags("$VERSION", "$REVISION", "$DAY")), " "),
		"FROM scratch\n", "USER " + user + "\n", "--platform linux/amd64,linux/arm64"}
	for name, value := range made.Config.Labels {
		if name != "org.opencontainers.image.revision" { // git is not in the build's context
			wants = append(wants, name+`="`+strings.Replace(value, "hello", "$PROGRAM", 1)+`"`)
		}
	}
	for _, want := range wants {
		if !strings.Contains(string(text), want) {
			t.Errorf("the Dockerfile lacks %q", want)
		}
	}
}

func quoted(flags []string) []string {
	all := make([]string, len(flags))
	for i, flag := range flags {
		if all[i] = flag; strings.Contains(flag, " ") {
			all[i] = `"` + flag + `"`
		}
	}
	return all
}
