package stack

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// A Receiver is an organization's webhook URL on this machine: an HTTPS server that checks
// signatures and writes down every request before it answers.
type Receiver struct {
	Journal[Received]

	options ReceiverOptions
	server  *http.Server
	addr    string
	log     *os.File
	logging sync.Mutex
	secrets sync.Map // path → signing secret
	respond atomic.Pointer[Respond]
	stopped chan struct{}
}

// ReceiverOptions say where a receiver listens and what it keeps.
type ReceiverOptions struct {
	Addr    string // host:port
	Certs   Certs
	Listen  func(ctx context.Context, addr string) (net.Listener, error) // nil: on this machine's own network
	LogFile string                                                       // one JSON line a request is appended; "" for none
	Respond Respond                                                      // nil: respondByPath
	Forget  bool                                                         // keep no journal in memory, for a receiver that runs for days
}

// Received is one request, as the log has it.
type Received struct {
	ReceivedAt time.Time         `json:"received_at"`
	Method     string            `json:"method"`
	Path       string            `json:"path"`
	Headers    map[string]string `json:"headers"`
	Body       string            `json:"body"`              // the raw text
	Verified   *bool             `json:"verified"`          // nil: no secret is known for this path
	Invalid    string            `json:"invalid,omitempty"` // where the body is not as the event's schema says; else ""
}

// Respond answers a request that has been written down.
type Respond func(w http.ResponseWriter, r *http.Request)

// Status answers every request with one status and an empty body.
func Status(code int) Respond {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

// Hang answers nothing until the sender gives up.
func Hang(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

// Drip answers 200 and then sends one byte at each interval until the sender gives up.
func Drip(interval time.Duration) Respond {
	return func(w http.ResponseWriter, r *http.Request) {
		beat := time.NewTicker(interval)
		defer beat.Stop()
		flush := http.NewResponseController(w)
		for {
			_, err := w.Write([]byte("."))
			if err = errors.Join(err, flush.Flush()); err != nil {
				return
			}
			select {
			case <-beat.C:
			case <-r.Context().Done():
				return
			}
		}
	}
}

// respondByPath lets a URL choose its own fate: …/status/503 answers 503, …/hang never answers,
// everything else is 200.
func respondByPath(w http.ResponseWriter, r *http.Request) {
	if strings.HasSuffix(r.URL.Path, "/hang") {
		Hang(w, r)
		return
	}
	if _, text, ok := strings.Cut(r.URL.Path, "/status/"); ok {
		if code, err := strconv.Atoi(text); err == nil && code >= 200 && code <= 599 {
			w.WriteHeader(code)
			return
		}
	}
	w.WriteHeader(http.StatusOK)
}

// StartReceiver starts a receiver; its Stop ends it.
func StartReceiver(ctx context.Context, o ReceiverOptions) (*Receiver, error) {
	rc := &Receiver{options: o, stopped: make(chan struct{})}
	if o.LogFile != "" {
		var err error
		if rc.log, _, err = openLog(o.LogFile); err != nil {
			return nil, err
		}
	}
	if o.Respond == nil {
		o.Respond = respondByPath
	}
	rc.SetRespond(o.Respond)
	if o.Listen == nil {
		o.Listen = func(ctx context.Context, addr string) (net.Listener, error) {
			return new(net.ListenConfig).Listen(ctx, "tcp", addr)
		}
	}
	listener, err := o.Listen(ctx, o.Addr)
	if err != nil {
		return nil, fmt.Errorf("receiver: %w", err)
	}
	rc.addr = listener.Addr().String()
	rc.server = &http.Server{
		Handler:           rc,
		TLSConfig:         &tls.Config{Certificates: []tls.Certificate{o.Certs.Leaf}, MinVersion: tls.VersionTLS12},
		ReadHeaderTimeout: 10 * time.Second,
		ErrorLog:          log.New(io.Discard, "", 0), // refused handshakes are what some tests are about
	}
	go func() {
		defer close(rc.stopped)
		if err := rc.server.ServeTLS(listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
			fmt.Fprintln(os.Stderr, "receiver:", err)
		}
	}()
	return rc, nil
}

// URL is the receiver's address with a path of the caller's choice: "/webhooks".
func (rc *Receiver) URL(path string) string { return "https://" + rc.addr + path }

// Trust sets the signing secret for a path; from then on its requests are verified.
func (rc *Receiver) Trust(path, secret string) { rc.secrets.Store(path, secret) }

// SetRespond changes how requests are answered from now on.
func (rc *Receiver) SetRespond(f Respond) { rc.respond.Store(&f) }

// Stop ends the receiver at once, with every connection, and waits for it.
func (rc *Receiver) Stop() error {
	err := rc.server.Close()
	<-rc.stopped
	if rc.log != nil {
		rc.logging.Lock() // a handler may still be writing its line
		defer rc.logging.Unlock()
		err = errors.Join(err, rc.log.Close())
	}
	return err
}

// ServeHTTP writes the request down, then answers it.
func (rc *Receiver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 8<<20))
	if err != nil { // the sender died half-way: nothing was received
		return
	}
	got := Received{
		ReceivedAt: time.Now().UTC(),
		Method:     r.Method,
		Path:       r.URL.Path,
		Headers:    make(map[string]string, len(r.Header)),
		Body:       string(body),
	}
	for name, values := range r.Header {
		got.Headers[name] = strings.Join(values, ", ")
	}
	if secret, ok := rc.secrets.Load(r.URL.Path); ok {
		valid := verify(secret.(string), r.Header.Get("X-Service-Signature"), body, got.ReceivedAt)
		got.Verified = &valid
	}
	if err := CheckEvent(body); err != nil {
		got.Invalid = err.Error()
	}
	if err := rc.write(got); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body)) // once more, for whoever answers by it
	(*rc.respond.Load())(w, r)
}

func (rc *Receiver) write(got Received) error {
	if !rc.options.Forget {
		rc.add(got)
	}
	if rc.log == nil {
		return nil
	}
	line, err := json.Marshal(got)
	if err != nil {
		return err
	}
	rc.logging.Lock()
	defer rc.logging.Unlock()
	_, err = rc.log.Write(append(line, '\n'))
	return err
}

// verify checks a signature (reference: webhooks#signature): HMAC-SHA256 over "<t>." and the raw body,
// keyed with the whole secret text, and t within 5 minutes of now.
func verify(secret, header string, body []byte, now time.Time) bool {
	var t string
	var digests []string // two while one secret replaces another
	for part := range strings.SplitSeq(header, ",") {
		switch name, value, _ := strings.Cut(strings.TrimSpace(part), "="); name {
		case "t":
			t = value
		case "v1":
			digests = append(digests, value)
		}
	}
	seconds, err := strconv.ParseInt(t, 10, 64)
	if err != nil || now.Sub(time.Unix(seconds, 0)).Abs() > 5*time.Minute {
		return false
	}
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(t + "."))
	mac.Write(body)
	want := hex.EncodeToString(mac.Sum(nil))
	return slices.ContainsFunc(digests, func(v1 string) bool { return hmac.Equal([]byte(want), []byte(v1)) })
}
