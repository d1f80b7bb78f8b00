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
	root, err := Root()
	if err != nil {
		return "", err
	}
	source := filepath.Join(root, "hack", "kube")
	version, err := kubeFingerprint(source)
	if err != nil {
		return "", err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	bin := filepath.Join(cache, "registrar", "kube", version)
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
	return bin, buildKube(ctx, out, source, bin)
}

// kubeFingerprint changes with the sources, their modules and Go's version.
func kubeFingerprint(source string) (string, error) {
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

func buildKube(ctx context.Context, out io.Writer, source, bin string) error {
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
	made, err := os.MkdirTemp(filepath.Dir(bin), "build-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(made)
	if _, err := goIn(ctx, source, "build", "-ldflags", flags, "-o", made+"/", ".", "./coredns", "./pause"); err != nil {
		return err
	}
	for _, name := range kubePrograms {
		if err := os.Symlink("kube", filepath.Join(made, name)); err != nil {
			return err
		}
	}
	if err := os.Chmod(made, 0o755); err != nil {
		return err
	}
	return os.Rename(made, bin)
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
