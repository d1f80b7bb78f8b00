package operator_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/registrar-dev/registrar/hack/stack"
	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/operator/api/v1beta1"
)

// plugin prepares `kubectl registrar …`, as kubectl finds it on PATH.
func (w *world) plugin(ctx context.Context, kubeconfig string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), "kubectl"), append([]string{"registrar"}, args...)...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "PATH="+w.bin+":"+os.Getenv("PATH"), "REGISTRAR_URL=", "REGISTRAR_API_KEY=")
	return cmd
}

// ask runs the plugin as an administrator, and gives what it prints.
func (w *world) ask(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var complaints strings.Builder
	cmd := w.plugin(t.Context(), w.cluster.Admin(), args...)
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil {
		return string(out), errors.Join(err, errors.New(complaints.String()))
	}
	return string(out), nil
}

func (w *world) must(t *testing.T, args ...string) string {
	t.Helper()
	out, err := w.ask(t, args...)
	check.NoError(check.Now(t), err, "kubectl registrar %s", strings.Join(args, " "))
	return out
}

func TestThePluginShowsAndExplains(t *testing.T) {
	w := theWorld(t)
	w.tenant(t, "plugged")
	results, refused, key := endpoint("plugged", "results"), endpoint("plugged", "refused"), apiKey("plugged", "reports")
	refused.Spec.URL = "https://169.254.169.254/latest"
	w.create(t, results, refused, key)
	w.awaitRegistered(t, results)
	awaitReady(t, w, key, metav1.ConditionTrue, v1beta1.ReasonIssued)
	awaitReason(t, w, refused, v1beta1.ConditionStalled, metav1.ConditionTrue, v1beta1.ReasonAddressRefused)

	out := w.must(t, "status", "plugged")
	for _, said := range []string{"results", "Registered", "reports", "Issued", "AddressRefused", "2 of 3 ready."} {
		check.Contains(t, "the status", out, said, "")
	}
	var status struct {
		Resources []struct {
			Kind, Name, Ready, Reason string
			Backlog                   *int64
		}
	}
	check.NoError(check.Now(t), json.Unmarshal([]byte(w.must(t, "status", "plugged", "-o", "json")), &status), "")
	check.Equal(t, "number of resources", len(status.Resources), 3, "%+v", status)
	check.Contains(t, "the status of a namespace", w.must(t, "status", "-n", "plugged"), "2 of 3 ready.", "")
	_, err := w.ask(t, "status", "nobody")
	check.True(t, "an organization without resources is an error", err != nil, "")

	out = w.must(t, "explain", "whe/refused", "-n", "plugged")
	check.Contains(t, "the explanation", out, "Stalled=True (AddressRefused)", "")
	check.Contains(t, "the explanation", out, "Change spec.url to a public https:// address", "")
	_, err = w.ask(t, "explain", "whe/none", "-n", "plugged")
	if check.True(t, "a resource that is not there is an error", err != nil, "") {
		check.Contains(t, "the error", err.Error(), `there is no WebhookEndpoint "none" in the namespace plugged; -n names another`, "")
	}
	_, err = w.ask(t, "deliveries", "results", "-n", "plugged")
	if check.True(t, "deliveries without an API are an error", err != nil, "") {
		check.Contains(t, "the error", err.Error(), "--api-key-from", "")
	}
	_, err = w.ask(t, "deliveries", "refused", "-n", "plugged")
	if check.True(t, "deliveries of no URL are an error", err != nil, "") {
		check.Contains(t, "the error", err.Error(), "has no URL yet", "")
	}

	// A tenant sees their namespace.
	w.run(t, "create", "rolebinding", "tenant", "--clusterrole=edit", "--user=tenant", "--namespace=plugged")
	tenant, err := w.cluster.User("tenant", "system:authenticated")
	check.NoError(check.Now(t), err, "")
	said, err := w.plugin(t.Context(), tenant, "status", "plugged", "-n", "plugged").CombinedOutput()
	check.NoError(t, err, "%s", said)
	check.Contains(t, "the status for a tenant", string(said), "2 of 3 ready.", "")
	w.deleted(t, refused)
}

