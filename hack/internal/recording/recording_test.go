package recording

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/registrar-dev/registrar/internal/kit/check"
)

// What the README shows: its commands, in a file that GitHub shows as a picture. hack/e2e runs them, and holds what is printed
// against it.
func TestTheREADMEsRecordingShowsItsCommands(t *testing.T) {
	t.Parallel()
	const mostBytes = 150_000
	page, err := os.ReadFile("../../../README.md")
	check.NoError(check.Now(t), err, "%v", err)
	drawn, err := os.ReadFile("../../../docs/recording.svg")
	check.NoError(check.Now(t), err, "%v", err)
	check.True(t, "it is small", len(drawn) < mostBytes, "%d bytes", len(drawn))
	want := Steps(string(page))[1:] // without `make up`
	got, err := Read(drawn)
	check.NoError(check.Now(t), err, "%v", err)
	check.Equal(check.Now(t), "number of commands", len(got), len(want), "")
	for i := range want {
		check.Equal(t, "command", got[i].Command, want[i].Command, "")
	}
	_, err = SVG("", "", got) // all of it fits
	check.NoError(t, err, "%v", err)
	check.Contains(t, "the page", string(page), "(docs/recording.svg)", "")
}

func TestARecordingIsReadAsItWasDrawn(t *testing.T) {
	t.Parallel()
	steps := []Step{
		{Caption: "First, a <call>:", Command: "curl \\\n  -d '{\"a\": \"b & c\"}'", Output: "{\"x\":  1}\n" + strings.Repeat("é", 2*columns+1)},
		{Command: ". env"},
		{Caption: strings.Repeat("words ", 40), Command: "true |\n  cat", Output: "a\n\nb"},
	}
	drawn, err := SVG("A title", "What it shows", steps)
	check.NoError(check.Now(t), err, "%v", err)
	got, err := Read(drawn)
	check.NoError(check.Now(t), err, "%v", err)
	check.Equal(check.Now(t), "number of steps", len(got), len(steps), "")
	for i, step := range steps {
		check.Equal(t, "command", got[i].Command, step.Command, "")
		check.Equal(t, "output", got[i].Output, step.Output, "")
	}
	elements := map[string]int{}
	for decoder := xml.NewDecoder(bytes.NewReader(drawn)); ; {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		check.NoError(check.Now(t), err, "%v", err)
		if start, ok := token.(xml.StartElement); ok {
			elements[start.Name.Local]++
		}
	}
	check.Equal(t, "number of scripts", elements["script"]+elements["foreignObject"]+elements["image"], 0, "")
	check.Equal(t, "number of titles and descriptions", elements["title"]+elements["desc"], 2, "")

	check.False(t, "a value has no place", bytes.Contains(drawn, []byte("%!")), "%s", drawn)
	check.True(t, "letters appear one after the other", regexp.MustCompile(`steps\(6\) [\d.]+s backwards\}@keyframes k\d+\{from\{opacity:1\}to\{opacity:1;transform:translateX\(50\.4px\)`).Match(drawn), "%s", drawn)

	// It plays for as long as it says, and the whole stands for a while at the end.
	var last float64
	for _, m := range regexp.MustCompile(`1ms ([\d.]+)s backwards`).FindAllSubmatch(drawn, -1) {
		at, err := strconv.ParseFloat(string(m[1]), 64)
		check.NoError(t, err, "%v", err)
		check.True(t, "rows come in their order", at >= last, "%v after %v", at, last)
		last = at
	}
	check.True(t, "the last row comes five seconds before the end", last > Duration.Seconds()-6 && last < Duration.Seconds()-4, "after %v s", last)
}

func TestWhatDoesNotFitIsRefused(t *testing.T) {
	t.Parallel()
	_, err := SVG("", "", []Step{{Command: strings.Repeat("x", columns)}})
	check.True(t, "a command that is too wide is refused", err != nil, "")
	_, err = SVG("", "", []Step{{Command: "seq 100", Output: strings.Repeat("1\n", 100)}})
	check.True(t, "output that is too long is refused", err != nil, "")
}

func TestSecretsAreNotShown(t *testing.T) {
	t.Parallel()
	check.Equal(t, "what is shown", Shown("http://127.0.0.1:1/set-password/Lsa0t4V6S4aP-Mo9T0FqHGXjNyJ31EWg0Sl7FQv1kRg\",\n"), "http://127.0.0.1:1/set-password/…\",", "")
}
