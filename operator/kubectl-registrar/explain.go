package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/registrar-dev/registrar/api-server/client"
)

var explainCommand = command{
	name: "explain", args: "KIND/NAME | REASON | student/EMAIL | event/ID | delivery/ID", summary: "Say what a condition means, and what helps",
	about: `
Explains the conditions of a resource, or a reason alone: what it means, whether it resolves itself, and what to do otherwise.

  kubectl registrar explain whe/results
  kubectl registrar explain SwitchedOff

What happened to a student, an event or a delivery is asked of the partner API, with a key of the organization that has the scope explain:read:

  kubectl registrar explain student/asha@example.org --url https://registrar.example --api-key-from reports`,
	flags: partnerFlags,
	run:   explain, kinds: kinds, typed: true,
}

// explained is a condition with what it means.
type explained struct {
	Type    string                 `json:"type,omitempty"`
	Status  metav1.ConditionStatus `json:"status,omitempty"`
	Reason  string                 `json:"reason"`
	Message string                 `json:"message,omitempty"`
	Meaning string                 `json:"meaning,omitempty"`
	Remedy  string                 `json:"remedy,omitempty"`
}

func explain(ctx context.Context, s *session, args []string) error {
	arg, err := one(args, "resource, reason, student, event or delivery")
	if err != nil {
		return err
	}
	said, id, _ := strings.Cut(arg, "/")
	switch {
	case id == "":
		return s.explainReason(arg)
	case said == "student":
		return s.explainByService(ctx, &api.ExplainParams{Email: &id})
	case said == "event":
		return s.explainByService(ctx, &api.ExplainParams{Event: &id})
	case said == "delivery":
		return s.explainByService(ctx, &api.ExplainParams{Delivery: &id})
	}
	kind, name, err := parse(arg, kinds...)
	if err != nil {
		return err
	}
	o, err := s.get(ctx, kind, name)
	if err != nil {
		return err
	}
	return s.explainResource(o)
}

func (s *session) explainReason(reason string) error {
	a, known := advices[reason]
	if !known {
		return fmt.Errorf("%q is no reason of a condition, and no KIND/NAME; --help shows what can be explained", reason)
	}
	if printed, err := s.print(explained{Reason: reason, Meaning: a.meaning, Remedy: a.remedy}); printed {
		return err
	}
	_, err := fmt.Fprintf(s.stdout, "%s: %s\n%s\n", reason, a.meaning, a.remedy)
	return err
}

func (s *session) explainResource(o *resource) error {
	var all []explained
	for _, c := range conditions(o) {
		a := advices[c.Reason]
		all = append(all, explained{c.Type, c.Status, c.Reason, c.Message, a.meaning, a.remedy})
	}
	if printed, err := s.print(map[string]any{"resource": title(o), "conditions": all}); printed {
		return err
	}
	if len(all) == 0 {
		return errors.New(title(o) + ": no operator has looked at it yet; does one manage the namespace, and have its class?")
	}
	var last []string
	for _, c := range all {
		fmt.Fprintf(s.stdout, "%s=%s (%s): %s\n", c.Type, c.Status, c.Reason, c.Message)
		if c.Meaning != "" && !slices.Contains(last, c.Reason) {
			fmt.Fprintf(s.stdout, "  %s\n  %s\n", c.Meaning, c.Remedy)
		}
		last = append(last, c.Reason)
	}
	return nil
}