func TestThePluginRotates(t *testing.T) {
	w := theWorld(t)
	w.tenant(t, "plugged-rotate")
	e, k := endpoint("plugged-rotate", "results"), apiKey("plugged-rotate", "reports")
	w.create(t, e, k)
	w.awaitRegistered(t, e)
	awaitReady(t, w, k, metav1.ConditionTrue, v1beta1.ReasonIssued)
	signing := w.secret(t, "plugged-rotate", "results-signing-secret", "secret")
	opening := w.secret(t, "plugged-rotate", "reports-api-key", "key")
	check.Contains(t, "what it says", w.must(t, "rotate", "whe/results", "--overlap", "1h", "-n", "plugged-rotate"), "the one before goes on until", "")
	check.Contains(t, "what it says", w.must(t, "rotate", "rkey/reports", "--overlap", "0s", "-n", "plugged-rotate"), "the one before has ended", "")
	check.True(t, "the signing secret is another", w.secret(t, "plugged-rotate", "results-signing-secret", "secret") != signing, "")
	check.True(t, "the key is another", w.secret(t, "plugged-rotate", "reports-api-key", "key") != opening, "")
}

func TestThePluginReplays(t *testing.T) {
	w := theWorld(t)
	o := w.tenant(t, "plugged-replay")
	e := endpoint("plugged-replay", "results")
	w.create(t, e)
	w.awaitRegistered(t, e)
	w.undelivered(t, o, e, webhook.StudentJoined, webhook.EnrollmentEnded, webhook.StudentJoined)
	w.awaitRegistered(t, e)
	var complaints strings.Builder
	cmd := w.plugin(t.Context(), w.cluster.Admin(), "replay", "results", "--from", "1h", "--events", "student.joined", "--name", "again", "-n", "plugged-replay", "-o", "json")
	cmd.Stderr = &complaints
	out, err := cmd.StdoutPipe()
	check.NoError(check.Now(t), err, "")
	check.NoError(check.Now(t), cmd.Start(), "")
	r := replay("plugged-replay", "again", v1beta1.WebhookReplaySpec{})
	awaitReady(t, w, r, metav1.ConditionFalse, v1beta1.ReasonReplaying)
	w.work(t)
	var done v1beta1.WebhookReplay
	check.NoError(t, json.NewDecoder(out).Decode(&done), "")
	check.NoError(check.Now(t), cmd.Wait(), "%s", &complaints)
	check.Contains(t, "what it says", complaints.String(), "2 of 2 events are due again.", "")
	check.Equal(t, "total", done.Status.Total, int64(2), "%+v", done.Status)
	_, err = w.ask(t, "replay", "results", "-n", "plugged-replay")
	if check.True(t, "a replay without a beginning is an error", err != nil, "") {
		check.Contains(t, "the error", err.Error(), "--from 2h", "")
	}
}

// kubectl's own completion asks the plugin.
func TestThePluginCompletes(t *testing.T) {
	w := theWorld(t)
	w.tenant(t, "plugged-complete")
	e := endpoint("plugged-complete", "results")
	w.create(t, e)
	w.awaitRegistered(t, e)
	dir := t.TempDir()
	check.NoError(check.Now(t), os.Symlink(filepath.Join(w.bin, "kubectl-registrar"), filepath.Join(dir, "kubectl_complete-registrar")), "")
	bin, err := stack.EnsureKube(t.Context(), os.Stderr)
	check.NoError(check.Now(t), err, "")
	cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "kubectl"), "__complete", "registrar", "rotate", "-n", "plugged-complete", "webhook")
	cmd.Env = append(os.Environ(), "KUBECONFIG="+w.cluster.Admin(), "PATH="+dir+":"+w.bin+":"+os.Getenv("PATH"))
	out, err := cmd.Output()
	check.NoError(check.Now(t), err, "")
	check.Contains(t, "the completions", string(out), "webhookendpoint/results\tplugged-complete", "")
}
