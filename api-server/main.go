// Command api-server serves the partner API and, on a port of its own, the platform API.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/alecthomas/kong"
	_ "golang.org/x/crypto/x509roots/fallback" // the roots where an image holds none

	"github.com/registrar-dev/registrar/internal/flow/reseal"
	"github.com/registrar-dev/registrar/internal/kit/env"
	"github.com/registrar-dev/registrar/internal/kit/obs"
	"github.com/registrar-dev/registrar/internal/kit/page"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/seal"
)

func main() { os.Exit(obs.Main("api-server", run)) }

// commandLine is what the program can be asked to do.
type commandLine struct {
	Serve        serveCommand        `cmd:"" default:"1" help:"Serve both APIs until SIGTERM or SIGINT (this is the default)."`
	Migrate      migrateCommand      `cmd:"" help:"Bring the database's schema, and the rights of the programs' roles, to this version and end."`
	AfterRestore afterRestoreCommand `cmd:"" help:"Give no number again that was given before the database came back with an earlier state, from a backup or a standby. Run it once, before the programs start; more often does no harm."`
	Probe        probeCommand        `cmd:"" help:"Ask URLs, and end with status 0 if each answers 2xx."`
	NewKeyset    newKeysetCommand    `cmd:"" help:"Print a new SECRET_KEYSET."`
	RotateKeyset rotateKeysetCommand `cmd:"" help:"Print the SECRET_KEYSET of the environment with a key added, with its newest key promoted to be the one that is written with, or with all others dropped. Roll each of the three out to all programs before the next. status says what an older key still encrypts; drop refuses while there is anything."`
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

type afterRestoreCommand struct{}

func (afterRestoreCommand) Run(p *process) error {
	c, err := env.Parse[migrateConfig](p.getenv)
	if err != nil {
		return err
	}
	db, err := pg.OpenCurrent(p.ctx, c.DatabaseURL, 0)
	if err != nil {
		return err
	}
	defer db.Close()
	organizations, ids, err := page.AfterRestore(p.ctx, db)
	if err == nil {
		_, err = fmt.Fprintf(p.stdout, "The lists of %d organizations have begun an epoch, and %d kinds of ids go on behind a gap.\n", organizations, ids)
	}
	return err
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
	Step string `arg:"" enum:"add,promote,status,drop" help:"add, promote, status or drop."`
}

// keysetConfig is what a rotation needs of the environment.
type keysetConfig struct {
	DatabaseURL string `env:"DATABASE_URL" help:"postgres:// address of the store of record"`
	Secrets     seal.Config
}

func (c rotateKeysetCommand) Run(p *process) error {
	settings, err := env.Parse[keysetConfig](p.getenv)
	if err != nil {
		return err
	}
	keyset, err := seal.Read(settings.Secrets)
	if err != nil {
		return err
	}
	switch c.Step {
	case "add":
		keyset, err = seal.AddKey(keyset)
	case "promote":
		keyset, err = seal.PromoteKey(keyset)
	case "status":
		return p.showSealed(settings)
	case "drop":
		if err := p.nothingOlder(settings); err != nil {
			return err
		}
		keyset, err = seal.DropKeys(keyset)
	}
	if err == nil {
		_, err = fmt.Fprintf(p.stdout, "%s\n", keyset)
	}
	return err
}

// countOlder counts the stored secrets that are not encrypted with the key that is written with.
func (p *process) countOlder(c keysetConfig) (counts []reseal.Count, older int, err error) {
	box, err := seal.Open(c.Secrets)
	if err != nil {
		return nil, 0, err
	}
	if c.DatabaseURL == "" {
		return nil, 0, errors.New("DATABASE_URL is required: what is encrypted is there")
	}
	db, err := pg.OpenCurrent(p.ctx, c.DatabaseURL, 0)
	if err != nil {
		return nil, 0, err
	}
	defer db.Close()
	return reseal.Counts(p.ctx, db, box)
}

func (p *process) showSealed(c keysetConfig) error {
	counts, older, err := p.countOlder(c)
	if err != nil {
		return err
	}
	for _, n := range counts {
		if _, err := fmt.Fprintf(p.stdout, "%-20s %d with an older key\n", n.Column.Table, n.Older); err != nil {
			return err
		}
	}
	verdict := "Nothing is encrypted with an older key: once every program writes with the present one, drop the older ones.\n"
	if older > 0 {
		verdict = "The worker encrypts them again, every minute what it finds. Do not drop the older keys yet.\n"
	}
	_, err = io.WriteString(p.stdout, verdict)
	return err
}

func (p *process) nothingOlder(c keysetConfig) error {
	_, older, err := p.countOlder(c)
	if err == nil && older > 0 {
		err = fmt.Errorf("an older key still encrypts %d stored secrets, which could not be read any more: wait until `rotate-keyset status` counts none", older)
	}
	return err
}
