// Package definition knows the revisions of the CustomResourceDefinitions that this operator was built with, so that it
// notices older ones in its cluster.
package definition

import (
	_ "embed"
	"fmt"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

//go:generate go tool -modfile=../../../hack/tools/go.mod controller-gen object crd paths=../../api/... output:crd:artifacts:config=../../../config/crd/bases
//go:generate go run ./revise ../../../config/crd/bases ../../../charts/registrar/files/crds

// Annotation is where a definition has its revision.
const Annotation = "registrar.dev/revision"

//go:embed revisions.txt
var revisions string

// Definition is a revision of a CustomResourceDefinition. Revisions are counted from 1.
type Definition struct {
	Name     string // such as apikeys.registrar.dev
	Revision int
	Digest   string // of what the revision says
}

// All are the definitions that this operator was built with.
func All() ([]Definition, error) { return Parse(revisions) }

// Parse reads lines of name, revision and digest.
func Parse(text string) ([]Definition, error) {
	var all []Definition
	for line := range strings.Lines(text) {
		var d Definition
		if _, err := fmt.Sscan(line, &d.Name, &d.Revision, &d.Digest); err != nil {
			return nil, fmt.Errorf("revisions.txt: %q: %w; go generate writes it", line, err)
		}
		all = append(all, d)
	}
	return all, nil
}

// RevisionOf is the revision of a definition in a cluster; 0 for one from before revisions were counted.
func RevisionOf(installed metav1.Object) int {
	n, _ := strconv.Atoi(installed.GetAnnotations()[Annotation])
	return n
}
