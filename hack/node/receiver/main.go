// Command receiver is a customer's system in a pod, for the tests on a node: it takes webhooks over
// https on port 8443, and tells on port 8080, under /received, what it took. Its certificate lies in /certs.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/registrar-dev/registrar/hack/stack"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "receiver:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	certs, err := stack.LoadCerts("/certs")
	if err != nil {
		return err
	}
	receiver, err := stack.StartReceiver(ctx, stack.ReceiverOptions{Addr: ":8443", Certs: certs})
	if err != nil {
		return err
	}
	defer func() { _ = receiver.Stop() }()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /received", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(receiver.All()) // who asked may be gone
	})
	server := &http.Server{Addr: ":8080", Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	if err := server.ListenAndServe(); ctx.Err() == nil {
		return err
	}
	return nil
}
