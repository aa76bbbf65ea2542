package noderesources

import (
	"strings"

	v1 "k8s.io/api/core/v1"
)

// insufficient is the beginning of the reasons that name a resource.
const insufficient = "Insufficient "

// InsufficientReason is the reason for which the filter rejects a node that is short
// of the resource.
func InsufficientReason(name v1.ResourceName) string { return insufficient + string(name) }

// InsufficientResource is the resource that a reason of the filter names. It reports
// false for a reason that names none: too many pods.
func InsufficientResource(reason string) (name v1.ResourceName, ok bool) {
	rest, ok := strings.CutPrefix(reason, insufficient)
	if !ok {
		return "", false
	}
	return v1.ResourceName(rest), true
}
