// Package guard protects the metrics. It asks the API server who the bearer of a token is
// (TokenReview) and whether they may get the path (SubjectAccessReview).
package guard

import (
	"context"
	"crypto/sha256"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/registrar-dev/registrar/internal/kit/clock"
)

// remembered is how long an answer of the API server is cached.
const remembered = time.Minute

// maxRemembered bounds the memory that callers with invented tokens can use.
const maxRemembered = 1000

// +kubebuilder:rbac:groups=authentication.k8s.io,resources=tokenreviews,verbs=create
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create

// Filter makes the metrics server's filter.
func Filter(cluster *rest.Config, hc *http.Client, now clock.Clock) (metricsserver.Filter, error) {
	api, err := kubernetes.NewForConfigAndClient(cluster, hc)
	if err != nil {
		return nil, err
	}
	g := &guard{api: api, now: now, answers: map[question]answer{}}
	return func(log logr.Logger, next http.Handler) (http.Handler, error) {
		return g.around(log, next), nil
	}, nil
}

type guard struct {
	api kubernetes.Interface
	now clock.Clock

	mu      sync.Mutex
	answers map[question]answer
}

type question struct {
	token        [sha256.Size]byte
	method, path string
}

type answer struct {
	status int // 200, 401 or 403
	until  time.Time
}

func (g *guard) around(log logr.Logger, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status, err := g.ask(r)
		switch {
		case err != nil:
			log.Error(err, "the API server could not be asked who may read the metrics")
			http.Error(w, "authorization is not available", http.StatusServiceUnavailable)
		case status != http.StatusOK:
			http.Error(w, http.StatusText(status), status)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

func (g *guard) ask(r *http.Request) (int, error) {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok || token == "" {
		return http.StatusUnauthorized, nil
	}
	q := question{token: sha256.Sum256([]byte(token)), method: r.Method, path: r.URL.Path}
	if status, known := g.recall(q); known {
		return status, nil
	}
	status, err := g.review(r.Context(), token, r.Method, r.URL.Path)
	if err == nil {
		g.remember(q, status)
	}
	return status, err
}

func (g *guard) review(ctx context.Context, token, method, path string) (int, error) {
	who, err := g.api.AuthenticationV1().TokenReviews().Create(ctx,
		&authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}, metav1.CreateOptions{})
	if err != nil {
		return 0, err
	}
	if !who.Status.Authenticated {
		return http.StatusUnauthorized, nil
	}
	user := who.Status.User
	extra := make(map[string]authorizationv1.ExtraValue, len(user.Extra))
	for k, v := range user.Extra {
		extra[k] = authorizationv1.ExtraValue(v)
	}
	may, err := g.api.AuthorizationV1().SubjectAccessReviews().Create(ctx,
		&authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: user.Username, UID: user.UID, Groups: user.Groups, Extra: extra,
			NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: path, Verb: strings.ToLower(method)},
		}}, metav1.CreateOptions{})
	if err != nil {
		return 0, err
	}
	if !may.Status.Allowed {
		return http.StatusForbidden, nil
	}
	return http.StatusOK, nil
}

func (g *guard) recall(q question) (int, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	a, known := g.answers[q]
	return a.status, known && g.now().Before(a.until)
}

func (g *guard) remember(q question, status int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.answers) >= maxRemembered {
		clear(g.answers)
	}
	g.answers[q] = answer{status: status, until: g.now().Add(remembered)}
}
