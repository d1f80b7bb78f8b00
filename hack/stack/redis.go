package stack

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

const redisStartsWithin = 20 * time.Second

// RedisOptions say which server to run.
type RedisOptions struct {
	Server  string // redis-server or valkey-server
	Port    int
	LogFile string
}

// Redis is a Redis server on 127.0.0.1 that keeps nothing on disk: whatever ends it also empties it.
type Redis struct {
	*Program

	port int
}

// StartRedis starts the server and returns once it answers.
func StartRedis(ctx context.Context, o RedisOptions) (*Redis, error) {
	r := &Redis{port: o.Port}
	r.Program = NewProgram(Command{
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
	return r, r.Start(ctx)
}

// Start starts a stopped or killed server again, empty, on the same port.
func (r *Redis) Start(ctx context.Context) error {
	return r.startUntil(ctx, redisStartsWithin, r.ping)
}

// ping says PING in Redis' inline form: a client library would log every refused connection.
func (r *Redis) ping(ctx context.Context) error {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", hostPort(r.port))
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

// URL is what REDIS_URL wants.
func (r *Redis) URL() string { return "redis://" + hostPort(r.port) + "/0" }
