package decode

import (
	v1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/core/object"
)

// Namespace decodes a namespace.
func Namespace(n *v1.Namespace) *object.Namespace {
	return &object.Namespace{Name: n.Name, Labels: n.Labels}
}
