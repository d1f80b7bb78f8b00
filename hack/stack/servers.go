package stack

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
)

// Servers are a PostgreSQL and a Redis that go with their caller.
type Servers struct {
	Dir      string // for more that goes with them; users other than this process's may enter it
	Postgres *Postgres
	Redis    *Redis
}

// StartServers starts both. Of PostgreSQL's options, the program, the port and the user are set
// here, and the folder unless the caller has one that is to stay. Their logs go to the folder logs;
// "" is Dir. ports are PostgreSQL's and Redis'; without them, free ones. What was started is in the servers also when an error comes with them.
func StartServers(ctx context.Context, tools Tools, o PostgresOptions, logs string, ports ...int) (_ *Servers, err error) {
	s := &Servers{}
	if o.User, err = ServiceUser(); err != nil {
		return s, err
	}
	if s.Dir, err = throwAwayDir(ctx, o); err != nil {
		return s, err
	}
	if logs == "" {
		logs = s.Dir
	}
	if o.Dir == "" {
		o.Dir = filepath.Join(s.Dir, "postgres")
	}
	if len(ports) == 0 {
		if ports, err = FreePorts(ctx, 2); err != nil {
			return s, err
		}
	}
	o.Bin, o.Port, o.LogFile = tools.PostgresBin, ports[0], filepath.Join(logs, "postgres.log")
	if s.Postgres, err = StartPostgres(ctx, o); err != nil {
		return s, err
	}
	s.Redis, err = StartRedis(ctx, RedisOptions{Server: tools.RedisServer, Port: ports[1], LogFile: filepath.Join(logs, "redis.log")})
	return s, err
}

// throwAwayDir makes the servers' folder: in memory, where there is enough of it, for data that nobody
// keeps. Making a database is mostly making files, and that is several times faster there.
func throwAwayDir(ctx context.Context, o PostgresOptions) (string, error) {
	const memory, enough = "/dev/shm", 4 << 30 // containers often have 64 MB there
	var fs syscall.Statfs_t
	if !o.Durable && o.Dir == "" && syscall.Statfs(memory, &fs) == nil && fs.Bavail*uint64(fs.Bsize) >= enough {
		if dir, err := tempDirIn(memory); err == nil {
			return dir, nil
		}
	}
	return TempDir(ctx, o.User)
}

// Stop ends what was started and removes Dir.
func (s *Servers) Stop() error {
	var err error
	if s.Redis != nil {
		err = s.Redis.Stop()
	}
	if s.Postgres != nil {
		err = errors.Join(err, s.Postgres.Stop())
	}
	if s.Dir != "" {
		err = errors.Join(err, os.RemoveAll(s.Dir))
	}
	return err
}
