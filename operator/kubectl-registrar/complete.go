package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// noFiles tells the shell that there is nothing else to complete, in the numbers of Cobra, which kubectl reads.
const noFiles = 4

// completeWithin is how long a shell waits for names of the cluster.
const completeWithin = 3 * time.Second

// complete prints what the last of the arguments may become, each with a tab and a word about it, and then the directive.
func complete(ctx context.Context, args []string, getenv func(string) string, stdout io.Writer) error {
	if len(args) == 0 {
		args = []string{""}
	}
	begun := args[len(args)-1]
	for _, candidate := range candidates(ctx, args[:len(args)-1], begun, getenv) {
		if strings.HasPrefix(candidate, begun) {
			if _, err := fmt.Fprintln(stdout, candidate); err != nil {
				return err
			}
		}
	}
	_, err := fmt.Fprintf(stdout, ":%d\n", noFiles)
	return err
}

func candidates(ctx context.Context, before []string, begun string, getenv func(string) string) (found []string) {
	if len(before) == 0 {
		for _, c := range commands() {
			found = append(found, c.name+"\t"+c.summary)
		}
		return found
	}
	at := slices.IndexFunc(commands(), func(c command) bool { return c.name == before[0] })
	if at < 0 {
		return nil
	}
	c, o := commands()[at], &options{}
	flags := flagsOf(c, o)
	if strings.HasPrefix(begun, "-") {
		flags.VisitAll(func(f *pflag.Flag) { found = append(found, "--"+f.Name+"\t"+f.Usage) })
		return found
	}
	if flags.Parse(before[1:]) != nil || flags.NArg() > 0 { // a flag waits for its value, or all is said
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, completeWithin)
	defer cancel()
	s := connect(o, getenv, io.Discard, io.Discard)
	if c.name == statusCommand.name {
		return s.slugs(ctx)
	}
	return s.names(ctx, c)
}

// names are those of the resources that a command is for.
func (s *session) names(ctx context.Context, c command) (found []string) {
	for _, kind := range c.kinds {
		all, err := s.list(ctx, kind)
		if err != nil { // which needs no answer: nothing is completed
			continue
		}
		for _, o := range all {
			name := o.GetName()
			if c.typed {
				name = title(&o)
			}
			found = append(found, name+"\t"+organization(&o))
		}
	}
	return found
}

// slugs are those of the organizations that the namespace's resources are of.
func (s *session) slugs(ctx context.Context) (found []string) {
	for _, kind := range kinds {
		all, err := s.list(ctx, kind)
		if err != nil {
			continue
		}
		for _, o := range all {
			if slug := organization(&o); slug != "" && !slices.Contains(found, slug) {
				found = append(found, slug)
			}
		}
	}
	return found
}
