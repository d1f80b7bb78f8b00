package main

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// The kinds of Registrar, in the order in which they are shown.
const (
	kindOrganization = "Organization"
	kindEndpoint     = "WebhookEndpoint"
	kindKey          = "ApiKey"
	kindReplay       = "WebhookReplay"
	kindRoster       = "RosterSource"
)

const group = "registrar.dev"

var kinds = []string{kindOrganization, kindEndpoint, kindKey, kindReplay, kindRoster}

// aliases are what kinds are called on a command line, besides their names.
var aliases = map[string]string{"rorg": kindOrganization, "whe": kindEndpoint, "rkey": kindKey, "whr": kindReplay, "rrs": kindRoster}

// A resource is read in the version that the API server prefers, so that the plugin goes with older and newer definitions.
type resource = unstructured.Unstructured

// session is one call of the plugin.
type session struct {
	*options

	getenv         func(string) string
	stdout, stderr io.Writer
	client         client.WithWatch

	unreached         error // why there is no client
	namespaceNotAsked bool  // no flag names one
}

// connect makes a session. Where it finds no cluster, commands that need none work.
func connect(o *options, getenv func(string) string, stdout, stderr io.Writer) *session {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.kubeconfig
	config := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules,
		&clientcmd.ConfigOverrides{CurrentContext: o.context, Context: clientcmdapi.Context{Namespace: o.namespace}})
	s := &session{options: o, getenv: getenv, stdout: stdout, stderr: stderr, namespaceNotAsked: o.namespace == ""}
	namespace, _, err := config.Namespace()
	cluster, unreached := config.ClientConfig()
	if s.unreached = cmp.Or(err, unreached); s.unreached == nil {
		o.namespace = namespace
		cluster.QPS = -1 // the API server says when it has enough
		s.client, s.unreached = client.NewWithWatch(cluster, client.Options{Scheme: runtime.NewScheme()})
	}
	return s
}

// version finds the one in which a kind is served. [meta.IsNoMatchError] says that it is not installed.
func (s *session) version(kind string) (schema.GroupVersionKind, error) {
	if s.unreached != nil {
		return schema.GroupVersionKind{}, s.unreached
	}
	mapping, err := s.client.RESTMapper().RESTMapping(schema.GroupKind{Group: group, Kind: kind})
	if err != nil {
		return schema.GroupVersionKind{}, err
	}
	return mapping.GroupVersionKind, nil
}

// perPage is how many resources are read at a time.
const perPage = 500

// list reads the resources of a kind, of the namespace or of all; none where the kind is not installed.
func (s *session) list(ctx context.Context, kind string) ([]resource, error) {
	version, err := s.version(kind)
	if meta.IsNoMatchError(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	options := []client.ListOption{client.Limit(perPage)}
	if !s.allNamespaces && kind != kindOrganization {
		options = append(options, client.InNamespace(s.namespace))
	}
	var all []resource
	for next := ""; ; {
		page := &unstructured.UnstructuredList{}
		page.SetGroupVersionKind(version.GroupVersion().WithKind(kind + "List"))
		if err := s.client.List(ctx, page, append(options, client.Continue(next))...); err != nil {
			return nil, err
		}
		all = append(all, page.Items...)
		if next = page.GetContinue(); next == "" {
			return all, nil
		}
	}
}

// get reads one resource.
func (s *session) get(ctx context.Context, kind, name string) (*resource, error) {
	version, err := s.version(kind)
	if meta.IsNoMatchError(err) {
		return nil, fmt.Errorf("the cluster has no %s; is Registrar's operator installed?", kind)
	}
	if err != nil {
		return nil, err
	}
	o := &resource{}
	o.SetGroupVersionKind(version)
	key := client.ObjectKey{Namespace: s.namespace, Name: name}
	if kind == kindOrganization {
		key.Namespace = ""
	}
	err = s.client.Get(ctx, key, o)
	if apierrors.IsNotFound(err) && key.Namespace != "" {
		return nil, fmt.Errorf("there is no %s %q in the namespace %s; -n names another", kind, name, s.namespace)
	}
	return o, err
}

// parse takes KIND/NAME apart.
func parse(arg string, allowed ...string) (kind, name string, err error) {
	said, name, found := strings.Cut(arg, "/")
	if found && name != "" {
		for _, kind := range allowed {
			if aliases[strings.ToLower(said)] == kind || strings.EqualFold(said, kind) || strings.EqualFold(said, kind+"s") {
				return kind, name, nil
			}
		}
	}
	return "", "", fmt.Errorf("%q: write KIND/NAME with a kind of %s, such as %s/my-name", arg, strings.Join(allowed, ", "), strings.ToLower(allowed[0]))
}

// one is the only argument of a command.
func one(args []string, what string) (string, error) {
	if len(args) != 1 {
		return "", fmt.Errorf("name one %s; --help shows how", what)
	}
	return args[0], nil
}

// await watches a resource until done says so, or time is up.
func (s *session) await(ctx context.Context, o *resource, done func(*resource) (bool, error)) error {
	last := o
	for {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(o.GroupVersionKind().GroupVersion().WithKind(o.GetKind() + "List"))
		events, err := s.client.Watch(ctx, list, client.InNamespace(o.GetNamespace()), client.MatchingFields{"metadata.name": o.GetName()})
		if err != nil {
			return late(ctx, last, err)
		}
		for event := range events.ResultChan() {
			if event.Type == watch.Error {
				err = apierrors.FromObject(event.Object)
				break
			}
			found, ok := event.Object.(*resource)
			if !ok {
				continue
			}
			if event.Type == watch.Deleted {
				err = fmt.Errorf("%s was deleted", title(o))
				break
			}
			last = found
			var ended bool
			if ended, err = done(found); ended || err != nil {
				events.Stop()
				return err
			}
		}
		events.Stop()
		if err != nil || ctx.Err() != nil {
			return late(ctx, last, err)
		}
	}
}

// late is err, or, when time is up, what the resource said last.
func late(ctx context.Context, o *resource, err error) error {
	if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return cmp.Or(err, ctx.Err())
	}
	ready := meta.FindStatusCondition(conditions(o), "Ready")
	if ready == nil {
		return fmt.Errorf("%s: no operator has looked at it in time (--timeout); does one manage the namespace %s?", title(o), o.GetNamespace())
	}
	return fmt.Errorf("%s: not done in time (--timeout); it says %s: %s", title(o), ready.Reason, ready.Message)
}

