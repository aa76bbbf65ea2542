package scenario

import (
	"errors"

	v1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/edge/decode"
)

// Node makes the node that a directive describes: its name, then attributes.
func Node(words []string) (*v1.Node, error) {
	if len(words) == 0 {
		return nil, errors.New("want a name")
	}
	n := newNode(words[0])
	return n, ChangeNode(n, words[1:])
}

// ChangeNode changes the node by attributes.
func ChangeNode(n *v1.Node, attributes []string) error {
	if err := applyAll(attributes, func(a attribute) error { return setNode(n, a) }); err != nil {
		return err
	}
	decode.DefaultNode(n)
	return nil
}

// Pod makes the pod that a directive describes: its name, then attributes.
func Pod(words []string) (*v1.Pod, error) {
	if len(words) == 0 {
		return nil, errors.New("want a name")
	}
	p := newPod(words[0])
	return p, ChangePod(p, words[1:])
}

// ChangePod changes the pod by attributes.
func ChangePod(p *v1.Pod, attributes []string) error {
	if err := applyAll(attributes, func(a attribute) error { return setPod(p, a) }); err != nil {
		return err
	}
	decode.DefaultPod(p)
	return (&decode.PriorityClasses{}).Resolve(p)
}
