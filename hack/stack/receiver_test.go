package stack_test

import (
	"bufio"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/hack/stack"
	"github.com/registrar-dev/registrar/internal/kit/check"
)

const secret = "whsec_0123456789"

func sign(at time.Time, key, body string) string {
	mac := hmac.New(sha256.New, []byte(key))
	fmt.Fprintf(mac, "%d.%s", at.Unix(), body)
	return fmt.Sprintf("t=%d,v1=%s", at.Unix(), hex.EncodeToString(mac.Sum(nil)))
}

func startReceiver(t *testing.T, o stack.ReceiverOptions) (*stack.Receiver, *http.Client) {
	t.Helper()
	certs, err := stack.LoadCerts(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	o.Addr, o.Certs = "127.0.0.1:0", certs
	receiver, err := stack.StartReceiver(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = receiver.Stop() })
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: certs.CA, MinVersion: tls.VersionTLS12}}}
	t.Cleanup(client.CloseIdleConnections)
	return receiver, client
}

func post(ctx context.Context, client *http.Client, url, signature, body string) (int, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	req.Header.Set("X-Service-Signature", signature)
	res, err := client.Do(req)
	if err != nil {
		return 0, err
	}
	return res.StatusCode, res.Body.Close()
}

func TestReceiverVerifiesAndLogs(t *testing.T) {
	t.Parallel()
	log := filepath.Join(t.TempDir(), "receiver.jsonl")
	receiver, client := startReceiver(t, stack.ReceiverOptions{LogFile: log})
	receiver.Trust("/webhooks", secret)
	now := time.Now()
	body := `{"id":"evt_1", "name":"Zoë"}`
	cases := []struct {
		name, path, signature string
		want                  any
	}{
		{"right", "/webhooks", sign(now, secret, body), true},
		{"other secret", "/webhooks", sign(now, secret+"x", body), false},
		{"other body", "/webhooks", sign(now, secret, body+" "), false},
		{"too old", "/webhooks", sign(now.Add(-6*time.Minute), secret, body), false},
		{"from the future", "/webhooks", sign(now.Add(6*time.Minute), secret, body), false},
		{"missing", "/webhooks", "", false},
		{"secret unknown for the path", "/elsewhere", sign(now, secret, body), nil},
	}
	for _, c := range cases {
		if code, err := post(t.Context(), client, receiver.URL(c.path), c.signature, body); check.NoError(check.Now(t), err, "%s: %d, %v", c.name, code, err) {
			check.Equal(check.Now(t), "code", code, http.StatusOK, "%s: %d, %v", c.name, code, err)
		}
	}
	if err := receiver.Stop(); err != nil {
		t.Fatal(err)
	}
	lines := readLines(t, log)
	if len(lines) != len(cases) {
		t.Fatalf("%d lines for %d requests", len(lines), len(cases))
	}
	for i, c := range cases {
		line := lines[i]
		check.Equal(t, "verified", line["verified"], c.want, "%s: %v", c.name, line)
		check.Equal(t, "body", line["body"], any(body), "%s: %v", c.name, line)
		check.Equal(t, "path", line["path"], any(c.path), "%s: %v", c.name, line)
		check.Equal(t, "method", line["method"], any("POST"), "%s: %v", c.name, line)
		if c.signature != "" {
			check.Equal(t, "the signature header", line["headers"].(map[string]any)["X-Service-Signature"], any(c.signature), "%s", c.name)
		}
		if at, err := time.Parse(time.RFC3339Nano, line["received_at"].(string)); check.NoError(t, err, "%s: received_at = %v", c.name, line["received_at"]) {
			check.False(t, "it was received before it was sent", at.Before(now.Add(-time.Second)), "%s: received_at = %v", c.name, line["received_at"])
		}
	}
}

func readLines(t *testing.T, name string) []map[string]any {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var lines []map[string]any
	for scanner := bufio.NewScanner(f); scanner.Scan(); {
		var line map[string]any
		if err := json.Unmarshal(scanner.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, line)
	}
	return lines
}

func TestReceiverAnswersAsTold(t *testing.T) {
	t.Parallel()
	receiver, client := startReceiver(t, stack.ReceiverOptions{})
	for path, want := range map[string]int{"/webhooks": 200, "/webhooks/status/503": 503, "/status/302": 302, "/status/9": 200} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, receiver.URL(path), http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		res, err := client.Transport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if res.StatusCode != want {
			t.Errorf("%s answers %d, want %d", path, res.StatusCode, want)
		}
	}
	receiver.SetRespond(stack.Status(http.StatusGone))
	if code, err := post(t.Context(), client, receiver.URL("/webhooks"), "", ""); check.NoError(t, err, "after SetRespond: %d, %v", code, err) {
		check.Equal(t, "code", code, http.StatusGone, "after SetRespond: %d, %v", code, err)
	}
	for name, respond := range map[string]stack.Respond{"hang": stack.Hang, "drip": stack.Drip(time.Millisecond)} {
		receiver.SetRespond(respond)
		before := len(receiver.All())
		ctx, giveUp := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, receiver.URL("/"+name), http.NoBody)
			if err != nil {
				ended <- err
				return
			}
			res, err := client.Do(req)
			if err == nil {
				_, err = bufio.NewReader(res.Body).ReadString('\n') // never comes
				_ = res.Body.Close()
			}
			ended <- err
		}()
		if _, err := receiver.Await(t.Context(), before+1, func(stack.Received) bool { return true }); err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-ended:
			t.Errorf("%s: ended by itself: %v", name, err)
		default:
		}
		giveUp()
		// The receiver, which hears that the sender leaves, may end its answer before the sender is gone.
		err := <-ended
		gone := errors.Is(err, context.Canceled) || errors.Is(err, io.EOF)
		check.True(t, "the request was given up", gone, "%s: %v", name, err)
	}
}

func TestCertsAreKept(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first, err := stack.LoadCerts(dir)
	if err != nil {
		t.Fatal(err)
	}
	second, err := stack.LoadCerts(dir)
	if err != nil {
		t.Fatal(err)
	}
	if !first.Leaf.Leaf.Equal(second.Leaf.Leaf) {
		t.Error("a second start made new certificates")
	}
	if err := os.WriteFile(filepath.Join(dir, "receiver.pem"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if third, err := stack.LoadCerts(dir); check.NoError(t, err, "damaged certificates are not replaced: %v", err) {
		check.False(t, "the certificate is the first", third.Leaf.Leaf.Equal(first.Leaf.Leaf), "damaged certificates are not replaced: %v", err)
	}
}