// title is KIND/NAME.
func title(o *resource) string { return strings.ToLower(o.GetKind()) + "/" + o.GetName() }

// text is a string field of a resource, "" where it has none.
func text(o *resource, fields ...string) string {
	value, _, _ := unstructured.NestedString(o.Object, fields...) // "" of another type, too
	return value
}

// number is a whole field of a resource, 0 where it has none.
func number(o *resource, fields ...string) int64 {
	value, _, _ := unstructured.NestedInt64(o.Object, fields...)
	return value
}

func conditions(o *resource) []metav1.Condition {
	list, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	var all []metav1.Condition
	for _, item := range list {
		var c metav1.Condition
		fields, ok := item.(map[string]any)
		if ok && runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &c) == nil {
			all = append(all, c)
		}
	}
	return all
}

// organization is the slug of the one that a resource is of, "" where it says none.
func organization(o *resource) string {
	if o.GetKind() == kindOrganization {
		return text(o, "spec", "slug")
	}
	return text(o, "spec", "organization")
}

// secret reads a value of a Secret.
func (s *session) secret(ctx context.Context, name, key string) (string, error) {
	o := &resource{}
	o.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "Secret"})
	if err := s.client.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: name}, o); err != nil {
		return "", err
	}
	value, err := base64.StdEncoding.DecodeString(text(o, "data", key))
	if err == nil && len(value) == 0 {
		err = fmt.Errorf("the Secret %s has no %s", name, key)
	}
	return string(value), err
}

// print writes what a program reads, as --output says; false when people read.
func (s *session) print(v any) (bool, error) {
	if s.output == "" {
		return false, nil
	}
	content, err := json.MarshalIndent(v, "", "  ")
	if err == nil && s.output == "yaml" {
		content, err = yaml.JSONToYAML(content)
	}
	if err != nil {
		return true, err
	}
	_, err = fmt.Fprintln(s.stdout, strings.TrimSuffix(string(content), "\n"))
	return true, err
}

// table writes rows in columns. Columns that are empty in all rows are left out.
func (s *session) table(head []string, rows [][]string) error {
	w := tabwriter.NewWriter(s.stdout, 0, 8, 3, ' ', 0)
	for _, row := range slices.Concat([][]string{head}, rows) {
		var shown []string
		for i, cell := range row {
			if slices.ContainsFunc(rows, func(r []string) bool { return r[i] != "" }) {
				shown = append(shown, cmp.Or(cell, "-"))
			}
		}
		fmt.Fprintln(w, strings.Join(shown, "\t"))
	}
	return w.Flush()
}
