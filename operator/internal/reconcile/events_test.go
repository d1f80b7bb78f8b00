package reconcile

import (
	"os"
	"strings"
	"testing"

	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/kit/check"
)

// An event that the definitions do not list could not be selected in Kubernetes.
func TestTheResourcesListEveryEvent(t *testing.T) {
	text, err := os.ReadFile("../../api/v1beta1/shared.go")
	check.NoError(check.Now(t), err, "")
	var names []string
	for _, name := range webhook.Types() {
		names = append(names, string(name))
	}
	if want := "+kubebuilder:validation:Enum=" + strings.Join(names, ";") + "\ntype EventType string"; !strings.Contains(string(text), want) {
		t.Errorf("shared.go has no %q", want)
	}
}
