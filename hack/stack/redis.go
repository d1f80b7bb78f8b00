package stack

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/alicebob/miniredis/v2"
)

const redisStartsWithin = 20 * time.Second

// RedisOptions say which server to run.
type RedisOptions struct {
	Server  string // redis-server or valkey-server; "": a small one inside this process
	Port    int
	LogFile string
}

// Redis is a Redis server on 127.0.0.1 that keeps nothing on disk: whatever ends it also empties it.
type Redis struct {
	options RedisOptions
	program *Program             // nil: in-process
	inside  *miniredis.Miniredis // nil: a program, or stopped
}

// StartRedis starts the server and returns once it answers.
func StartRedis(ctx context.Context, o RedisOptions) (*Redis, error) {
	r := &Redis{options: o}
	if o.Server != "" {
		r.program = NewProgram(Command{
			Name:    filepath.Base(o.Server),
			Path:    o.Server,
			Dir:     os.TempDir(),
			LogFile: o.LogFile,
			Args: []string{
				"--port", strconv.Itoa(o.Port),
				"--bind", "127.0.0.1",
				"--save", "", "--appendonly", "no",
				"--maxmemory-policy", "noeviction", // Asynq's rule: a queue may refuse, never forget
				"--daemonize", "no",
			},
		})
	}
	return r, r.Start(ctx)
}

// Start starts a stopped or killed server again, empty, on the same port.
func (r *Redis) Start(ctx context.Context) error {
	if r.program == nil {
		if err := awaitPort(ctx, r.options.Port); err != nil {
			return err
		}
		r.inside = miniredis.NewMiniRedis()
		r.inside.ClockTTL(true)
		return r.inside.StartAddr(r.addr())
	}
	if err := r.program.Start(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, redisStartsWithin)
	defer cancel()
	if err := r.program.Await(ctx, r.ping); err != nil {
		return errors.Join(err, r.program.Stop())
	}
	return nil
}

// awaitPort waits until a listener of this process has let its port go: a program that is just
// being started holds it, too, until it begins.
func awaitPort(ctx context.Context, port int) error {
	ctx, cancel := context.WithTimeout(ctx, redisStartsWithin)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !PortFree(ctx, port) {
		select {
		case <-ctx.Done():
			return fmt.Errorf("port %d is in use: %w", port, ctx.Err())
		case <-tick.C:
		}
	}
	return nil
}

// ping says PING in Redis' inline form: a client library would log every refused connection.
func (r *Redis) ping(ctx context.Context) error {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", r.addr())
	if err != nil {
		return err
	}
	defer conn.Close()
	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(deadline); err != nil {
			return err
		}
	}
	if _, err := io.WriteString(conn, "PING\r\n"); err != nil {
		return err
	}
	answer, err := bufio.NewReader(conn).ReadString('\n')
	if err == nil && answer != "+PONG\r\n" {
		err = fmt.Errorf("PING was answered %q", answer)
	}
	return err
}

// Stop ends the server in an orderly way; what it held is gone.
func (r *Redis) Stop() error { return r.end((*Program).Stop) }

// Kill ends the server as a crash would.
func (r *Redis) Kill() error { return r.end((*Program).Kill) }

func (r *Redis) end(how func(*Program) error) error {
	if r.program != nil {
		return how(r.program)
	}
	if r.inside != nil {
		r.inside.Close()
		r.inside = nil
	}
	return nil
}

// Program is the server's process, nil when it runs inside this one.
func (r *Redis) Program() *Program { return r.program }

// URL is what REDIS_URL wants.
func (r *Redis) URL() string { return "redis://" + r.addr() + "/0" }

func (r *Redis) addr() string { return fmt.Sprintf("127.0.0.1:%d", r.options.Port) }

// PID is the server's process, or this one when the server is inside it.
func (r *Redis) PID() int {
	if r.program == nil {
		return os.Getpid()
	}
	return r.program.Identity().PID
}
