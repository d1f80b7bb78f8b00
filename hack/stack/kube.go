package stack

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// kubePrograms are what hack/kube's one executable can act as, by the name it is called with.
var kubePrograms = []string{
	"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy", "kubectl", "helm", "kwok",
}

// EnsureKube returns the folder of etcd, kube-apiserver and kubectl: KUBEBUILDER_ASSETS where that
// is set; else Kubernetes as hack/kube builds it, kept in the user's cache for the next time. The
// first build takes about ten minutes on two cores.
func EnsureKube(ctx context.Context, out io.Writer) (string, error) {
	if assets := os.Getenv("KUBEBUILDER_ASSETS"); assets != "" {
		return assets, nil
	}
	return kept(ctx, "kube", func(source, made string) error { return buildKube(ctx, out, source, made) })
}

// EnsureHelm3 returns Helm 3: the program that HELM3 names where that is set; else the one of
// hack/helm3, which has helm-unittest beside it, kept as EnsureKube's are. The first build takes
// about two minutes.
func EnsureHelm3(ctx context.Context, out io.Writer) (string, error) {
	if helm := os.Getenv("HELM3"); helm != "" {
		return helm, nil
	}
	bin, err := kept(ctx, "helm3", func(source, made string) error {
		fmt.Fprintln(out, "Building Helm 3 from Go modules; this is done once and takes about two minutes.")
		_, err := goIn(ctx, source, "build", "-trimpath", "-ldflags", "-s -w", "-o", made+"/",
			"helm.sh/helm/v3/cmd/helm", "github.com/helm-unittest/helm-unittest/cmd/helm-unittest")
		return err
	})
	return filepath.Join(bin, "helm"), err
}

// kept returns a folder in the user's cache that build has filled from hack/name, now or earlier.
func kept(ctx context.Context, name string, build func(source, made string) error) (string, error) {
	root, err := Root()
	if err != nil {
		return "", err
	}
	source := filepath.Join(root, "hack", name)
	version, err := fingerprint(source)
	if err != nil {
		return "", err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	bin := filepath.Join(cache, "registrar", name, version)
	if err := os.MkdirAll(filepath.Dir(bin), 0o755); err != nil {
		return "", err
	}
	release, err := lockFile(ctx, bin+".lock")
	if err != nil {
		return "", err
	}
	defer release()
	if _, err := os.Stat(bin); err == nil {
		return bin, nil
	}
	made, err := os.MkdirTemp(filepath.Dir(bin), "build-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(made)
	if err := errors.Join(build(source, made), os.Chmod(made, 0o755)); err != nil {
		return "", err
	}
	return bin, os.Rename(made, bin)
}

// fingerprint changes with the sources, their modules and Go's version.
func fingerprint(source string) (string, error) {
	files, err := filepath.Glob(filepath.Join(source, "*"))
	if err != nil {
		return "", err
	}
	nested, err := filepath.Glob(filepath.Join(source, "*", "*.go"))
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	fmt.Fprintln(sum, runtime.Version())
	for _, name := range slices.Concat(files, nested) {
		if info, err := os.Stat(name); err != nil || info.IsDir() {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return "", err
		}
		fmt.Fprintln(sum, filepath.Base(name), len(text))
		sum.Write(text)
	}
	return hex.EncodeToString(sum.Sum(nil)[:8]), nil
}

// lockFile waits until nobody else has the lock. It falls with the process.
func lockFile(ctx context.Context, name string) (release func(), err error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	err = retry(ctx, func(context.Context) error { return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) })
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", name, err), f.Close())
	}
	return func() { _ = f.Close() }, nil
}

func buildKube(ctx context.Context, out io.Writer, source, made string) error {
	version, err := goIn(ctx, source, "list", "-m", "-f", "{{.Version}}", "k8s.io/kubernetes")
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "Building Kubernetes %s from Go modules; this is done once and takes about ten minutes.\n", version)
	done := make(chan struct{})
	defer close(done)
	go showPatience(out, done)
	parts := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	const x = "-X k8s.io/component-base/version."
	flags := fmt.Sprintf("-s -w %sgitVersion=%s %sgitMajor=%s %sgitMinor=%s", x, version, x, parts[0], x, parts[1])
	if _, err := goIn(ctx, source, "build", "-ldflags", flags, "-o", made+"/", ".", "./coredns", "./pause"); err != nil {
		return err
	}
	for _, name := range kubePrograms {
		if err := os.Symlink("kube", filepath.Join(made, name)); err != nil {
			return err
		}
	}
	return nil
}

// showPatience tells who watches, or a build service that ends what is silent, that work goes on.
func showPatience(out io.Writer, done <-chan struct{}) {
	began, tick := time.Now(), time.NewTicker(30*time.Second)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return
		case <-tick.C:
			fmt.Fprintf(out, "  still building Kubernetes, %s so far\n", time.Since(began).Round(time.Second))
		}
	}
}

func goIn(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	var out, complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaints
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("go %s: %w\n%s", args[0], err, lastLines(complaints.String(), 20))
	}
	return strings.TrimSpace(out.String()), nil
}
