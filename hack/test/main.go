// Command test runs the tests on real servers: it starts a throw-away PostgreSQL and Redis, builds
// the programs, runs `go test` with the given arguments and ends with its status. Everything that
// go test prints comes out unchanged, and what has failed is said once more at the end. Packages are named from the repository's root, whichever of
// the two modules they are in; without packages, all are tested.
//
// With -check random tests take fewer steps (-short), and go test answers from its cache for packages
// that have not changed: the servers are therefore where they were the last time, and nothing in the
// tests' environment differs from one run to the next.
//
//	go run -C hack ./test                                       everything, whatever is cached
//	go run -C hack ./test -check                                what needs no Kubernetes, images or Chromium
//	go run -C hack ./test -- -run TestClone ./internal/kit/pg   a part
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/registrar-dev/registrar/hack/stack"
	"github.com/registrar-dev/registrar/internal/kit/nottested"
)

func main() {
	check := flag.Bool("check", false, "only what needs no Kubernetes, no images and no Chromium")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code, err := run(ctx, *check, flag.Args())
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "test:", err)
		code = 1
	}
	os.Exit(code)
}

// run returns go test's exit status, or an error when it could not be run at all.
func run(ctx context.Context, check bool, args []string) (code int, err error) {
	root, err := stack.Root()
	if err != nil {
		return 0, err
	}
	parts := split(args, check)
	ensure := stack.EnsureAll
	if check {
		ensure = stack.EnsureServers
	}
	tools, err := ensure(ctx, os.Stderr)
	if err != nil {
		return 0, err
	}
	bin, err := stack.Build(ctx, root)
	if err != nil {
		return 0, err
	}
	// Each test makes a database and a queue name of its own.
	ports, err := stack.UsualPorts(ctx, usualPostgres, usualRedis)
	if err != nil {
		return 0, err
	}
	servers, err := stack.StartServers(ctx, tools, stack.PostgresOptions{}, "", ports...)
	defer func() { err = errors.Join(err, servers.Stop()) }()
	if err != nil {
		return 0, err
	}
	env := append(os.Environ(), "REGISTRAR_BIN="+bin, "TEST_DATABASE_URL="+servers.Postgres.URL("postgres"), "TEST_REDIS_URL="+servers.Redis.URL())
	if check {
		env = append(env, "CHROMIUM=", "AXE_CORE=", "KUBEBUILDER_ASSETS=", nottested.File+"=")
		defer fmt.Fprintln(os.Stderr, "Tests that need Kubernetes, images, Chromium or all programs, and the longer random ones, are left to `make test`.")
	} else {
		more, err := outside(ctx, root, bin, tools, parts)
		if err != nil {
			return 0, err
		}
		notTested := filepath.Join(servers.Dir, "not-tested")
		defer report(notTested)
		env = append(append(env, more...), nottested.File+"="+notTested)
	}
	var s summary
	defer s.write(os.Stderr)
	for _, p := range parts {
		failed, err := s.goTest(ctx, filepath.Join(root, p.module), p.args, env)
		if err != nil {
			return 0, err
		}
		code = max(code, failed)
	}
	return code, nil
}

// Where the servers listen unless something else does: the address is in the tests' environment.
const usualPostgres, usualRedis = 15439, 16389

// A part is the tests of one module.
type part struct {
	module string // its folder
	args   []string
}

// light are the packages of hack that start no cluster and no whole Registrar, and build no images.
var light = []string{"./bench/...", "./internal/...", "./soak/...", "./stack/...", "./test", "./vulncheck"}

// The product's tests wait about as long as they compute, so that more of them run than there are cores. A package of hack
// starts clusters and whole Registrars, and builds images: beside another one, what a test awaits takes minutes.
const together, oneByOne = "-parallel=4", "-p=1"

