// Command release makes a release in dist, and trusts none of it: it builds everything twice, in two folders and with two caches,
// and compares; signs it; checks all of it from dist alone, as somebody would who has nothing else; and installs from it on a
// Kubernetes of this machine.
//
//	make release VERSION=1.2.3                            all of it, as a trial: the notes may be the unreleased changes, and the key is thrown away
//	make release VERSION=1.2.3 ARGS=-install=false        without the Kubernetes, which needs root and Linux's namespaces
//	make release VERSION=1.2.3 ARGS=-built                only the check and the installation of what is in dist
//	make release VERSION=1.2.3 ARGS=-final                as the workflow does it: the tag and the changelog have the version, and
//	                                                      signatures are the workflow's, unless -key names a key
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/registrar-dev/registrar/hack/internal/program"
	"github.com/registrar-dev/registrar/hack/stack"
)

// options are what a release is made by.
type options struct {
	version, out, registry, key string
	final, dirty, once, built   bool
	install                     bool
	plugin                      []program.Platform // that kubectl's plugin is compiled for
}

// platforms are those of the people who use kubectl.
var platforms = []program.Platform{
	{OS: "linux", Arch: "amd64"}, {OS: "linux", Arch: "arm64"}, {OS: "darwin", Arch: "amd64"},
	{OS: "darwin", Arch: "arm64"}, {OS: "windows", Arch: "amd64"}, {OS: "windows", Arch: "arm64"},
}

// arches are those of the images.
var arches = []string{"amd64", "arm64"}

var semantic = regexp.MustCompile(`^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?$`)

func main() {
	o := options{plugin: platforms}
	flag.StringVar(&o.out, "out", "dist", "folder of the release, below the checkout unless absolute")
	flag.StringVar(&o.registry, "registry", usualRegistry, "registry and path before the programs' names")
	flag.StringVar(&o.key, "key", "", "file of the private key that signs, as PEM (COSIGN_PASSWORD opens one of cosign); a trial without one makes one for itself")
	flag.BoolVar(&o.final, "final", false, "no trial: the changelog has the version, and the commit its tag")
	flag.BoolVar(&o.dirty, "dirty", false, "also with files that are not committed, in a trial")
	flag.BoolVar(&o.once, "once", false, "build once, in a trial, and compare nothing")
	flag.BoolVar(&o.built, "built", false, "build and sign nothing: check, and install, what is there")
	flag.BoolVar(&o.install, "install", true, "install from the release on a Kubernetes of this machine")
	flag.Parse()
	if o.version = strings.Join(flag.Args(), " "); o.version == "" {
		o.version = os.Getenv("VERSION")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	do := run
	if os.Getenv(inside) != "" {
		do = live
	}
	if err := do(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1) //nolint:gocritic // nothing is left to be deferred
	}
}

// began is when the program did; every line of progress says how long ago that was.
var began = time.Now()

func say(format string, args ...any) {
	fmt.Printf("%6s  %s\n", time.Since(began).Round(time.Second), fmt.Sprintf(format, args...))
}

func run(ctx context.Context, o options) error {
	if !semantic.MatchString(o.version) {
		return fmt.Errorf("the version %q is none: say make release VERSION=1.2.3, or 1.2.3-rc.1, without a v", o.version)
	}
	if o.final && (o.dirty || o.once) {
		return errors.New("-dirty and -once are for trials, not for -final")
	}
	root, err := stack.Root()
	if err != nil {
		return err
	}
	if !filepath.IsAbs(o.out) {
		o.out = filepath.Join(root, o.out)
	}
	tools, err := findTools(ctx, root)
	if err != nil {
		return err
	}
	var public []byte
	if !o.built {
		if public, err = o.make(ctx, root, tools); err != nil {
			return err
		}
	}
	say("checking %s, from nothing but its files", o.out)
	v := verification{dir: o.out, version: o.version, registry: o.registry, plugin: o.plugin, public: public, unsigned: o.final && o.key == "", tools: tools}
	if err := v.run(ctx); err != nil {
		return fmt.Errorf("the release is not as it should be: %w", err)
	}
	switch {
	case !o.install:
		say("not installed anywhere (-install=false)")
	default:
		say("installing it on a Kubernetes of this machine")
		if err := installOnNode(ctx, o, tools); err != nil {
			return fmt.Errorf("installing: %w; -install=false leaves it out", err)
		}
	}
	return table(o.out)
}

// make builds and signs a release, and returns the public half of the key.
func (o options) make(ctx context.Context, root string, t tools) (public []byte, err error) {
	source, err := program.Of(ctx, root, o.version)
	if err != nil {
		return nil, err
	}
	if err := o.check(ctx, source); err != nil {
		return nil, err
	}
	if err := clear(o.out); err != nil {
		return nil, err
	}
	say("version %s of commit %s, %s", o.version, source.ShortRevision(), source.At.Format(time.RFC3339))
	started := time.Now()
	if err := o.build(ctx, source, t, o.out); err != nil {
		return nil, err
	}
	if !o.once {
		if err := o.buildAgain(ctx, source, t); err != nil {
			return nil, err
		}
	}
	var k *key
	if k, err = o.signer(); err != nil {
		return nil, err
	}
	if err := o.sign(source, k, started); err != nil {
		return nil, err
	}
	if k == nil {
		say("summed up; the workflow signs it")
		return nil, nil
	}
	say("signed")
	return k.public, nil
}

// check refuses what must not be released.
func (o options) check(ctx context.Context, s program.Source) error {
	if s.Revision == "" {
		return errors.New("a release is made in a git checkout: its commit is named in all of it")
	}
	changes, err := s.Changes(ctx)
	if err != nil {
		return err
	}
	if changes != "" && !o.dirty {
		return fmt.Errorf("files differ from the commit that the release would name; commit them, or try with ARGS=-dirty:\n%s", strings.TrimRight(changes, "\n"))
	}
	if !o.final {
		return nil
	}
	tags, err := s.Run(ctx, s.Root, nil, "git", "tag", "--points-at", "HEAD")
	if err == nil && !slices.Contains(strings.Fields(tags), "v"+o.version) {
		err = fmt.Errorf("the commit has not the tag v%s, which -final asks for", o.version)
	}
	return err
}

// clear makes the folder, without what an earlier release has left there. It deletes nothing else.
func clear(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if _, err := os.Stat(filepath.Join(dir, sumsFile)); len(entries) > 0 && err != nil {
		if _, err := os.Stat(filepath.Join(dir, unfinished)); err != nil {
			return fmt.Errorf("%s has files and is no release: empty it, or name another folder with -out", dir)
		}
	}
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o755)); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, unfinished), nil, 0o644)
}

// unfinished marks a folder in which a release is being made.
const unfinished = ".unfinished"

// table shows what there is.
func table(dir string) error {
	sums, err := readSums(dir)
	if err != nil {
		return err
	}
	names, err := list(dir)
	if err != nil {
		return err
	}
	fmt.Println()
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "FILE\tSIZE\tSHA-256\tWHAT IT IS")
	var total int64
	for _, name := range names {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		total += info.Size()
		fmt.Fprintf(w, "%s\t%s\t%.12s\t%s\n", name, size(info.Size()), sums[name], about(name))
	}
	fmt.Fprintf(w, "%d files\t%s\t\t%s\n", len(names), size(total), dir)
	return w.Flush()
}

func size(n int64) string {
	if n < 1<<20 {
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
}

// list are the names of a folder's files.
func list(dir string) (names []string, err error) {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, err
}
