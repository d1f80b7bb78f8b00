package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/hack/stack"
	"github.com/registrar-dev/registrar/internal/kit/check"
)

// limit is how long anything that is waited for may take. It is no measure of speed.
const limit = 3 * time.Minute

// site is an operator's desk: a folder with the chart and the values, a shell, and the page.
type site struct {
	t        *testing.T
	node     *stack.Node
	dir      string
	tools    stack.Tools
	commands map[string]bool // of the page, and whether they ran

	platformKey, key string
	secret           string // that the receiver's webhooks are signed with
	students         []string
}

var fenced = regexp.MustCompile("(?ms)^```sh\n(.*?)^```$")

func newSite(t *testing.T, dir string, node *stack.Node) *site {
	t.Helper()
	s := &site{t: t, node: node, dir: filepath.Join(dir, "desk"), commands: map[string]bool{}}
	tools, err := stack.EnsureServers(t.Context(), io.Discard)
	must(t, err)
	s.tools = tools
	root, err := stack.Root()
	must(t, err)
	page, err := os.ReadFile(filepath.Join(root, "docs", "operations.md"))
	must(t, err)
	for _, block := range fenced.FindAllSubmatch(page, -1) {
		for line := range strings.Lines(string(block[1])) {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
				s.commands[line] = false
			}
		}
	}
	must(t, os.MkdirAll(s.dir, 0o755))
	s.receiver(filepath.Join(dir, "certs"))
	s.volume(filepath.Join(dir, "volume"))
	return s
}

// chart puts the chart where the page's commands look for it, under another version than its own where one is given.
func (s *site) chart(version string) {
	s.t.Helper()
	root, err := stack.Root()
	must(s.t, err)
	to := filepath.Join(s.dir, "charts", "registrar")
	must(s.t, os.RemoveAll(to))
	must(s.t, os.CopyFS(to, os.DirFS(filepath.Join(root, "charts", "registrar"))))
	if version != "" {
		file := filepath.Join(to, "Chart.yaml")
		text, err := os.ReadFile(file)
		must(s.t, err)
		text = regexp.MustCompile(`(?m)^(version|appVersion): .*$`).ReplaceAll(text, []byte("${1}: "+version))
		must(s.t, os.WriteFile(file, text, 0o600))
	}
}

func (s *site) write(name, text string) {
	s.t.Helper()
	must(s.t, os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o600))
}

// sh runs a line in the operator's shell and gives what it prints.
func (s *site) sh(line string, variables ...string) (string, error) {
	ctx, cancel := context.WithTimeout(s.t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-ec", line)
	cmd.Dir = s.dir
	path := strings.Join([]string{os.Getenv("KUBEBUILDER_ASSETS"), os.Getenv("REGISTRAR_BIN"), s.tools.PostgresBin, os.Getenv("PATH")}, ":")
	cmd.Env = append(os.Environ(), append([]string{"PATH=" + path, "HOME=" + s.dir, "KUBECONFIG=" + s.node.Admin()}, variables...)...)
	var out, complaints strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &complaints
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("%s: %w\n%s%s", line, err, out.String(), complaints.String())
	}
	return out.String(), nil
}

func (s *site) must(line string, variables ...string) string {
	s.t.Helper()
	out, err := s.sh(line, variables...)
	must(s.t, err)
	return out
}

// documented runs the one command of docs/operations.md that begins so.
func (s *site) documented(beginning string, variables ...string) string {
	s.t.Helper()
	return s.must(s.lookUp(beginning), variables...)
}

func (s *site) lookUp(beginning string) string {
	s.t.Helper()
	var found []string
	for command := range s.commands {
		if strings.HasPrefix(command, beginning) {
			found = append(found, command)
		}
	}
	if len(found) != 1 {
		s.t.Fatalf("docs/operations.md has %q %d times: %q", beginning, len(found), found)
	}
	s.commands[found[0]] = true
	return found[0]
}

func (s *site) everyCommandRan() {
	var left []string
	for command, ran := range s.commands {
		if !ran {
			left = append(left, command)
		}
	}
	slices.Sort(left)
	if check.Equal(s.t, "number of commands that nothing runs", len(left), 0, "of %d commands in docs/operations.md nothing here runs:\n%s", len(s.commands), strings.Join(left, "\n")) {
		check.True(s.t, "number of commands is at least 15", len(s.commands) >= 15, "of %d commands in docs/operations.md nothing here runs:\n%s", len(s.commands), strings.Join(left, "\n"))
	}
}

// await waits until try succeeds.
func (s *site) await(what string, try func() error) {
	s.t.Helper()
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	deadline := time.Now().Add(limit)
	for {
		err := try()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("%s: %v", what, err)
		}
		<-tick.C
	}
}

// ready waits until every program has all its pods, and the way to them is there.
func (s *site) ready() {
	s.t.Helper()
	s.must("kubectl rollout status deployment --selector app.kubernetes.io/instance=registrar --timeout=4m")
	s.answer("http://registrar/api/v1/openapi.yaml", "http://registrar-platform:8081/platform/v1/openapi.yaml")
}

