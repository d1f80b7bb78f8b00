package obs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"
)

// grace is how long requests in hand may take to finish once the program is asked to
// end. A pod's grace period has to be longer.
const grace = 25 * time.Second

// NewServer makes a server with time limits that suit JSON requests. A handler that
// needs longer moves its own deadlines with http.ResponseController.
func NewServer(addr string, h http.Handler) *http.Server {
	return &http.Server{
		Addr:              addr,
		Handler:           h,
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       30 * time.Second,
		WriteTimeout:      60 * time.Second,
		IdleTimeout:       120 * time.Second,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(slog.Default().Handler(), slog.LevelWarn),
	}
}

// Run is the life of a program: it serves the private port at addr while the pieces of
// work run. Each piece returns when its context ends, with its work in hand finished;
// the first one that fails ends the others. While they finish, /readyz says draining and
// the metrics can still be read.
func Run(ctx context.Context, private *Private, addr string, work ...func(context.Context) error) error {
	server := NewServer(addr, private)
	server.WriteTimeout = 5 * time.Minute // profiles take as long as they are asked to
	listener, err := listen(ctx, addr)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	context.AfterFunc(ctx, private.Drain)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	var wg sync.WaitGroup
	errs := make([]error, len(work))
	for i, piece := range work {
		wg.Go(func() {
			if errs[i] = piece(ctx); errs[i] != nil {
				cancel(errs[i])
			}
		})
	}
	wg.Wait()
	_ = server.Close()
	return errors.Join(errors.Join(errs...), ended(addr, <-served))
}

// Listen listens on the address of every server, so that a program that is ready can be
// reached, and returns the piece of work that serves: until its context ends, and then
// for up to 25 s more to let the requests in hand finish. It fails when a server stops
// by itself.
func Listen(ctx context.Context, servers ...*http.Server) (serve func(context.Context) error, err error) {
	listeners := make([]net.Listener, 0, len(servers))
	for _, s := range servers {
		l, err := listen(ctx, s.Addr)
		if err != nil {
			for _, open := range listeners {
				_ = open.Close()
			}
			return nil, err
		}
		listeners = append(listeners, l)
	}
	return func(ctx context.Context) error { return serveOn(ctx, servers, listeners) }, nil
}

func listen(ctx context.Context, addr string) (net.Listener, error) {
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("listening on %q: %w", addr, err)
	}
	return l, nil
}

func serveOn(ctx context.Context, servers []*http.Server, listeners []net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	errs := make([]error, len(servers))
	var wg sync.WaitGroup
	for i, s := range servers {
		wg.Go(func() {
			defer cancel()
			errs[i] = serveOne(ctx, s, listeners[i])
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

func serveOne(ctx context.Context, s *http.Server, l net.Listener) error {
	failed := make(chan error, 1)
	go func() { failed <- s.Serve(l) }()
	select {
	case err := <-failed:
		return ended(s.Addr, err)
	case <-ctx.Done():
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	err := s.Shutdown(ctx)
	if err != nil {
		_ = s.Close()
		err = fmt.Errorf("%s: requests in hand did not finish within %s: %w", s.Addr, grace, err)
	}
	return errors.Join(err, ended(s.Addr, <-failed))
}

// ended makes what http.Server.Serve returns a fault, unless the server was closed.
func ended(addr string, err error) error {
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("serving %s: %w", addr, err)
}
