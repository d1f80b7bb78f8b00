package env_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/env"
)

type Database struct {
	URL string `env:"DATABASE_URL,required" help:"where PostgreSQL is"`
}

type limits struct {
	InFlight int `env:"IN_FLIGHT" envDefault:"7" help:"requests at once"`
}

type config struct {
	Database
	Limits limits
	Wait   time.Duration `env:"WAIT" envDefault:"3s" help:"how long to wait"`
	Names  []string      `env:"NAMES" help:"comma-separated names"`
}

func (c *config) Validate() error {
	if c.Limits.InFlight > 100 {
		return errors.New("IN_FLIGHT is at most 100")
	}
	return nil
}

func from(vars map[string]string) func(string) string {
	return func(name string) string { return vars[name] }
}

func TestParseFillsNestedFieldsAndDefaults(t *testing.T) {
	c, err := env.Parse[config](from(map[string]string{"DATABASE_URL": "postgres://x", "NAMES": "a,b", "WAIT": ""}))
	if err != nil {
		t.Fatal(err)
	}
	check.Equal(check.Now(t), "c.URL", c.URL, "postgres://x", "%+v", c)
	check.Equal(check.Now(t), "c.Limits.InFlight", c.Limits.InFlight, 7, "%+v", c)
	check.Equal(check.Now(t), "c.Wait", c.Wait, 3*time.Second, "%+v", c)
	check.Equal(check.Now(t), "number of names", len(c.Names), 2, "%+v", c)
}

func TestParseReportsEverythingAtOnce(t *testing.T) {
	_, err := env.Parse[config](from(map[string]string{"IN_FLIGHT": "many", "WAIT": "soon"}))
	if err == nil {
		t.Fatal("accepted")
	}
	for _, want := range []string{"DATABASE_URL is required: where PostgreSQL is", "IN_FLIGHT: ", "WAIT: "} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in:\n%v", want, err)
		}
	}
}

func TestParseAppliesTheRulesOfTheWhole(t *testing.T) {
	_, err := env.Parse[config](from(map[string]string{"DATABASE_URL": "x", "IN_FLIGHT": "101"}))
	check.True(check.Now(t), "there is an error", err != nil, "err = %v", err)
	check.Equal(check.Now(t), "the error", err.Error(), "IN_FLIGHT is at most 100", "err = %v", err)
}

func TestUsageNamesEveryVariable(t *testing.T) {
	want := `DATABASE_URL (required)
    where PostgreSQL is
IN_FLIGHT (default 7)
    requests at once
WAIT (default 3s)
    how long to wait
NAMES
    comma-separated names
`
	if got := env.Usage[config](); got != want {
		t.Fatalf("got:\n%s", got)
	}
}

func TestExplain(t *testing.T) {
	for args, right := range map[string]bool{"-h": true, "--help": true, "help": true, "-help": true, "serve": false, "--version": false, "-h more": false} {
		var out strings.Builder
		err := env.Explain[config](&out, "worker works.", strings.Fields(args))
		explained := out.String() == "worker works.\n\n"+env.Usage[config]()
		check.Equal(t, "the program is explained", explained, right, "%s: %q", args, out.String())
		check.Equal(t, "the arguments are taken", err == nil, right, "%s: %v", args, err)
	}
}
