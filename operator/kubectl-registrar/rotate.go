package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/registrar-dev/registrar/operator/api/v1beta1"
)

var rotateCommand = command{
	name: "rotate", args: "webhookendpoint/NAME | apikey/NAME", summary: "Replace a signing secret or an API key, and wait until it is in its Secret",
	about: `
Gives the Secret of a WebhookEndpoint or of an ApiKey a new value. The one before goes on for the overlap in spec: with --overlap, spec is
changed first, which a repository that the resource comes from would change back.

  kubectl registrar rotate whe/results --overlap 24h
  kubectl registrar rotate rkey/reports --overlap 0s     after a leak: the one before ends at once`,
	flags: func(flags *pflag.FlagSet, o *options) {
		flags.StringVar(&o.overlap, "overlap", "", "how long the one before goes on, such as 24h; none: as spec says")
		flags.BoolVar(&o.wait, "wait", true, "wait until the Secret has it, for --timeout at most")
	},
	run: rotate, kinds: []string{kindEndpoint, kindKey}, typed: true,
}

// A rotation is how the secret of a kind is replaced.
type rotation struct {
	annotation string
	handled    string                           // field of status.handled
	overlap    func(said string) map[string]any // spec with it
}

var rotations = map[string]rotation{
	kindEndpoint: {"registrar.dev/rotate-secret", "rotateSecret", func(said string) map[string]any {
		return map[string]any{"rotation": map[string]any{"overlap": said}}
	}},
	kindKey: {v1beta1.AnnotationRotate, "rotate", func(said string) map[string]any { return map[string]any{"overlap": said} }},
}

func rotate(ctx context.Context, s *session, args []string) error {
	arg, err := one(args, "webhookendpoint/NAME or apikey/NAME")
	if err != nil {
		return err
	}
	kind, name, err := parse(arg, kindEndpoint, kindKey)
	if err != nil {
		return err
	}
	o, err := s.get(ctx, kind, name)
	if err != nil {
		return err
	}
	if yours := text(o, "spec", "signingSecretRef", "name"); yours != "" {
		return fmt.Errorf("%s signs with your own Secret %s: put a new value there, and the operator takes it at once", title(o), yours)
	}
	r, token := rotations[kind], strconv.FormatInt(time.Now().UnixNano(), 10)
	patch := map[string]any{"metadata": map[string]any{"annotations": map[string]any{r.annotation: token}}}
	if s.overlap != "" {
		patch["spec"] = r.overlap(s.overlap)
	}
	content, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	if err := s.client.Patch(ctx, o, client.RawPatch(types.MergePatchType, content)); err != nil {
		return err
	}
	if s.wait {
		err = s.await(ctx, o, func(now *resource) (bool, error) {
			o.Object = now.Object
			if stalled := meta.FindStatusCondition(conditions(now), v1beta1.ConditionStalled); stalled != nil && stalled.ObservedGeneration == now.GetGeneration() {
				return true, fmt.Errorf("%s: %s: %s", title(o), stalled.Reason, stalled.Message)
			}
			return text(now, "status", "handled", r.handled) == token, nil
		})
		if err != nil {
			return err
		}
	}
	if printed, err := s.print(o.Object); printed {
		return err
	}
	return s.sayRotated(kind, o)
}

// sayRotated says where the new secret is, and how long the one before goes on.
func (s *session) sayRotated(kind string, o *resource) (err error) {
	if !s.wait {
		_, err = fmt.Fprintf(s.stdout, "%s is asked to rotate\n", title(o))
		return err
	}
	secret, until := text(o, "status", "secretRef", "name"), text(o, "status", "previousSecretUntil")
	if kind == kindKey {
		secret = text(o, "status", "secretName")
		previous, _, _ := unstructured.NestedSlice(o.Object, "status", "previousKeys")
		if len(previous) > 0 {
			fields, _ := previous[0].(map[string]any)
			until = fmt.Sprint(fields["endsAt"])
		}
	}
	if until == "" {
		_, err = fmt.Fprintf(s.stdout, "%s rotated: the Secret %s has the new one, and the one before has ended\n", title(o), secret)
		return err
	}
	_, err = fmt.Fprintf(s.stdout, "%s rotated: the Secret %s has the new one, and the one before goes on until %s\n", title(o), secret, until)
	return err
}
