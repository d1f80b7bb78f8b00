package reconcile

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/operator/api/v1beta1"
)

// A copy from before the last write says nothing of what the status is.
func TestACopyThatIsBehind(t *testing.T) {
	t.Parallel()
	var u unseen[*v1beta1.WebhookEndpoint]
	copyOf := func(uid types.UID, version string, id int64) *v1beta1.WebhookEndpoint {
		return &v1beta1.WebhookEndpoint{ObjectMeta: metav1.ObjectMeta{Name: "one", UID: uid, ResourceVersion: version},
			Status: v1beta1.WebhookEndpointStatus{EndpointID: id}}
	}
	newest := func(uid types.UID, version string) int64 {
		cached := copyOf(uid, version, 1)
		if latest, there := u.get(types.NamespacedName{Name: "one"}); there && newer(latest, cached) {
			return latest.Status.EndpointID
		}
		return cached.Status.EndpointID
	}
	check.Equal(t, "nothing was written", newest("a", "7"), 1, "")
	u.add(copyOf("a", "10", 2))
	check.Equal(t, "an older copy", newest("a", "9"), 2, "")
	check.Equal(t, "that of the write", newest("a", "10"), 2, "")
	check.Equal(t, "a newer one", newest("a", "11"), 1, "")
	check.Equal(t, "another of the name", newest("b", "1"), 1, "")
	u.saw(copyOf("a", "9", 1))
	check.Equal(t, "the cache has an older one", newest("a", "9"), 2, "")
	u.saw(copyOf("a", "10", 2))
	check.Equal(t, "the cache has seen it", newest("a", "9"), 1, "")
}
