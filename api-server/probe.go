package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

// probeCommand asks from where the program runs what only answers there: images hold no
// curl.
type probeCommand struct {
	URLs    []string      `arg:"" name:"url" help:"Addresses to GET."`
	Timeout time.Duration `default:"30s" help:"How long all of them may take together."`
}

// Run prints a line for each address and fails when one does not answer 2xx in time: the way to a
// program that is ready may be a moment behind.
func (c probeCommand) Run(p *process) error {
	ctx, cancel := context.WithTimeout(p.ctx, c.Timeout)
	defer cancel()
	answers, errs := make([]string, len(c.URLs)), make([]error, len(c.URLs))
	var all sync.WaitGroup
	for i, url := range c.URLs {
		all.Go(func() { answers[i], errs[i] = await(ctx, url) })
	}
	all.Wait()
	for i, url := range c.URLs {
		if errs[i] == nil {
			_, _ = fmt.Fprintln(p.stdout, answers[i], url)
		}
	}
	return errors.Join(errs...)
}

// await asks until the answer is 2xx, and gives the last complaint once ctx has ended.
func await(ctx context.Context, url string) (status string, err error) {
	again := time.NewTicker(500 * time.Millisecond)
	defer again.Stop()
	for {
		status, complaint := ask(ctx, url)
		if complaint == nil {
			return status, nil
		}
		if err == nil || ctx.Err() == nil { // that time is up says less than what there was before
			err = complaint
		}
		select {
		case <-ctx.Done():
			return "", err
		case <-again.C:
		}
	}
}

func ask(ctx context.Context, url string) (status string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode/100 != 2 {
		text, _ := io.ReadAll(io.LimitReader(res.Body, 1000)) // what can be said is said
		return "", fmt.Errorf("%s: %s %s", url, res.Status, text)
	}
	return res.Status, nil
}
