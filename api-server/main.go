// Command api-server serves the partner API and, on a port of its own, the platform API.
package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/alecthomas/kong"
	_ "golang.org/x/crypto/x509roots/fallback" // the roots where an image holds none

	"github.com/registrar-dev/registrar/internal/kit/env"
	"github.com/registrar-dev/registrar/internal/kit/obs"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/seal"
)

func main() { os.Exit(obs.Main("api-server", run)) }

// commandLine is what the program can be asked to do.
type commandLine struct {
	Serve        serveCommand        `cmd:"" default:"1" help:"Serve both APIs until SIGTERM or SIGINT (this is the default)."`
	Migrate      migrateCommand      `cmd:"" help:"Bring the database's schema, and the rights of the programs' roles, to this version and end."`
	Probe        probeCommand        `cmd:"" help:"Ask URLs, and end with status 0 if each answers 2xx."`
	NewKeyset    newKeysetCommand    `cmd:"" help:"Print a new SECRET_KEYSET."`
	RotateKeyset rotateKeysetCommand `cmd:"" help:"Print the SECRET_KEYSET of the environment with a key added, or with its newest key promoted to be the one that is written with. Roll each of the two out to all programs before the next."`
}

// process is what a command gets of its surroundings.
type process struct {
	ctx    context.Context
	getenv func(string) string
	stdout io.Writer
}

func run(ctx context.Context, args []string, getenv func(string) string, stdout io.Writer) error {
	parser, err := kong.New(&commandLine{}, kong.Name("api-server"), kong.Writers(stdout, stdout),
		kong.Description("Registrar's HTTP APIs.\n\nThe environment configures it:\n\n"+env.Usage[config]()))
	if err != nil {
		return err
	}
	command, err := parser.Parse(args)
	if err != nil {
		return err
	}
	return command.Run(&process{ctx, getenv, stdout})
}

type migrateCommand struct{}

func (migrateCommand) Run(p *process) error {
	c, err := env.Parse[migrateConfig](p.getenv)
	if err != nil {
		return err
	}
	log := obs.Logger(p.stdout, c.LogLevel, "api-server")
	slog.SetDefault(log)
	if err := pg.Migrate(p.ctx, c.DatabaseURL, log); err != nil || c.RolePrefix == "" {
		return err
	}
	return pg.Secure(p.ctx, c.DatabaseURL, c.RolePrefix, log)
}

type newKeysetCommand struct{}

func (newKeysetCommand) Run(p *process) error {
	keyset, err := seal.NewKeyset()
	if err == nil {
		_, err = fmt.Fprintf(p.stdout, "%s\n", keyset)
	}
	return err
}

type rotateKeysetCommand struct {
	Step string `arg:"" enum:"add,promote" help:"add or promote."`
}

func (c rotateKeysetCommand) Run(p *process) error {
	settings, err := env.Parse[seal.Config](p.getenv)
	if err != nil {
		return err
	}
	keyset, err := seal.Read(settings)
	if err != nil {
		return err
	}
	change := seal.AddKey
	if c.Step == "promote" {
		change = seal.PromoteKey
	}
	if keyset, err = change(keyset); err == nil {
		_, err = fmt.Fprintf(p.stdout, "%s\n", keyset)
	}
	return err
}
