package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"sync"
	"time"
)

// caller calls the site's APIs as an integrator should: a call without an answer, or with one of
// 500 and above, is made again, at the other server, until there is one.
type caller struct {
	site   *site
	report *report
	rand   *rand.Rand
	client http.Client
	keys   map[string]string // of the organizations
}

const (
	answersWithin = 40 * time.Second // one try
	patience      = 10 * time.Minute // all of them
)

// request is a call with what it needs to be made again.
type request struct {
	method, path, body string
	org                string // of the partner API; "" for the platform API
	header             map[string]string
	once               string // Idempotency-Key
}

// answer is what came back in the end.
type answer struct {
	status int
	body   []byte
	next   string // where to go on, by the header Link
	first  bool   // of the first try
}

// do makes the call until it has an answer that is not to be tried again.
func (c *caller) do(ctx context.Context, r request) (answer, error) {
	began := time.Now()
	for tries := 0; ; tries++ {
		a, err := c.try(ctx, r)
		if err == nil && a.status < 500 && a.status != http.StatusTooManyRequests && (a.status != http.StatusConflict || a.next != "") {
			a.first = tries == 0
			return a, nil
		}
		if ctx.Err() != nil {
			return a, ctx.Err()
		}
		if time.Since(began) > patience {
			return a, fmt.Errorf("%s %s: no good answer in %s: %d %s %w", r.method, r.path, patience, a.status, a.body, err)
		}
		c.report.retried(a.status)
		if err := pause(ctx, time.Duration((100+c.rand.IntN(900))*min(1+tries, 5))*time.Millisecond); err != nil {
			return a, err
		}
	}
}

func (c *caller) try(ctx context.Context, r request) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, answersWithin)
	defer cancel()
	settings := c.site.servers[c.rand.IntN(len(c.site.servers))]
	base, header, value := settings.PlatformURL(), "Authorization", "Bearer "+settings.PlatformKey
	if r.org != "" {
		base, header, value = settings.PublicURL()+"/api/v1/", "X-API-Key", c.keys[r.org]
	}
	req, err := http.NewRequestWithContext(ctx, r.method, base+r.path, bytes.NewReader([]byte(r.body)))
	if err != nil {
		return answer{}, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set(header, value)
	for name, text := range r.header {
		req.Header.Set(name, text)
	}
	if r.once != "" {
		req.Header.Set("Idempotency-Key", r.once)
	}
	res, err := c.client.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	return answer{status: res.StatusCode, body: text, next: res.Header.Get("Link")}, err
}

// ask makes a call that has to succeed and reads its answer.
func (c *caller) ask(ctx context.Context, r request, into any) (answer, error) {
	a, err := c.do(ctx, r)
	if err != nil {
		return a, err
	}
	if a.status/100 != 2 {
		return a, fmt.Errorf("%s %s %s: %d %s", r.method, r.path, r.body, a.status, a.body)
	}
	if into == nil {
		return a, nil
	}
	return a, json.Unmarshal(a.body, into)
}

// journal keeps accepted calls on disk, each as soon as it is known.
type journal struct {
	mu   sync.Mutex
	file *os.File
}

func openJournal(name string) (*journal, error) {
	f, err := os.Create(name)
	return &journal{file: f}, err
}

func (j *journal) add(o op) error {
	line, err := json.Marshal(o)
	if err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	_, err = j.file.Write(append(line, '\n'))
	return err
}

func (j *journal) close() error { return j.file.Close() }

// readLines decodes a file of one JSON value a line.
func readLines[T any](name string, each func(T) error) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	d := json.NewDecoder(f)
	for {
		var v T
		err := d.Decode(&v)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := each(v); err != nil {
			return err
		}
	}
}
