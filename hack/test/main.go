// Command test runs the tests on real servers: it starts a throw-away PostgreSQL and Redis, builds
// the programs, runs `go test` with the given arguments (./... when there are none) and ends with
// its status. Everything that go test prints comes out unchanged.
//
//	go run ./hack/test                                  everything
//	go run ./hack/test -- -run TestClone ./internal/kit/pg   a part
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/registrar-dev/registrar/hack/stack"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code, err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "test:", err)
		code = 1
	}
	os.Exit(code)
}

// run returns go test's exit status, or an error when it could not be run at all.
func run(ctx context.Context, args []string) (code int, err error) {
	root, err := stack.Root()
	if err != nil {
		return 0, err
	}
	tools, err := stack.EnsureAll(ctx, os.Stderr)
	if err != nil {
		return 0, err
	}
	bin, err := stack.Build(ctx, root)
	if err != nil {
		return 0, err
	}
	kube, helm3, err := kubernetes(ctx, args)
	if err != nil {
		return 0, err
	}
	axe, err := stack.EnsureAxe(ctx, os.Stderr)
	if err != nil {
		fmt.Fprintln(os.Stderr, "No axe-core, so tests of accessibility are skipped:", err)
	}
	servers, err := start(ctx, tools)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, servers.stop()) }()
	skipped, err := os.MkdirTemp("", "registrar-skipped-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(skipped)
	notTested := filepath.Join(skipped, "not-tested")
	defer tell(notTested)
	return goTest(ctx, root, args, append(os.Environ(),
		stack.NotTestedFile+"="+notTested,
		"TEST_DATABASE_URL="+servers.postgres.URL("postgres"),
		"TEST_REDIS_URL="+servers.redis.URL(),
		"REGISTRAR_BIN="+bin,
		"CHROMIUM="+tools.Chromium,
		"AXE_CORE="+axe,
		"KUBEBUILDER_ASSETS="+kube,
		"HELM3="+helm3,
	))
}

// tell says what this machine could not test, loudly: go test says "ok" of it.
func tell(file string) {
	lines, err := stack.ReadNotTested(file)
	if err != nil {
		fmt.Fprintln(os.Stderr, "test:", err)
	}
	for _, line := range lines {
		fmt.Fprintln(os.Stderr, "NOT TESTED:", line)
	}
}

// kubernetes prepares what the tests of the operator and of the chart need, where they are among
// those to be run: its first build takes minutes.
func kubernetes(ctx context.Context, args []string) (kube, helm3 string, err error) {
	wanted := len(args) == 0 || len(args) == 1 && args[0] == "--" || slices.ContainsFunc(args, func(arg string) bool {
		return strings.Contains(arg, "...") || strings.Contains(arg, "operator") || strings.Contains(arg, "hack")
	})
	if !wanted {
		return os.Getenv("KUBEBUILDER_ASSETS"), os.Getenv("HELM3"), nil
	}
	if kube, err = stack.EnsureKube(ctx, os.Stderr); err != nil {
		return "", "", err
	}
	helm3, err = stack.EnsureHelm3(ctx, os.Stderr)
	return kube, helm3, err
}

// servers are what the tests share. Each test makes a database and a queue name of its own.
type servers struct {
	dir      string
	postgres *stack.Postgres
	redis    *stack.Redis
}

func start(ctx context.Context, tools stack.Tools) (_ *servers, err error) {
	user, err := stack.ServiceUser()
	if err != nil {
		return nil, err
	}
	s := &servers{}
	if s.dir, err = stack.TempDir(ctx, user); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.stop())
		}
	}()
	port, err := stack.FreePort(ctx)
	if err != nil {
		return nil, err
	}
	s.postgres, err = stack.StartPostgres(ctx, stack.PostgresOptions{
		Bin: tools.PostgresBin, User: user, Port: port,
		Dir: filepath.Join(s.dir, "postgres"), LogFile: filepath.Join(s.dir, "postgres.log"),
	})
	if err != nil {
		return nil, err
	}
	if port, err = stack.FreePort(ctx); err != nil {
		return nil, err
	}
	s.redis, err = stack.StartRedis(ctx, stack.RedisOptions{
		Server: tools.RedisServer, Port: port, LogFile: filepath.Join(s.dir, "redis.log"),
	})
	return s, err
}

func (s *servers) stop() error {
	var err error
	if s.redis != nil {
		err = s.redis.Stop()
	}
	if s.postgres != nil {
		err = errors.Join(err, s.postgres.Stop())
	}
	return errors.Join(err, os.RemoveAll(s.dir))
}

func goTest(ctx context.Context, root string, args, env []string) (int, error) {
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	if len(args) == 0 {
		args = []string{"./..."}
	}
	goTool, err := exec.LookPath("go")
	if err != nil {
		return 0, err
	}
	p := stack.NewProgram(stack.Command{
		Name: "go test", Path: goTool, Dir: root, Env: env,
		Args:   slices.Concat([]string{"test", "-timeout=20m"}, args),
		Stdout: os.Stdout, Stderr: os.Stderr,
		StopSignal: syscall.SIGINT, // go test hands it on to the tests
	})
	if err := p.Start(); err != nil {
		return 0, err
	}
	select {
	case <-p.Exited():
	case <-ctx.Done():
		return 0, errors.Join(errors.New("interrupted"), p.Stop())
	}
	var failed *exec.ExitError
	if err := p.Err(); errors.As(err, &failed) {
		return failed.ExitCode(), nil
	} else if err != nil {
		return 0, err
	}
	return 0, nil
}
