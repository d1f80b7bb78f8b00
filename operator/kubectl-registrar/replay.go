package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/registrar-dev/registrar/operator/api/v1beta1"
)

var replayCommand = command{
	name: "replay", args: "ENDPOINT | --organization SLUG", summary: "Send undelivered events again, and wait until they are due",
	about: `
Creates a WebhookReplay: events that were declined, whose tries are exhausted, or that were skipped while the URL was off, become due again. What has
arrived is not sent again. It goes on in the cluster if this command is interrupted; deleting the WebhookReplay stops it.

  kubectl registrar replay results --from 2h
  kubectl registrar replay results --from 2026-11-23T00:00:00Z --to 2026-11-24T00:00:00Z --events result.final`,
	flags: func(flags *pflag.FlagSet, o *options) {
		flags.StringVar(&o.from, "from", "", "time from which on, such as 2026-11-23T00:00:00Z, or how long ago, such as 2h; required")
		flags.StringVar(&o.to, "to", "", "time before which, written as --from; without it, until the replay begins")
		flags.StringSliceVar(&o.events, "events", nil, "events, such as result.final,student.joined; none: all")
		flags.StringVar(&o.organization, "organization", "", "slug of an organization, for all its URLs that are on, instead of ENDPOINT")
		flags.StringVar(&o.name, "name", "", "name of the WebhookReplay; without it, one is made up")
		flags.BoolVar(&o.wait, "wait", true, "wait until it has ended, for --timeout at most")
	},
	run: replay, kinds: []string{kindEndpoint},
}

func replay(ctx context.Context, s *session, args []string) error {
	o, err := s.newReplay(ctx, args)
	if err != nil {
		return err
	}
	if err := s.client.Create(ctx, o); err != nil {
		return err
	}
	fmt.Fprintf(s.stderr, "%s created\n", title(o))
	if s.wait {
		if err := s.awaitReplay(ctx, o); err != nil {
			return err
		}
	}
	_, err = s.print(o.Object)
	return err
}

// newReplay is the resource that the command line describes.
func (s *session) newReplay(ctx context.Context, args []string) (*resource, error) {
	spec, prefix := map[string]any{}, s.organization
	if s.organization != "" {
		if len(args) > 0 {
			return nil, errors.New("name a WebhookEndpoint or --organization, not both")
		}
		spec["organization"] = s.organization
	} else {
		name, err := one(args, "WebhookEndpoint, or --organization")
		if err != nil {
			return nil, err
		}
		endpoint, err := s.get(ctx, kindEndpoint, name)
		if err != nil {
			return nil, err
		}
		spec["endpoint"], spec["className"], prefix = name, text(endpoint, "spec", "className"), name
	}
	if s.from == "" {
		return nil, errors.New("--from: say from when on, such as --from 2h or --from 2026-11-23T00:00:00Z")
	}
	for field, said := range map[string]string{"from": s.from, "to": s.to} {
		if said == "" {
			continue
		}
		t, err := instant(said, time.Now())
		if err != nil {
			return nil, fmt.Errorf("--%s: %w", field, err)
		}
		spec[field] = t.UTC().Format(time.RFC3339)
	}
	if len(s.events) > 0 {
		events := make([]any, len(s.events))
		for i, e := range s.events {
			events[i] = e
		}
		spec["events"] = events
	}
	version, err := s.version(kindReplay)
	if err != nil {
		return nil, err
	}
	o := &resource{Object: map[string]any{"spec": spec}}
	o.SetGroupVersionKind(version)
	o.SetNamespace(s.namespace)
	if o.SetName(s.name); s.name == "" {
		o.SetGenerateName(prefix + "-")
	}
	return o, nil
}

// instant reads a time, or how long before now it was.
func instant(said string, now time.Time) (time.Time, error) {
	if ago, err := time.ParseDuration(said); err == nil && ago > 0 {
		return now.Add(-ago), nil
	}
	t, err := time.Parse(time.RFC3339, said)
	if err != nil {
		return t, fmt.Errorf("%q is no time; write one such as 2026-11-23T00:00:00Z, or how long ago it was, such as 2h", said)
	}
	return t, nil
}

// awaitReplay says how far the replay is, until it has ended.
func (s *session) awaitReplay(ctx context.Context, o *resource) error {
	said := ""
	return s.await(ctx, o, func(now *resource) (bool, error) {
		o.Object = now.Object
		all := conditions(now)
		ready := meta.FindStatusCondition(all, v1beta1.ConditionReady)
		if ready == nil {
			return false, nil
		}
		if ready.Message != said {
			said = ready.Message
			fmt.Fprintln(s.stderr, said)
		}
		failed := meta.IsStatusConditionTrue(all, v1beta1.ConditionFailed) || meta.IsStatusConditionTrue(all, v1beta1.ConditionStalled)
		if failed {
			return true, fmt.Errorf("%s: %s: %s", title(o), ready.Reason, advices[ready.Reason].remedy)
		}
		return meta.IsStatusConditionTrue(all, v1beta1.ConditionComplete), nil
	})
}
