// Command vulncheck asks the Go vulnerability database about what both modules call, and says first which
// database that is and of what day. Where the network has none, GOVULNDB names a copy: another address, a
// folder (or its file:// address), or the file vulndb.zip as it comes from https://vuln.go.dev/vulndb.zip.
//
//	make vulncheck
//	GOVULNDB=/media/vulndb.zip make vulncheck
package main

import (
	"archive/zip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/registrar-dev/registrar/hack/stack"
)

const (
	published  = "https://vuln.go.dev"
	checker    = "golang.org/x/vuln/cmd/govulncheck@v1.9.0"
	indexFile  = "index/db.json"
	answerTime = 30 * time.Second
)

// errNoDatabase is what helps where there is none.
var errNoDatabase = errors.New(`no vulnerability database, so nothing was checked. Where there is a network, fetch
  ` + published + `/vulndb.zip
and name the file, or a folder with its content:
  GOVULNDB=/path/to/vulndb.zip make vulncheck`)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Getenv("GOVULNDB"))
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "vulncheck:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, name string) error {
	root, err := stack.Root()
	if err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "registrar-vulndb-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	database, modified, err := locate(ctx, name, work)
	if err != nil {
		return fmt.Errorf("%w\n%w", err, errNoDatabase)
	}
	fmt.Printf("Vulnerability database: %s, of %s\n", database, modified.UTC().Format(time.DateTime))
	for _, module := range []string{".", "hack"} {
		cmd := exec.CommandContext(ctx, "go", "run", checker, "-db", database, "-C", filepath.Join(root, module), "./...") //nolint:gosec // the database that the developer names
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("module %s: %w", module, err)
		}
	}
	return nil
}

// locate gives the address of the database that name means, and when it was last changed. A zip file is
// unpacked into work.
func locate(ctx context.Context, name, work string) (address string, modified time.Time, err error) {
	if name == "" {
		name = published
	}
	if strings.HasPrefix(name, "https://") || strings.HasPrefix(name, "http://") {
		modified, err = modifiedAt(func() (io.ReadCloser, error) { return fetch(ctx, strings.TrimSuffix(name, "/")+"/"+indexFile) })
		return name, modified, err
	}
	folder, err := filepath.Abs(strings.TrimPrefix(name, "file://"))
	if err != nil {
		return "", time.Time{}, err
	}
	info, err := os.Stat(folder)
	if err != nil {
		return "", time.Time{}, err
	}
	if !info.IsDir() {
		if err := unzip(folder, work); err != nil {
			return "", time.Time{}, fmt.Errorf("%s: %w", folder, err)
		}
		folder = work
	}
	modified, err = modifiedAt(func() (io.ReadCloser, error) { return os.Open(filepath.Join(folder, indexFile)) })
	return "file://" + filepath.ToSlash(folder), modified, err
}

// modifiedAt reads when a database was last changed out of its index.
func modifiedAt(open func() (io.ReadCloser, error)) (time.Time, error) {
	file, err := open()
	if err != nil {
		return time.Time{}, err
	}
	defer file.Close()
	var index struct{ Modified time.Time }
	if err := json.NewDecoder(file).Decode(&index); err != nil {
		return time.Time{}, fmt.Errorf("%s: %w", indexFile, err)
	}
	if index.Modified.IsZero() {
		return time.Time{}, fmt.Errorf("%s does not say when it was changed", indexFile)
	}
	return index.Modified, nil
}

// fetch gives the body of a good answer.
func fetch(ctx context.Context, url string) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody) //nolint:gosec // likewise
	if err != nil {
		return nil, err
	}
	res, err := (&http.Client{Timeout: answerTime}).Do(req) //nolint:gosec // likewise
	if err != nil {
		return nil, err
	}
	if res.StatusCode != http.StatusOK {
		return nil, errors.Join(fmt.Errorf("%s: %s", url, res.Status), res.Body.Close())
	}
	return res.Body, nil
}

func unzip(file, to string) error {
	archive, err := zip.OpenReader(file)
	if err != nil {
		return err
	}
	defer func() { _ = archive.Close() }()
	return os.CopyFS(to, archive)
}
