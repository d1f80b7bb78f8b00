package stack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// What the sets' servers are to be called and to know.
const (
	sentinelMaster   = "registrar"
	sentinelPassword = "of-the-sentinels"
	redisPassword    = "of-redis"
)

const redisSetStartsWithin = time.Minute

// RedisSet says where the servers of a set are.
type RedisSet struct {
	Server string // redis-server or valkey-server
	Dir    string // data, logs and certificates
}

// options are of the set's server with that name.
func (s RedisSet) options(ctx context.Context, secure *RedisTLS, name string) (RedisOptions, error) {
	port, err := FreePort(ctx)
	if err != nil {
		return RedisOptions{}, err
	}
	dir := filepath.Join(s.Dir, name)
	return RedisOptions{Server: s.Server, Port: port, Dir: dir, LogFile: dir + ".log", Password: redisPassword, TLS: secure,
		Settings: []string{"masterauth " + redisPassword}}, os.MkdirAll(dir, 0o755)
}

// RedisSentinels are a primary with a replica, and three Sentinels that watch them. All of them have
// passwords and certificates.
type RedisSentinels struct {
	Servers, Sentinels []*Redis // the first server is the primary at first

	secure *RedisTLS
}

// StartRedisSentinels returns once the Sentinels could fail over. What was started is there also when
// an error comes with it.
func StartRedisSentinels(ctx context.Context, set RedisSet) (*RedisSentinels, error) {
	ctx, cancel := context.WithTimeout(ctx, redisSetStartsWithin)
	defer cancel()
	s := &RedisSentinels{}
	var err error
	if s.secure, err = newRedisTLS(filepath.Join(set.Dir, "tls")); err != nil {
		return s, err
	}
	for _, name := range []string{"primary", "replica"} {
		o, err := set.options(ctx, s.secure, name)
		if err != nil {
			return s, err
		}
		if len(s.Servers) > 0 {
			o.Settings = append(o.Settings, fmt.Sprintf("replicaof 127.0.0.1 %d", s.Servers[0].options.Port))
		}
		server, err := StartRedis(ctx, o)
		if err != nil {
			return s, err
		}
		s.Servers = append(s.Servers, server)
	}
	if err := s.Servers[1].Await(ctx, s.Servers[1].replicates); err != nil {
		return s, err
	}
	for i := range 3 {
		o, err := set.options(ctx, s.secure, fmt.Sprintf("sentinel-%d", i))
		if err != nil {
			return s, err
		}
		o.Password, o.Settings = sentinelPassword, []string{
			fmt.Sprintf("sentinel monitor %s 127.0.0.1 %d 2", sentinelMaster, s.Servers[0].options.Port),
			"sentinel auth-pass " + sentinelMaster + " " + redisPassword,
			"sentinel sentinel-pass " + sentinelPassword,
			"sentinel down-after-milliseconds " + sentinelMaster + " 3000",
			"sentinel failover-timeout " + sentinelMaster + " 10000",
		}
		sentinel, err := startRedis(ctx, o, sentinelArguments)
		if err != nil {
			return s, err
		}
		s.Sentinels = append(s.Sentinels, sentinel)
	}
	for _, sentinel := range s.Sentinels {
		if err := sentinel.Await(ctx, knowsTheOthers(sentinel)); err != nil {
			return s, err
		}
	}
	return s, nil
}

// sentinelArguments writes the file that a Sentinel needs, because it keeps in it what it learns.
func sentinelArguments(o RedisOptions) ([]string, error) {
	file := filepath.Join(o.Dir, "sentinel.conf")
	return []string{file, "--sentinel"}, os.WriteFile(file, []byte(strings.Join(o.settings(), "\n")+"\n"), 0o600)
}

func knowsTheOthers(sentinel *Redis) func(context.Context) error {
	return func(ctx context.Context) error {
		return sentinel.says(ctx, "SENTINEL MASTER "+sentinelMaster, "flags master ", "num-slaves 1 ", "num-other-sentinels 2 ")
	}
}

// Primary asks a Sentinel which server is the primary now.
func (s *RedisSentinels) Primary(ctx context.Context) (*Redis, error) {
	var errs []error
	for _, sentinel := range s.Sentinels {
		answer, err := sentinel.do(ctx, "SENTINEL GET-MASTER-ADDR-BY-NAME "+sentinelMaster)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		for _, server := range s.Servers {
			if fmt.Sprint(answer) == fmt.Sprintf("[127.0.0.1 %d]", server.options.Port) {
				return server, nil
			}
		}
		return nil, fmt.Errorf("the primary is at %v", answer)
	}
	return nil, errors.Join(errs...)
}

// Environment is the programs'.
func (s *RedisSentinels) Environment() []string {
	var hosts []string
	for _, sentinel := range s.Sentinels {
		hosts = append(hosts, sentinel.Address())
	}
	return s.secure.environment(redisURL(s.Servers[0].options, "+sentinel", hosts...) +
		"/0?master=" + sentinelMaster + "&sentinel_password=" + sentinelPassword)
}

// Passwords are what no log may hold.
func (s *RedisSentinels) Passwords() []string { return []string{redisPassword, sentinelPassword} }

// Stop ends all that run.
func (s *RedisSentinels) Stop() error { return stopAll(append(s.Sentinels, s.Servers...)) }

func stopAll(servers []*Redis) error {
	var errs []error
	for _, server := range servers {
		errs = append(errs, server.Stop())
	}
	return errors.Join(errs...)
}

// AwaitReplica returns once there is a primary that a replica follows, and the Sentinels could fail over again.
func (s *RedisSentinels) AwaitReplica(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 3*redisSetStartsWithin)
	defer cancel()
	return retry(ctx, func(ctx context.Context) error {
		primary, err := s.Primary(ctx)
		if err != nil {
			return err
		}
		for _, server := range s.Servers {
			if server != primary {
				if err := server.replicates(ctx); err != nil {
					return err
				}
			}
		}
		return knowsTheOthers(s.Sentinels[0])(ctx)
	})
}
