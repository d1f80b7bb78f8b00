package operator_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/registrar-dev/registrar/hack/stack"
	"github.com/registrar-dev/registrar/internal/kit/check"
)

// revised gives a definition another revision, "" for none, as definitions had before revisions were counted.
func (w *world) revised(t *testing.T, name, revision string) {
	t.Helper()
	annotation := "registrar.dev/revision-"
	if revision != "" {
		annotation = "registrar.dev/revision=" + revision
	}
	w.run(t, "annotate", "--overwrite", "customresourcedefinition", name, annotation)
}

// unready is why /readyz says that the operator cannot watch.
func (w *world) unready(t *testing.T) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/readyz/kubernetes", w.operator.private), nil)
	check.NoError(check.Now(t), err, "")
	res, err := http.DefaultClient.Do(req)
	check.NoError(check.Now(t), err, "")
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	check.NoError(check.Now(t), err, "")
	return string(text)
}

// awaitUnready waits for a reason: what is not ready for a moment may be something else.
func (w *world) awaitUnready(t *testing.T, why string) {
	t.Helper()
	w.until(t, "the operator is not ready, since "+why, func() bool { return strings.Contains(w.unready(t), why) })
}

// An operator whose definitions somebody else installs notices that they are older than it.
func TestAnOperatorNoticesOlderDefinitions(t *testing.T) {
	w := theWorld(t)
	t.Cleanup(func() {
		if _, err := w.cluster.Kubectl(context.WithoutCancel(t.Context()), "apply", "-k", "../../config/cluster-wide"); err != nil {
			t.Error(err)
		}
	})
	w.tenant(t, "revised")
	w.awaitReadiness(t, http.StatusOK)
	w.revised(t, "organizations.registrar.dev", "")
	w.awaitReadiness(t, http.StatusInternalServerError)
	w.awaitUnready(t, "the definition organizations.registrar.dev is older than this operator (revision 0, not ")

	// Others keep no definition that this operator does not serve.
	other := w.begin(t, "without-organizations", "ORGANIZATIONS=false")
	check.NoError(t, other.Stop(), "")

	// It says so when it starts, and serves what it can.
	check.NoError(check.Now(t), w.operator.Stop(), "")
	w.revised(t, "rostersources.registrar.dev", "0")
	check.NoError(check.Now(t), w.operator.Start(), "")
	e := endpoint("revised", "results")
	w.create(t, e)
	w.awaitRegistered(t, e)
	w.awaitReadiness(t, http.StatusInternalServerError)
	log := w.operator.LogTail(200)
	for _, said := range []string{"\"not ready\"", "definition organizations.registrar.dev is older", "definition rostersources.registrar.dev is older",
		"upgrade the Helm release that installs the definitions, or run kubectl apply -k config/crd"} {
		check.Contains(t, "the log", log, said, "")
		if !strings.Contains(said, "not ready") {
			w.awaitUnready(t, said)
		}
	}

	w.run(t, "apply", "-k", "../../config/crd")
	w.awaitReadiness(t, http.StatusOK)

	// An operator that was rolled back finds newer ones.
	check.NoError(check.Now(t), w.operator.Stop(), "")
	w.revised(t, "apikeys.registrar.dev", "1000")
	check.NoError(check.Now(t), stack.StartReady(t.Context(), w.operator.Program, w.operator.private), "")
}
