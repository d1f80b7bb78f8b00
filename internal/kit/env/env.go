// Package env reads a program's configuration from environment variables into a struct,
// and prints which variables the program knows.
//
// A field names its variable and says in help what it is for:
//
//	Addr string `env:"HTTP_ADDR,required" help:"address to listen on, such as :8080"`
//	Zone string `env:"PLATFORM_TIME_ZONE" envDefault:"UTC" help:"the zone that decides today"`
//
// Structs may be embedded. An empty variable counts as one that is not set.
package env

import (
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	"github.com/caarlos0/env/v11"
)

// validator is a configuration with rules that concern more than one field or more than
// a type; Parse applies them once every variable could be read.
type validator interface{ Validate() error }

// Parse fills a T. Its error lists everything that is wrong, a line each, not only the
// first; the text names variables and never shows the value of a string variable.
func Parse[T any](getenv func(string) string) (T, error) {
	var config T
	vars := variables(reflect.TypeFor[T]())
	environment := make(map[string]string, len(vars))
	for _, v := range vars {
		if value := getenv(v.name); value != "" {
			environment[v.name] = value
		}
	}
	err := env.ParseWithOptions(&config, env.Options{Environment: environment})
	if err != nil {
		return config, explain(err, vars)
	}
	if v, ok := any(&config).(validator); ok {
		return config, v.Validate()
	}
	return config, nil
}

// Usage lists the variables of T, two lines each: name and default, then the help text.
func Usage[T any]() string {
	var b strings.Builder
	for _, v := range variables(reflect.TypeFor[T]()) {
		b.WriteString(v.name)
		switch {
		case v.required:
			b.WriteString(" (required)")
		case v.def != "":
			fmt.Fprintf(&b, " (default %s)", v.def)
		}
		fmt.Fprintf(&b, "\n    %s\n", v.help)
	}
	return b.String()
}

// Explain is what a program that takes no arguments makes of some: for -h, --help or help
// it writes about and Usage, and everything else is an error.
func Explain[T any](w io.Writer, about string, args []string) error {
	if len(args) > 1 || !slices.Contains([]string{"-h", "-help", "--help", "help"}, args[0]) {
		return fmt.Errorf("unexpected argument %.100q: the environment configures this program; -h lists the variables", args[0])
	}
	_, err := fmt.Fprintf(w, "%s\n\n%s", about, Usage[T]())
	return err
}

type variable struct {
	name, field, def, help string
	required               bool
}

func variables(t reflect.Type) []variable {
	var vars []variable
	for _, f := range reflect.VisibleFields(t) {
		tag, tagged := f.Tag.Lookup("env")
		switch {
		case tagged:
			name, options, _ := strings.Cut(tag, ",")
			vars = append(vars, variable{name: name, field: f.Name, def: f.Tag.Get("envDefault"),
				help: f.Tag.Get("help"), required: strings.Contains(options, "required") || strings.Contains(options, "notEmpty")})
		case !f.Anonymous && f.Type.Kind() == reflect.Struct && f.IsExported():
			vars = append(vars, variables(f.Type)...)
		}
	}
	return vars
}

func explain(err error, vars []variable) error {
	all := env.AggregateError{Errors: []error{err}}
	errors.As(err, &all)
	lines := make([]error, len(all.Errors))
	for i, e := range all.Errors {
		lines[i] = explainOne(e, vars)
	}
	return errors.Join(lines...)
}

func explainOne(err error, vars []variable) error {
	var missing env.VarIsNotSetError
	var empty env.EmptyVarError
	var malformed env.ParseError
	switch {
	case errors.As(err, &missing):
		return required(missing.Key, vars)
	case errors.As(err, &empty):
		return required(empty.Key, vars)
	case errors.As(err, &malformed):
		for _, v := range vars {
			if v.field == malformed.Name {
				return fmt.Errorf("%s: %w", v.name, malformed.Err)
			}
		}
	}
	return err
}

func required(name string, vars []variable) error {
	for _, v := range vars {
		if v.name == name && v.help != "" {
			return fmt.Errorf("%s is required: %s", name, v.help)
		}
	}
	return fmt.Errorf("%s is required", name)
}