// answer waits until the addresses do: a node learns of a Service's pods a moment after they are ready.
func (s *site) answer(addresses ...string) {
	s.t.Helper()
	for _, api := range addresses {
		s.await(api, func() error {
			status, _, err := call(s.t.Context(), http.DefaultClient, http.MethodGet, api, "Accept", "*/*", "")
			if err == nil && status != http.StatusOK {
				err = fmt.Errorf("status %d", status)
			}
			return err
		})
	}
}

const receiverManifests = `
apiVersion: v1
kind: Secret
metadata: {name: receiver}
data: {ca.pem: %[1]q, receiver.pem: %[2]q, receiver-key.pem: %[3]q}
---
apiVersion: v1
kind: Secret
metadata: {name: receivers-authority}
data: {ca.crt: %[1]q}
---
apiVersion: v1
kind: Service
metadata: {name: receiver}
spec:
  selector: {app: receiver}
  ports: [{name: https, port: 8443}, {name: http, port: 8080}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: receiver}
spec:
  selector: {matchLabels: {app: receiver}}
  template:
    metadata: {labels: {app: receiver}}
    spec:
      nodeSelector: {kubernetes.io/hostname: node2} # what it has taken is in its memory, and node1 is drained
      securityContext: {runAsNonRoot: true, fsGroup: 65532, seccompProfile: {type: RuntimeDefault}}
      containers:
        - name: receiver
          image: registrar.local/receiver:1
          securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
          readinessProbe: {tcpSocket: {port: 8443}, periodSeconds: 1}
          volumeMounts: [{name: certs, mountPath: /certs, readOnly: true}]
      volumes: [{name: certs, secret: {secretName: receiver, defaultMode: 0440}}]
`

const receiverHost = "receiver.default.svc.cluster.local"

// receiver runs a customer's system in a namespace that lets in the restricted level alone, and that
// may register URLs of the organization.
func (s *site) receiver(dir string) {
	s.t.Helper()
	s.must("kubectl label namespace default pod-security.kubernetes.io/enforce=restricted registrar.dev/organization=school")
	_, err := stack.LoadCerts(dir, receiverHost)
	must(s.t, err)
	var parts []any
	for _, name := range []string{"ca.pem", "receiver.pem", "receiver-key.pem"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		must(s.t, err)
		encoded, err := json.Marshal(text) // []byte is base64 in JSON
		must(s.t, err)
		parts = append(parts, strings.Trim(string(encoded), `"`))
	}
	must(s.t, s.node.Apply(s.t.Context(), fmt.Sprintf(receiverManifests, parts...)))
	s.must("kubectl rollout status deployment/receiver --timeout=2m")
}

// volume is what a cluster's storage would provide: a place for the evaluation's PostgreSQL.
func (s *site) volume(dir string) {
	s.t.Helper()
	must(s.t, os.MkdirAll(dir, 0o755))
	must(s.t, os.Chmod(dir, 0o777)) // whatever user the pod runs as
	must(s.t, s.node.Apply(s.t.Context(), fmt.Sprintf(`
apiVersion: v1
kind: PersistentVolume
metadata: {name: disk}
spec: {capacity: {storage: 4Gi}, accessModes: [ReadWriteOnce], hostPath: {path: %q}, persistentVolumeReclaimPolicy: Retain}
`, dir)))
}

// call makes one request.
func call(ctx context.Context, client *http.Client, method, url, header, value, body string) (int, []byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set(header, value)
	req.Header.Set("Content-Type", "application/json")
	res, err := client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	text, err := io.ReadAll(res.Body)
	return res.StatusCode, text, errors.Join(err, res.Body.Close())
}

// platform calls the platform API through its Service.
func (s *site) platform(method, path, body string, into any) {
	s.t.Helper()
	s.platformOf("default", s.platformKey, method, path, body, into)
}

// platformOf calls that of the release in a namespace.
func (s *site) platformOf(namespace, key, method, path, body string, into any) (status int) {
	s.t.Helper()
	status, text, err := call(s.t.Context(), http.DefaultClient, method, "http://registrar-platform."+namespace+":8081/platform/v1/"+path, "Authorization", "Bearer "+key, body)
	must(s.t, err)
	if status/100 != 2 {
		s.t.Fatalf("%s %s: %d %s", method, path, status, text)
	}
	if into != nil {
		must(s.t, json.Unmarshal(text, into))
	}
	return status
}

// secretValue reads a key of a Secret.
func (s *site) secretValue(name, key string) string {
	s.t.Helper()
	return s.secretIn("default", name, key)
}

func (s *site) secretIn(namespace, name, key string) string {
	s.t.Helper()
	return s.must(fmt.Sprintf(`kubectl get secret %s --namespace %s --output go-template='{{index .data %q | base64decode}}'`, name, namespace, key))
}

// received asks the receiver what it took.
func (s *site) received() ([]stack.Received, error) {
	status, text, err := call(s.t.Context(), http.DefaultClient, http.MethodGet, "http://receiver:8080/received", "Accept", "*/*", "")
	if err != nil || status != http.StatusOK {
		return nil, fmt.Errorf("%d %w", status, err)
	}
	var all []stack.Received
	return all, json.Unmarshal(text, &all)
}
