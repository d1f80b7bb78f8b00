package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"crypto/tls"

	"github.com/registrar-dev/registrar/hack/stack"
	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/kit/queue"
	"github.com/registrar-dev/registrar/internal/kit/task"
)

// bareAsynq is the limit that a sender with one task a delivery has: two Asynq servers whose
// handlers sign and POST 1.5 KB to a sink, and nothing else. It returns POSTs a second.
func bareAsynq(ctx context.Context, r *run) (float64, error) {
	tools, err := stack.EnsureServers(ctx, os.Stderr)
	if err != nil {
		return 0, err
	}
	dir, err := os.MkdirTemp("", "registrar-bench-")
	if err != nil {
		return 0, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	certs, err := stack.LoadCerts(dir)
	if err != nil {
		return 0, err
	}
	port, err := stack.FreePort(ctx)
	if err != nil {
		return 0, err
	}
	server, err := stack.StartRedis(ctx, stack.RedisOptions{Server: tools.RedisServer, Port: port, LogFile: filepath.Join(dir, "redis.log")})
	if err != nil {
		return 0, err
	}
	defer func() { _ = server.Stop() }()
	sink, err := startSink(ctx, certs)
	if err != nil {
		return 0, err
	}
	defer sink.stop()
	return bareRate(ctx, server.URL(), sink, certs, r.size(30_000))
}

func bareRate(ctx context.Context, redisURL string, s *sink, certs stack.Certs, n int) (float64, error) {
	rdb, err := queue.Connect(redisURL, queue.TLS{})
	if err != nil {
		return 0, err
	}
	defer func() { _ = rdb.Close() }()
	client := queue.NewClient(rdb)
	items := make([]queue.Item, n)
	for i := range items {
		items[i] = queue.Item{Queue: queue.Webhook, Kind: task.WebhookDeliver, ID: fmt.Sprint(i), Payload: fmt.Appendf(nil, "%d", i), Timeout: time.Minute}
	}
	if err := client.EnqueueMany(ctx, items); err != nil {
		return 0, err
	}
	post := poster(s, certs)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	began := time.Now()
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			_ = queue.Serve(ctx, rdb, queue.Options{Queue: queue.Webhook, Concurrency: 50, Log: slog.New(slog.DiscardHandler),
				Handlers: map[task.Kind]queue.Handler{task.WebhookDeliver: post}}) // its end is ours
		})
	}
	err = s.await(ctx, n)
	took := time.Since(began)
	cancel()
	wg.Wait()
	return float64(n) / took.Seconds(), err
}

func poster(s *sink, certs stack.Certs) queue.Handler {
	http := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 100,
		TLSClientConfig: &tls.Config{RootCAs: certs.CA, MinVersion: tls.VersionTLS12}}}
	return func(ctx context.Context, payload []byte) error {
		req, err := newPost(ctx, s.base+"/in/bare", string(payload))
		if err != nil {
			return err
		}
		resp, err := http.Do(req)
		if err != nil {
			return err
		}
		defer func() { _ = resp.Body.Close() }()
		_, err = io.Copy(io.Discard, resp.Body)
		return err
	}
}

func newPost(ctx context.Context, url, event string) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(resultData))
	if err == nil {
		req.Header.Set(webhook.HeaderDelivery, event)
		req.Header.Set(webhook.HeaderSignature, webhook.Sign(time.Now(), resultData, "whsec_bare"))
	}
	return req, err
}

// redisMemory is what Redis holds for its data, in bytes.
func redisMemory(ctx context.Context, url string) (int64, error) {
	rdb, err := queue.Connect(url, queue.TLS{})
	if err != nil {
		return 0, err
	}
	defer func() { _ = rdb.Close() }()
	info, err := rdb.InfoMap(ctx, "memory").Result()
	if err != nil {
		return 0, err
	}
	var n int64
	_, err = fmt.Sscan(info["Memory"]["used_memory"], &n)
	return n, err
}
