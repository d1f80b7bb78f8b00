package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/registrar-dev/registrar/hack/stack"
	"github.com/registrar-dev/registrar/internal/kit/seal"
)

// database is PostgreSQL as the programs reach it.
type database struct {
	plain   *stack.Postgres  // one server; nil with a pair
	pair    *stack.Patroni   // nil without Patroni
	pooler  *stack.PgBouncer // nil without one
	network *stack.Relay     // from the programs to the pooler, or to PostgreSQL
	own     *stack.Postgres  // of sandboxes

	direct, programs, sandboxes string // addresses of the owner: past the pooler, over the network, of the sandboxes' server

	dir  string // of the servers' data; whoever runs them may enter it
	disk string // a file system of its own for one server; "" where there is none, and with a pair, whose nodes have theirs
}

// backup and archive are where a restore finds what it reads.
func (d *database) backup() string  { return filepath.Join(d.dir, "backup") }
func (d *database) archive() string { return filepath.Join(d.dir, "archive") }

func startDatabase(ctx context.Context, tools stack.Tools, o options, logs string) (*database, error) {
	d := &database{}
	user, err := stack.ServiceUser()
	if err != nil {
		return d, err
	}
	if d.dir, err = stack.TempDir(ctx, user); err != nil {
		return d, err
	}
	if err := d.startServers(ctx, tools, o, user, logs); err != nil {
		return d, err
	}
	server := d.server()
	password := seal.Token()
	if d.direct, err = server.EnsureDatabase(ctx, "registrar", password); err != nil {
		return d, err
	}
	next := server.Address()
	if o.pooler {
		program, err := stack.EnsurePgBouncer(ctx)
		if err != nil {
			return d, err
		}
		port, err := stack.FreePort(ctx)
		if err != nil {
			return d, err
		}
		d.pooler, err = stack.StartPgBouncer(ctx, stack.PgBouncerOptions{Server: program, Port: port, User: user,
			LogFile: filepath.Join(logs, "pgbouncer.log"), DatabaseURL: d.direct})
		if err != nil {
			return d, err
		}
		next = fmt.Sprintf("127.0.0.1:%d", port)
	}
	if d.network, err = stack.StartRelay(ctx, next); err != nil {
		return d, err
	}
	d.programs, err = at(d.direct, d.network.Address())
	return d, err
}

// at is an address with another server.
func at(address, server string) (string, error) {
	u, err := url.Parse(address)
	if err != nil {
		return "", err
	}
	u.Host = server
	return u.String(), nil
}

// startServers starts the servers, and the one of sandboxes, which is no part of what a restore brings back.
func (d *database) startServers(ctx context.Context, tools stack.Tools, o options, user *stack.User, logs string) error {
	ports, err := stack.FreePorts(ctx, 2)
	if err != nil {
		return err
	}
	if o.sandboxes > 0 {
		d.own, err = stack.StartPostgres(ctx, stack.PostgresOptions{Bin: tools.PostgresBin, Dir: filepath.Join(d.dir, "sandboxes"), Port: ports[0], User: user, Durable: true,
			LogFile: filepath.Join(logs, "postgres-sandboxes.log"), Settings: []string{"fsync=off"}})
		if err != nil {
			return err
		}
		if d.sandboxes, err = d.own.EnsureSandboxes(ctx, "registrar_sandboxes", seal.Token()); err != nil {
			return err
		}
	}
	if o.patroni {
		parameters := stack.Archives(d.archive())
		for name, value := range map[string]string{"max_connections": "300", "shared_buffers": "256MB", "max_wal_size": "512MB", "max_slot_wal_keep_size": "1GB"} {
			parameters[name] = value
		}
		size := o.disk
		if err := stack.CanIsolate(ctx); err != nil {
			fmt.Fprintln(os.Stderr, "no disks of limited size:", err)
			size = ""
		}
		folder, written := filepath.Join(d.dir, "patroni"), filepath.Join(logs, "patroni")
		if err := errors.Join(os.Mkdir(folder, 0o755), os.MkdirAll(written, 0o755)); err != nil {
			return err
		}
		d.pair, err = stack.StartPatroni(ctx, stack.PatroniOptions{PostgresBin: tools.PostgresBin, Dir: folder, LogDir: written, User: user, Nodes: 2, DiskSize: size, Parameters: parameters})
		return err
	}
	data := filepath.Join(d.dir, "disk")
	if err := os.Mkdir(data, 0o755); err != nil {
		return err
	}
	if text, err := exec.CommandContext(ctx, "mount", "-t", "tmpfs", "-o", "mode=755,size="+o.disk, "registrar-soak", data).CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "no disk of limited size: %s", text)
	} else {
		d.disk = data
	}
	d.plain, err = stack.StartPostgres(ctx, stack.PostgresOptions{Bin: tools.PostgresBin, Dir: filepath.Join(data, "postgres"), Port: ports[1], User: user, Durable: true,
		LogFile: filepath.Join(logs, "postgres.log")})
	return err
}

// server is the one that takes writes, past the pooler.
func (d *database) server() *stack.Postgres {
	if d.pair != nil {
		return d.pair.Server()
	}
	return d.plain
}

// String says what runs.
func (d *database) String() string {
	words := []string{"one PostgreSQL"}
	if d.pair != nil {
		words = []string{"a pair of PostgreSQL under Patroni with HAProxy"}
	}
	if d.pooler != nil {
		words = append(words, "behind PgBouncer")
	}
	return strings.Join(words, " ")
}

// close ends everything and takes the disks away.
func (d *database) close(ctx context.Context) error {
	if d == nil {
		return nil
	}
	var err error
	if d.network != nil {
		err = d.network.Close()
	}
	if d.pooler != nil {
		err = errors.Join(err, d.pooler.Close())
	}
	err = errors.Join(err, stopped(d.pair), stopped(d.plain), stopped(d.own))
	if d.disk != "" {
		err = errors.Join(err, exec.CommandContext(ctx, "umount", d.disk).Run())
	}
	if d.dir != "" {
		err = errors.Join(err, os.RemoveAll(d.dir))
	}
	return err
}
