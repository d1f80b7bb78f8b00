// Command kubectl-registrar is a plugin of kubectl: it says how the Registrar resources of a cluster fare, explains what their
// conditions mean, sends events again and replaces secrets. Called kubectl_complete-registrar, it completes its command lines.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/registrar-dev/registrar/internal/kit/version"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	ctrl.SetLogger(logr.Discard())
	args := os.Args[1:]
	if filepath.Base(os.Args[0]) == "kubectl_complete-registrar" {
		args = append([]string{completion}, args...)
	}
	err := run(ctx, args, os.Getenv, os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// completion is the command that kubectl's shell completion calls.
const completion = "__complete"

// command is one of the plugin's commands.
type command struct {
	name, args, summary, about string

	// flags adds those that it has beside the flags of all.
	flags func(*pflag.FlagSet, *options)
	run   func(ctx context.Context, s *session, args []string) error
	// kinds are those whose names complete its argument; typed says that the argument is KIND/NAME.
	kinds []string
	typed bool
}

// options are the values of all flags.
type options struct {
	kubeconfig, context, namespace string
	allNamespaces                  bool
	output                         string
	timeout                        time.Duration

	url, apiKeyFrom, status string // of calls to the partner API
	limit                   int

	from, to, organization, name string // of a replay
	events                       []string
	wait                         bool
	overlap                      string // of a rotation
	chunkSize                    int64  // of a migration
}

// commands are in the order in which the help lists them.
func commands() []command {
	return []command{statusCommand, explainCommand, deliveriesCommand, replayCommand, rotateCommand, migrateCommand}
}

func run(ctx context.Context, args []string, getenv func(string) string, stdout, stderr io.Writer) error {
	if len(args) > 0 && args[0] == completion {
		return complete(ctx, args[1:], getenv, stdout)
	}
	if len(args) == 0 || slices.Contains([]string{"help", "--help", "-h"}, args[0]) {
		_, err := fmt.Fprint(stdout, help())
		return err
	}
	if version.Asked(args) {
		_, err := fmt.Fprintln(stdout, version.Line("kubectl-registrar"))
		return err
	}
	at := slices.IndexFunc(commands(), func(c command) bool { return c.name == args[0] })
	if at < 0 {
		return fmt.Errorf("there is no command %q; kubectl registrar help lists them", args[0])
	}
	c, o := commands()[at], &options{}
	flags := flagsOf(c, o)
	switch err := flags.Parse(args[1:]); {
	case errors.Is(err, pflag.ErrHelp):
		_, err := fmt.Fprint(stdout, c.help(flags))
		return err
	case err != nil:
		return fmt.Errorf("%w; kubectl registrar %s --help lists the flags", err, c.name)
	}
	if !slices.Contains([]string{"", "json", "yaml"}, o.output) {
		return fmt.Errorf("--output: %q is not known; use json or yaml", o.output)
	}
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	return c.run(ctx, connect(o, getenv, stdout, stderr), flags.Args())
}

// flagsOf are a command's flags and those of all.
func flagsOf(c command, o *options) *pflag.FlagSet {
	flags := pflag.NewFlagSet(c.name, pflag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "file that says where the cluster is; without it, as kubectl")
	flags.StringVar(&o.context, "context", "", "context in it")
	flags.StringVarP(&o.namespace, "namespace", "n", "", "namespace; without it, the context's")
	flags.StringVarP(&o.output, "output", "o", "", "json or yaml, for programs")
	flags.DurationVar(&o.timeout, "timeout", 2*time.Minute, "how long all of it may take")
	if c.flags != nil {
		c.flags(flags, o)
	}
	return flags
}

func help() string {
	var text strings.Builder
	text.WriteString("kubectl registrar looks after the Registrar resources of a cluster.\n\n")
	for _, c := range commands() {
		fmt.Fprintf(&text, "  %-12s%s\n", c.name, c.summary)
	}
	text.WriteString("\nkubectl registrar COMMAND --help says more, and kubectl registrar version of which release it is.\n")
	return text.String()
}

func (c command) help(flags *pflag.FlagSet) string {
	return fmt.Sprintf("%s.\n\n  kubectl registrar %s %s\n\n%s\n\nFlags:\n%s", c.summary, c.name, c.args, strings.TrimSpace(c.about), flags.FlagUsages())
}
