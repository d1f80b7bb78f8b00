package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var migrateCommand = command{
	name: "migrate", args: "", summary: "Store all resources in the version of the definitions",
	about: `
The API server keeps a resource as it was written last, so one from before an upgrade is kept in an older version, and the definition
cannot drop that version. This has the API server write every resource of Registrar anew, without changing it, and then takes the older
versions from the definitions' status.storedVersions. It can be run at any time, again, and beside an operator. API servers notice a new
definition within seconds: wait a minute after an upgrade.

It needs a cluster administrator.

  kubectl registrar migrate`,
	flags: func(flags *pflag.FlagSet, o *options) {
		flags.Int64Var(&o.chunkSize, "chunk-size", perPage, "how many resources are read at a time")
	},
	run: migrate,
}

// writers is how many resources are written at the same time.
const writers = 8

var definitionKind = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}

// migrated is what became of a definition's resources.
type migrated struct {
	Definition string   `json:"definition"`
	Storage    string   `json:"storage"`           // the version that the API server stores
	Dropped    []string `json:"dropped,omitempty"` // older ones, in which nothing is stored any more
	Written    int64    `json:"written"`
}

func migrate(ctx context.Context, s *session, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("%q: migrate takes no arguments; it is for all kinds", args[0])
	}
	if s.chunkSize < 1 {
		return fmt.Errorf("--chunk-size: %d is too few; use 1 or more", s.chunkSize)
	}
	var all []migrated
	for _, kind := range kinds {
		version, err := s.version(kind)
		if meta.IsNoMatchError(err) {
			continue
		}
		if err != nil {
			return err
		}
		m, err := s.migrateKind(ctx, version)
		switch {
		case apierrors.IsForbidden(err):
			return fmt.Errorf("%w\nmigrate lists and patches the resources of all namespaces, and gets and patches customresourcedefinitions and their status: ask a cluster administrator", err)
		case errors.Is(ctx.Err(), context.DeadlineExceeded):
			return fmt.Errorf("%s: not done in time (--timeout); run it again, with more", m.Definition)
		case err != nil:
			return fmt.Errorf("%s: %w", m.Definition, err)
		}
		all = append(all, m)
	}
	if len(all) == 0 {
		return errors.New("the cluster has no definition of Registrar's; is its operator installed?")
	}
	if printed, err := s.print(all); printed {
		return err
	}
	for _, m := range all {
		said := "is stored in " + m.Storage + " alone"
		if len(m.Dropped) > 0 {
			said = fmt.Sprintf("%d written in %s; nothing is stored in %s any more", m.Written, m.Storage, strings.Join(m.Dropped, ", "))
		}
		if _, err := fmt.Fprintf(s.stdout, "%s: %s\n", m.Definition, said); err != nil {
			return err
		}
	}
	return nil
}

// migrateKind writes the resources of a kind if some may be stored in an older version. The definition must stay as it was found.
func (s *session) migrateKind(ctx context.Context, kind schema.GroupVersionKind) (migrated, error) {
	mapping, err := s.client.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return migrated{}, err
	}
	definition := &resource{}
	definition.SetGroupVersionKind(definitionKind)
	m := migrated{Definition: mapping.Resource.Resource + "." + group}
	if err := s.client.Get(ctx, client.ObjectKey{Name: m.Definition}, definition); err != nil {
		return m, err
	}
	m.Storage = storageOf(definition)
	stored, _, _ := unstructured.NestedStringSlice(definition.Object, "status", "storedVersions")
	m.Dropped = slices.DeleteFunc(stored, func(v string) bool { return v == m.Storage })
	if m.Storage == "" || len(m.Dropped) == 0 {
		return m, nil
	}
	if m.Written, err = s.rewrite(ctx, kind); err != nil {
		return m, err
	}
	patch, err := patchAt(definition, map[string]any{"status": map[string]any{"storedVersions": []string{m.Storage}}})
	if err != nil {
		return m, err
	}
	err = s.client.Status().Patch(ctx, definition, patch)
	if apierrors.IsConflict(err) {
		return m, errors.New("the definition has changed meanwhile; run it again")
	}
	return m, err
}

// storageOf is the version in which the API server stores what is written.
func storageOf(definition *resource) string {
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	for _, v := range versions {
		if fields, ok := v.(map[string]any); ok && fields["storage"] == true {
			name, _ := fields["name"].(string)
			return name
		}
	}
	return ""
}

// rewrite has all resources of a kind stored anew, and returns how many.
func (s *session) rewrite(ctx context.Context, kind schema.GroupVersionKind) (int64, error) {
	var written atomic.Int64
	for next := ""; ; {
		page := &metav1.PartialObjectMetadataList{}
		page.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		err := s.client.List(ctx, page, client.Limit(s.chunkSize), client.Continue(next))
		if refused := apierrors.APIStatus(nil); apierrors.IsResourceExpired(err) && errors.As(err, &refused) && refused.Status().Continue != "" {
			next = refused.Status().Continue // goes on with what is there now; what is new is stored in the right version
			continue
		}
		if err != nil {
			return written.Load(), err
		}
		all, writing := errgroup.WithContext(ctx)
		all.SetLimit(writers)
		for _, o := range page.Items {
			o.SetGroupVersionKind(kind)
			all.Go(func() error {
				patch, err := patchAt(&o, map[string]any{})
				if err != nil {
					return err
				}
				switch err := s.client.Patch(writing, &o, patch); {
				case apierrors.IsConflict(err), apierrors.IsNotFound(err): // somebody else has written or deleted it
					return nil
				case err != nil:
					return err
				}
				written.Add(1)
				return nil
			})
		}
		if err := all.Wait(); err != nil {
			return written.Load(), err
		}
		if next = page.GetContinue(); next == "" {
			return written.Load(), nil
		}
	}
}

// patchAt changes nothing but this of a version of an object.
func patchAt(o client.Object, what map[string]any) (client.Patch, error) {
	what["metadata"] = map[string]any{"uid": o.GetUID(), "resourceVersion": o.GetResourceVersion()}
	content, err := json.Marshal(what)
	return client.RawPatch(types.MergePatchType, content), err
}
