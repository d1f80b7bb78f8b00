// Package program compiles Registrar's programs as they are released, makes images of them, and says what is in them. The same
// sources give the same bytes, whichever folder they are in.
package program

import (
	"context"
	"debug/buildinfo"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/registrar-dev/registrar/hack/internal/licences"
)

// InImages are the programs that there are images of.
var InImages = []string{"api-server", "worker", "webhook-sender", "operator"}

// Source is a checkout, and what is said of it in all that is made of it.
type Source struct {
	Root     string
	Env      []string  // NAME=value, beside this process's
	Version  string    // of the release; "" for none
	Revision string    // the commit, with -dirty where files differ from it; "" if it is not known
	At       time.Time // of the commit; 1970 if it is not known
}

// Of asks git about a checkout. SOURCE_DATE_EPOCH is stronger than the commit's time.
func Of(ctx context.Context, root, version string) (Source, error) {
	s := Source{Root: root, Version: version, At: time.Unix(0, 0).UTC()}
	epoch := os.Getenv("SOURCE_DATE_EPOCH")
	if out, err := s.run(ctx, "git", "log", "-1", "--format=%H %ct"); err == nil {
		revision, at, _ := strings.Cut(strings.TrimSpace(out), " ")
		changes, err := s.Changes(ctx)
		if err != nil {
			return s, err
		}
		if s.Revision = revision; changes != "" {
			s.Revision += "-dirty"
		}
		if epoch == "" {
			epoch = at
		}
	}
	if epoch != "" {
		seconds, err := strconv.ParseInt(epoch, 10, 64)
		if err != nil {
			return s, fmt.Errorf("SOURCE_DATE_EPOCH: %q is no number of seconds", epoch)
		}
		s.At = time.Unix(seconds, 0).UTC()
	}
	return s, nil
}

// Changes are the files that differ from the commit, a line each.
func (s Source) Changes(ctx context.Context) (string, error) {
	return s.run(ctx, "git", "status", "--porcelain")
}

func (s Source) run(ctx context.Context, name string, args ...string) (string, error) {
	return s.Run(ctx, s.Root, nil, name, args...)
}

// Run runs a program in a folder, with further variables, and returns what it prints.
func (s Source) Run(ctx context.Context, dir string, env []string, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = dir, slices.Concat(os.Environ(), s.Env, env)
	var complaints strings.Builder
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s%s", name, strings.Join(args, " "), err, out, strings.TrimSpace(complaints.String()))
	}
	return string(out), nil
}

// Platform is what a program is compiled for.
type Platform struct{ OS, Arch string }

func (p Platform) String() string { return p.OS + "-" + p.Arch }

// buildFlags make a binary that holds no path of this machine, no debugging table, and the values that kit/version says; number is
// "" for no release.
func buildFlags(number, revision, day string) []string {
	const variable = " -X github.com/registrar-dev/registrar/internal/kit/version."
	return []string{"-trimpath", "-buildvcs=false", "-ldflags", "-s -w" + variable + "number=" + number + variable + "revision=" + revision + variable + "day=" + day}
}

// Compile compiles a package of the checkout to a file, as everybody's Go does.
func (s Source) Compile(ctx context.Context, pkg string, p Platform, out string) error {
	flags := buildFlags("", "", "")
	if s.Version != "" {
		flags = buildFlags(s.Version, s.ShortRevision(), s.At.Format(time.DateOnly))
	}
	_, err := s.Run(ctx, s.Root, []string{"CGO_ENABLED=0", "GOFLAGS=", "GOAMD64=v1", "GOARM64=v8.0", "GOOS=" + p.OS, "GOARCH=" + p.Arch},
		"go", slices.Concat([]string{"build"}, flags, []string{"-o", out, pkg})...)
	return err
}

// ShortRevision is as much of the commit as people read.
func (s Source) ShortRevision() string {
	revision, dirty, _ := strings.Cut(s.Revision, "-")
	if dirty != "" {
		dirty = "-" + dirty
	}
	return revision[:min(12, len(revision))] + dirty
}

// A Binary is a compiled program.
type Binary struct {
	Name     string // of the program
	Platform Platform
	Content  []byte
	Within   []licences.Dependency // what it is made of beside this repository
	main     debug.Module
}

// Build compiles a package, and looks up what is in the result.
func (s Source) Build(ctx context.Context, pkg string, p Platform) (*Binary, error) {
	work, err := os.MkdirTemp("", "registrar-build-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(work)
	file := filepath.Join(work, filepath.Base(pkg))
	if err := s.Compile(ctx, pkg, p, file); err != nil {
		return nil, err
	}
	all, err := licences.Of(ctx, s.Root, p.OS, p.Arch, false, pkg)
	if err != nil {
		return nil, err
	}
	return read(file, p, all)
}

// read reads a compiled program; all are the dependencies that may be in it.
func read(file string, p Platform, all []licences.Dependency) (*Binary, error) {
	info, err := buildinfo.ReadFile(file)
	if err != nil {
		return nil, err
	}
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	within, err := contents(info, all)
	return &Binary{Name: filepath.Base(file), Platform: p, Content: content, Within: within, main: info.Main}, err
}

// Notices are the licences and notices of what is in the program.
func (b *Binary) Notices() []byte { return licences.Notices(b.Name, b.Within) }
