package manifest

import (
	v1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/edge/decode"
)

// Hidden reports whether an answer may tell nothing of the pods of the namespace.
func (s *Set) Hidden(namespace string) bool { return s.Hides != nil && s.Hides(namespace) }

// DecodePod returns the pod as the scheduler sees it.
func (s *Set) DecodePod(api *v1.Pod) *object.Pod {
	p := decode.Pod(api)
	if s.KeepAPI {
		p.API = api
	}
	return p
}

// DecodeNode returns the node as the scheduler sees it.
func (s *Set) DecodeNode(api *v1.Node) *object.Node {
	n := decode.Node(api)
	if s.KeepAPI {
		n.API = api
	}
	return n
}
