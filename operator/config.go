package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/registrar-dev/registrar/internal/kit/egress"
	"github.com/registrar-dev/registrar/internal/kit/queue"
	"github.com/registrar-dev/registrar/internal/kit/seal"
)

// config is the configuration, read from the environment. The address of Kubernetes comes from
// KUBECONFIG, or from the pod that the operator runs in.
type config struct {
	DatabaseURL string        `env:"DATABASE_URL,required" help:"postgres:// address of the store of record"`
	RedisURL    string        `env:"REDIS_URL" help:"redis://, redis+sentinel:// or redis+cluster:// address over which changes by others arrive at once; empty: they are noticed with RESYNC"`
	SchemaWait  time.Duration `env:"SCHEMA_WAIT" envDefault:"0s" help:"how long to wait at start for PostgreSQL and for its schema to be migrated"`
	ClusterName string        `env:"CLUSTER_NAME,required" help:"name of this cluster, another one for each cluster whose operator uses this PostgreSQL"`
	PrivateAddr string        `env:"PRIVATE_ADDR" envDefault:":9090" help:"address for health and readiness"`
	PprofAddr   string        `env:"PPROF_ADDR" help:"address for profiles of the operator itself at /debug/pprof/, for those who look for what costs time; empty for none"`
	MetricsAddr string        `env:"METRICS_ADDR" envDefault:":8443" help:"https address of the metrics, for those whom the API server lets read them; 0 for none"`
	SandboxURL  string        `env:"SANDBOX_DATABASE_URL" help:"postgres:// address of an empty database of the server that has the sandboxes' databases, for a user who may make databases there; empty: Organizations have no sandboxes"`
	PublicURL   string        `env:"PUBLIC_URL" help:"base of the links in invitations to the staff, such as https://registrar.example; empty: Organizations invite nobody, and nobody is mailed about a new ApiKey"`
	Suppressed  []string      `env:"SUPPRESSED_DOMAINS" help:"mail domains, separated by commas, that are never mailed, beside the reserved ones such as example.com"`
	LogLevel    string        `env:"LOG_LEVEL" envDefault:"info" help:"debug, info, warn or error"`

	Organizations   bool          `env:"ORGANIZATIONS" envDefault:"false" help:"whether Organizations are managed, which belong to no namespace: by one operator of a cluster for each CLASS_NAME"`
	ClassName       string        `env:"CLASS_NAME" help:"className of the resources that are managed; empty: those without one"`
	WatchNamespaces []string      `env:"WATCH_NAMESPACES" help:"namespaces whose resources are kept, comma-separated; empty for all"`
	WatchSelector   string        `env:"WATCH_NAMESPACE_SELECTOR" help:"labels of the namespaces whose resources are kept instead, as for kubectl -l, such as registrar.dev/managed=true; namespaces may come and go"`
	NamespaceRole   string        `env:"NAMESPACE_ROLE" help:"ClusterRole that the operator binds to itself in each namespace that WATCH_NAMESPACE_SELECTOR selects; empty: others give it its rights there"`
	LeaseNamespace  string        `env:"LEASE_NAMESPACE" help:"namespace of the lease by which replicas choose their leader; empty for the pod's own"`
	LeaseName       string        `env:"LEASE_NAME" envDefault:"registrar-operator" help:"name of that lease, another one for each operator of the namespace"`
	Resync          time.Duration `env:"RESYNC" envDefault:"10m" help:"how often a resource is reconciled although nothing has happened"`
	Patience        time.Duration `env:"DELETION_PATIENCE" envDefault:"10m" help:"how long a deletion waits for PostgreSQL before the resource is deleted without it"`

	Egress   egress.Config
	Secrets  seal.Config
	RedisTLS queue.TLS
}

// Validate implements env.Validator.
func (c *config) Validate() error {
	if strings.Contains(c.ClusterName, "/") { // `a` would take the URLs of `a/b` for orphans of its own
		return errors.New("CLUSTER_NAME: a slash is not possible; use letters, digits, dots and dashes")
	}
	selector, err := labels.Parse(c.WatchSelector)
	switch {
	case err != nil:
		return fmt.Errorf("WATCH_NAMESPACE_SELECTOR: %w; write labels as for kubectl -l, such as registrar.dev/managed=true", err)
	case selector.Empty() && c.NamespaceRole != "":
		return errors.New("NAMESPACE_ROLE: set WATCH_NAMESPACE_SELECTOR, too; the role is for the namespaces that it selects")
	case !selector.Empty() && len(c.WatchNamespaces) > 0:
		return errors.New("WATCH_NAMESPACE_SELECTOR: set it or WATCH_NAMESPACES, not both")
	}
	return nil
}

// selector is what WATCH_NAMESPACE_SELECTOR says; nil: nothing.
func (c *config) selector() labels.Selector {
	if selector, err := labels.Parse(c.WatchSelector); err == nil && !selector.Empty() { // Validate has judged it
		return selector
	}
	return nil
}