// split gives each module the arguments that concern it: all but the other one's packages.
func split(args []string, check bool) []part {
	var flags, after, product, tools []string
	usual := []string{"-vet=off", "-count=1"} // vet is `make verify`'s
	if check {
		usual[1] = "-short"
	}
	if i := slices.Index(args, "-args"); i >= 0 {
		args, after = args[:i], args[i:]
	}
	for _, arg := range args {
		below, ofTools := strings.CutPrefix(arg, "./hack")
		switch {
		case arg == "./...":
			product, tools = append(product, arg), append(tools, arg)
		case ofTools && (below == "" || below[0] == '/'):
			tools = append(tools, "."+below)
		case strings.HasPrefix(arg, "./"):
			product = append(product, arg)
		default:
			flags = append(flags, arg)
		}
	}
	if len(product)+len(tools) == 0 {
		product, tools = []string{"./..."}, []string{"./..."}
	}
	if check && slices.Equal(tools, []string{"./..."}) {
		tools = light
	}
	// Packages stand before flags: behind one that go test does not know, such as -update, it takes nothing for a package.
	var parts []part
	if len(product) > 0 {
		parts = append(parts, part{".", slices.Concat([]string{together}, usual, product, flags, after)})
	}
	if len(tools) > 0 {
		parts = append(parts, part{"hack", slices.Concat([]string{oneByOne}, usual, tools, flags, after)})
	}
	return parts
}

// outside prepares what tests need of other projects, and returns the environment that names it.
func outside(ctx context.Context, root, bin string, tools stack.Tools, parts []part) ([]string, error) {
	driver := exec.CommandContext(ctx, "go", "build", "-o", bin+"/", "./browser")
	driver.Dir = filepath.Join(root, "hack")
	if out, err := driver.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("go build: %w\n%s", err, out)
	}
	axe, err := stack.EnsureAxe(ctx, os.Stderr)
	if err != nil {
		fmt.Fprintln(os.Stderr, "No axe-core, so tests of accessibility are skipped:", err)
	}
	env := []string{"CHROMIUM=" + tools.Chromium, "BROWSER_DRIVER=" + filepath.Join(bin, "browser"), "AXE_CORE=" + axe}
	// The first build of Kubernetes takes minutes, so only who needs it waits for it.
	if !slices.ContainsFunc(parts, func(p part) bool { return p.module == "hack" }) {
		return env, nil
	}
	kube, err := stack.EnsureKube(ctx, os.Stderr)
	if err != nil {
		return nil, err
	}
	helm3, err := stack.EnsureHelm3(ctx, os.Stderr)
	return append(env, "KUBEBUILDER_ASSETS="+kube, "HELM3="+helm3), err
}

// report prints what this machine could not test: go test says "ok" of it.
func report(file string) {
	lines, err := nottested.Read(file)
	if err != nil {
		fmt.Fprintln(os.Stderr, "test:", err)
	}
	for _, line := range lines {
		fmt.Fprintln(os.Stderr, "NOT TESTED:", line)
	}
}

// goTest gives the exit status of go test, whose output is read on its way.
func (s *summary) goTest(ctx context.Context, dir string, args, env []string) (int, error) {
	goTool, err := exec.LookPath("go")
	if err != nil {
		return 0, err
	}
	printed, prints, err := os.Pipe()
	if err != nil {
		return 0, err
	}
	p := stack.NewProgram(stack.Command{
		Name: "go test", Path: goTool, Dir: dir, Env: env,
		Args:   slices.Concat([]string{"test", "-timeout=30m"}, args),
		Stdout: prints, Stderr: os.Stderr,
		StopSignal: syscall.SIGINT, // go test hands it on to the tests
	})
	if err := errors.Join(p.Start(), prints.Close()); err != nil {
		return 0, errors.Join(err, printed.Close())
	}
	const quiet = 5 * time.Second
	copied := make(chan error, 1)
	go func() {
		copied <- errors.Join(s.copyFrom(os.Stdout, output{printed, p.Exited(), quiet}), printed.Close())
	}()
	select {
	case <-p.Exited():
	case <-ctx.Done():
		err = errors.Join(errors.New("interrupted"), p.Stop())
	}
	_ = printed.SetReadDeadline(time.Now().Add(quiet)) // for a read under way; an error: it is closed
	if err = errors.Join(err, <-copied); err != nil {
		return 0, err
	}
	var failed *exec.ExitError
	if errors.As(p.Err(), &failed) {
		return failed.ExitCode(), nil
	}
	return 0, p.Err()
}
