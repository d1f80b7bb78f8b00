package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// probeCommand asks from where the program runs what only answers there: images hold no
// curl.
type probeCommand struct {
	URLs    []string      `arg:"" name:"url" help:"Addresses to GET."`
	Timeout time.Duration `default:"30s" help:"How long all of them may take together."`
}

// Run prints a line for each address and fails when one does not answer 2xx.
func (c probeCommand) Run(p *process) error {
	ctx, cancel := context.WithTimeout(p.ctx, c.Timeout)
	defer cancel()
	var errs []error
	for _, url := range c.URLs {
		status, err := ask(ctx, url)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		_, _ = fmt.Fprintln(p.stdout, status, url)
	}
	return errors.Join(errs...)
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
