package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var statusCommand = command{
	name: "status", args: "[ORGANIZATION]", summary: "Show how the resources of an organization fare",
	about: `
Shows the resources of an organization, by its slug: its Organization, webhook URLs, API keys, replays and rosters, whether each is
ready and why not, and how many deliveries wait. Without a slug it shows those of the namespace, of all organizations.
An organization's resources are looked for in all namespaces, or, with -n or without the rights for that, in one.`,
	flags: func(flags *pflag.FlagSet, o *options) {
		flags.BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "those of all namespaces")
	},
	run: showStatus,
}

// standing is how a resource fares.
type standing struct {
	Kind         string             `json:"kind"`
	Namespace    string             `json:"namespace,omitempty"`
	Name         string             `json:"name"`
	Organization string             `json:"organization,omitempty"`
	Ready        string             `json:"ready"`
	Reason       string             `json:"reason,omitempty"`
	Message      string             `json:"message,omitempty"`
	Backlog      *int64             `json:"backlog,omitempty"` // deliveries that wait
	Conditions   []metav1.Condition `json:"conditions,omitempty"`
}

func showStatus(ctx context.Context, s *session, args []string) error {
	if len(args) > 1 {
		return fmt.Errorf("name one organization, not %d", len(args))
	}
	slug := ""
	if len(args) == 1 {
		slug = args[0]
	}
	found, err := s.standings(ctx, slug)
	if err != nil {
		return err
	}
	if printed, err := s.print(map[string]any{"organization": slug, "resources": found}); printed {
		return err
	}
	if len(found) == 0 && slug != "" {
		return fmt.Errorf("nothing here is of the organization %q; kubectl registrar status -A shows what there is", slug)
	}
	var rows [][]string
	ready := 0
	for _, f := range found {
		row := []string{f.Kind, f.Namespace, f.Name, f.Organization, f.Ready, f.Reason, "", ""}
		if f.Backlog != nil {
			row[6] = strconv.FormatInt(*f.Backlog, 10)
		}
		if f.Ready == string(metav1.ConditionTrue) {
			ready++
		} else {
			row[7] = f.Message
		}
		rows = append(rows, row)
	}
	if err := s.table([]string{"KIND", "NAMESPACE", "NAME", "ORGANIZATION", "READY", "REASON", "BACKLOG", "MESSAGE"}, rows); err != nil {
		return err
	}
	_, err = fmt.Fprintf(s.stdout, "\n%d of %d ready.\n", ready, len(found))
	if ready < len(found) && err == nil {
		_, err = fmt.Fprintln(s.stdout, "kubectl registrar explain KIND/NAME says what helps.")
	}
	return err
}

// standings are those of an organization, or of the namespace's resources where slug is "".
func (s *session) standings(ctx context.Context, slug string) ([]standing, error) {
	everywhere := slug != "" && s.namespaceNotAsked
	found := []standing{}
	for _, kind := range kinds {
		if kind == kindOrganization && slug == "" && !s.allNamespaces {
			continue
		}
		s.allNamespaces = s.allNamespaces || everywhere
		all, err := s.list(ctx, kind)
		if apierrors.IsForbidden(err) && everywhere && kind != kindOrganization {
			fmt.Fprintf(s.stderr, "You may not list the resources of all namespaces: those of %s are shown.\n", s.namespace)
			everywhere, s.allNamespaces = false, false
			all, err = s.list(ctx, kind)
		}
		if apierrors.IsForbidden(err) && kind == kindOrganization {
			continue // it belongs to the platform's administrators
		}
		if err != nil {
			return nil, err
		}
		for _, o := range all {
			if slug == "" || s.of(slug, &o, found) {
				found = append(found, standingOf(&o))
			}
		}
	}
	return found, nil
}

// of says whether a resource is of an organization. A replay may name a URL instead.
func (s *session) of(slug string, o *resource, before []standing) bool {
	if organization(o) == slug {
		return true
	}
	endpoint := text(o, "spec", "endpoint")
	return endpoint != "" && slices.ContainsFunc(before, func(f standing) bool {
		return f.Kind == kindEndpoint && f.Namespace == o.GetNamespace() && f.Name == endpoint
	})
}

func standingOf(o *resource) standing {
	f := standing{Kind: o.GetKind(), Namespace: o.GetNamespace(), Name: o.GetName(), Organization: organization(o),
		Ready: string(metav1.ConditionUnknown), Message: "no operator has looked at it yet", Conditions: conditions(o)}
	if ready := meta.FindStatusCondition(f.Conditions, "Ready"); ready != nil {
		f.Ready, f.Reason, f.Message = string(ready.Status), ready.Reason, ready.Message
	}
	if f.Kind == kindEndpoint {
		backlog := number(o, "status", "backlog")
		f.Backlog = &backlog
	}
	return f
}
