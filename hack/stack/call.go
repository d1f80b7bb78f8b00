package stack

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
)

// Refusal is an answer other than 2xx.
type Refusal struct {
	Status int
	text   string
}

func (r *Refusal) Error() string { return r.text }

// Call calls an API of JSON with a key, "" for none. The body is a text that is sent as it is, or
// anything else as its JSON; the answer is read into result. Both may be nil. An answer other than
// 2xx is a *Refusal.
func Call(ctx context.Context, method, address, key string, body, result any) error {
	answer, err := exchange(ctx, http.DefaultClient, method, address, key, body)
	if err != nil || result == nil {
		return err
	}
	return json.Unmarshal(answer, result)
}

// Get reads a page. An answer other than 2xx is a *Refusal.
func Get(ctx context.Context, address string) ([]byte, error) {
	return exchange(ctx, http.DefaultClient, http.MethodGet, address, "", nil)
}

func exchange(ctx context.Context, client *http.Client, method, address, key string, body any) ([]byte, error) {
	content := []byte(nil)
	switch body := body.(type) {
	case nil:
	case string:
		content = []byte(body)
	default:
		var err error
		if content, err = json.Marshal(body); err != nil {
			return nil, err
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(content))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	res, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode/100 != 2 {
		err = &Refusal{res.StatusCode, fmt.Sprintf("%s %s: %s %s", method, req.URL.Path, res.Status, bytes.TrimSpace(answer))}
	}
	return answer, err
}
