package match

import (
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// Tolerations are a pod's spec.tolerations.
type Tolerations struct {
	// Key is equal for equal lists.
	Key  string
	List []v1.Toleration
}

// NewTolerations compiles the list.
func NewTolerations(list []v1.Toleration) Tolerations {
	var b strings.Builder
	for _, t := range list {
		fmt.Fprintf(&b, "%q%s%q%s,", t.Key, t.Operator, t.Value, t.Effect)
	}
	return Tolerations{Key: b.String(), List: list}
}
