package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/registrar-dev/registrar/hack/stack"
	"github.com/registrar-dev/registrar/internal/domain/webhook"
)

// sink is a receiver that does as little as one can, so that what is measured is the sender.
type sink struct {
	server   *http.Server
	base     string
	requests atomic.Int64
	changed  chan struct{} // has one waiting signal at most

	mu    sync.Mutex
	first map[string]time.Time // by path and event
	twice int
}

func startSink(ctx context.Context, certs stack.Certs) (*sink, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &sink{first: map[string]time.Time{}, changed: make(chan struct{}, 1), base: "https://" + l.Addr().String()}
	mux := http.NewServeMux()
	mux.HandleFunc("/in/", s.take)
	mux.HandleFunc("/hang/", s.hang)
	mux.HandleFunc("/slow/", func(w http.ResponseWriter, r *http.Request) {
		s.take(w, r)
		time.Sleep(pauseOf(r.URL.Path))
	})
	s.server = &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute, ErrorLog: log.New(io.Discard, "", 0),
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{certs.Leaf}, MinVersion: tls.VersionTLS12}}
	go func() { _ = s.server.ServeTLS(l, "", "") }() // ends with stop
	return s, nil
}

func (s *sink) stop() { _ = s.server.Close() }

func (s *sink) take(w http.ResponseWriter, r *http.Request) {
	now := time.Now()
	_, _ = io.Copy(io.Discard, r.Body) // What does not arrive is sent again
	key := r.URL.Path + r.Header.Get(webhook.HeaderDelivery)
	s.mu.Lock()
	if _, known := s.first[key]; known {
		s.twice++
	} else {
		s.first[key] = now
	}
	s.mu.Unlock()
	s.requests.Add(1)
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// hang keeps the sender waiting until it gives up.
func (s *sink) hang(_ http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	<-r.Context().Done()
}

// await waits until n different deliveries have arrived.
func (s *sink) await(ctx context.Context, n int) error {
	for {
		s.mu.Lock()
		have := len(s.first)
		s.mu.Unlock()
		if have >= n {
			return nil
		}
		select {
		case <-s.changed:
		case <-ctx.Done():
			return fmt.Errorf("%d of %d deliveries have arrived: %w", have, n, ctx.Err())
		}
	}
}

// reset forgets what came so far.
func (s *sink) reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.first)
	s.twice = 0
}

// arrivals copies what came so far.
func (s *sink) arrivals() (first map[string]time.Time, twice int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	first = make(map[string]time.Time, len(s.first))
	for key, at := range s.first {
		first[key] = at
	}
	return first, s.twice
}
