package operator_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/check"
)

// An operator whose watch is slow does not know yet which URL a resource has got when others do, and is told of each change
// of the URL once.
func TestAChangeIsUndoneBeforeTheOperatorSeesItsOwnStatus(t *testing.T) {
	w := theWorld(t)
	o := w.tenant(t, "behind")
	const release = "registrar-behind"
	w.release(t, release)
	kubeconfig, watching := w.slowWatch(t, `"namespace":"behind"`, `"endpointID"`)
	w.begin(t, "behind", "CLASS_NAME=behind", "LEASE_NAMESPACE="+release, "KUBECONFIG="+kubeconfig)

	e := endpoint("behind", "results")
	e.Spec.ClassName = "behind"
	w.create(t, e)
	w.awaitRegistered(t, e)
	stored, zone := w.stored(t, e), "Europe/Berlin"
	for range 3 { // a visit that has begun for another reason undoes the first
		_, err := w.webhooks.Change(t.Context(), audit.Platform, o.ID, stored.ID, webhook.Settings{TimeZone: &zone}, time.Now())
		check.NoError(check.Now(t), err, "")
		w.until(t, "the change is undone", func() bool { return w.stored(t, e).TimeZone == "UTC" })
	}
	watching()
	w.awaitEvent(t, e, corev1.EventTypeNormal, "Changed")
	w.deleted(t, e)
}

// slowWatch is the way to the API server for an operator whose watches show nothing from the first part with these texts on,
// until they go on.
func (w *world) slowWatch(t *testing.T, texts ...string) (kubeconfig string, goOn func()) {
	t.Helper()
	direct, err := w.cluster.User(operatorAccount, "system:serviceaccounts", "system:authenticated")
	check.NoError(check.Now(t), err, "")
	config, err := clientcmd.BuildConfigFromFlags("", direct)
	check.NoError(check.Now(t), err, "")
	transport, err := rest.TransportFor(config)
	check.NoError(check.Now(t), err, "")
	server, err := url.Parse(w.cluster.URL())
	check.NoError(check.Now(t), err, "")
	gate := make(chan struct{})
	goOn = sync.OnceFunc(func() { close(gate) })
	proxy := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(server) },
		Transport:     transport,
		FlushInterval: -1,
		ModifyResponse: func(r *http.Response) error {
			if r.Request.URL.Query().Get("watch") != "" {
				r.Body = &heldBack{r.Body, texts, gate}
			}
			return nil
		},
	})
	t.Cleanup(func() {
		goOn()
		proxy.CloseClientConnections() // watches have no end
		proxy.Close()
	})
	kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	err = os.WriteFile(kubeconfig, fmt.Appendf(nil, `{"apiVersion": "v1", "kind": "Config", "current-context": "slow",
		"clusters": [{"name": "slow", "cluster": {"server": %q}}], "contexts": [{"name": "slow", "context": {"cluster": "slow"}}]}`, proxy.URL), 0o600)
	check.NoError(check.Now(t), err, "")
	return kubeconfig, goOn
}

// heldBack is an answer that is held back from the first part with the texts on.
type heldBack struct {
	io.ReadCloser

	texts []string
	gate  <-chan struct{}
}

func (h *heldBack) Read(p []byte) (int, error) {
	n, err := h.ReadCloser.Read(p)
	for _, text := range h.texts {
		if !bytes.Contains(p[:n], []byte(text)) {
			return n, err
		}
	}
	<-h.gate
	return n, err
}
