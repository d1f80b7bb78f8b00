package stack

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
)

// StartPrism runs Prism with the arguments, such as mock and the file of a document, and returns its
// address. modules is a folder node_modules that has it.
func StartPrism(ctx context.Context, modules, logFile string, args ...string) (*Program, string, error) {
	port, err := FreePort(ctx)
	if err != nil {
		return nil, "", err
	}
	p := NewProgram(Command{Name: "prism", Path: filepath.Join(modules, ".bin", "prism"), Env: os.Environ(), LogFile: logFile,
		Args: append(args, "--host=127.0.0.1", fmt.Sprintf("--port=%d", port))})
	if err := p.Start(); err != nil {
		return nil, "", err
	}
	address := httpURL(port)
	err = p.Await(ctx, func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
		if err != nil {
			return err
		}
		res, err := http.DefaultClient.Do(req)
		if err == nil {
			err = res.Body.Close() // any answer will do
		}
		return err
	})
	if err != nil {
		return nil, "", errors.Join(err, p.Stop())
	}
	return p, address, nil
}
