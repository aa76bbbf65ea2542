package api

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/queue"
	"github.com/berth-scheduler/berth/edge/why"
)

// knowledge is what the machine knows at one moment.
type knowledge struct {
	cluster []machine.Event
	at      time.Time
	queue   why.Queue // of the pod
	node    string    // where it is assumed
}

// take copies it with a view to one pod, on the loop's goroutine.
func take(m *machine.Machine, uid types.UID) knowledge {
	s := knowledge{cluster: m.Cluster(), at: m.Table().Now()}
	if pl := m.Table().Pod(uid); pl != nil && pl.Pod.NodeName == "" {
		s.node = m.Table().Name(pl.Row)
	}
	if e := m.Entry(uid); e.Place() != queue.Nowhere {
		state := e.State()
		s.queue = why.Queue{Place: state.Place.String(), Since: state.Since.UTC(), Until: utc(m.Queue().StayEnd(e)),
			Attempts: state.Attempts, Position: m.Queue().Position(e), Alike: alike(m.Queue(), e.Pod)}
	}
	return s
}

// alike counts the other pods of the pod's workload in the queue: of its controller or, where that is not known,
// those whose names differ in what was made up.
func alike(q *queue.Queue, p *object.Pod) (pods int) {
	begin := generated.ReplaceAllString(p.Name, "") + "-"
	for e := range q.Entries() {
		switch o := e.Pod; {
		case o.UID == p.UID, o.Namespace != p.Namespace, o.Controller.Kind != p.Controller.Kind:
		case p.Controller.Kind != object.NoSelectorOwner:
			if o.Controller.Name == p.Controller.Name {
				pods++
			}
		case strings.HasPrefix(o.Name, begin) && generated.ReplaceAllString(o.Name, "")+"-" == begin:
			pods++
		}
	}
	return pods
}

// apiNodes are the nodes as objects of the API.
func (s *knowledge) apiNodes() (nodes []*v1.Node) {
	for _, e := range s.cluster {
		if n, ok := e.(machine.NodeSet); ok {
			nodes = append(nodes, apiNode(n.Node))
		}
	}
	return nodes
}

// placed are the pods that have a node.
func (s *knowledge) placed() map[types.UID]bool {
	placed := map[types.UID]bool{}
	for _, e := range s.cluster {
		if p, ok := e.(machine.PodSet); ok && p.Pod.NodeName != "" {
			placed[p.Pod.UID] = true
		}
	}
	return placed
}

// copyOf makes a machine that knows the same cluster, except for one pod: one that the
// question is about takes no room on the node where it is assumed.
func (h *handler) copyOf(ctx context.Context, s *knowledge, without types.UID) (m *machine.Machine, err error) {
	profiles, err := h.Profiles()
	if err != nil {
		return nil, err
	}
	options := h.Machine
	options.Profiles = profiles
	m = machine.New(options)
	defer func() {
		if r := recover(); r != nil {
			m, err = nil, fmt.Errorf("copying the cluster panicked: %v", r)
		}
	}()
	for _, e := range s.cluster {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if p, ok := e.(machine.PodSet); ok && without != "" && p.Pod.UID == without {
			continue
		}
		m.Step(s.at, e)
	}
	return m, nil
}

// ErrHosted is why a daemon with hosted plugins makes no copies.
var ErrHosted = errors.New("it has plugins that are written against k8s.io/kube-scheduler/framework, which cannot be asked about a copy of the cluster; \"berth events\" tells what they answered")

// apiNode is the node as an object of the API, with all that the scheduler knows of
// it.
func apiNode(n *object.Node) *v1.Node {
	node := &v1.Node{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
		ObjectMeta: metav1.ObjectMeta{Name: n.Name, UID: n.UID, Labels: n.Labels, Annotations: n.Annotations},
		Spec:       v1.NodeSpec{Unschedulable: n.Unschedulable, Taints: n.Taints},
		Status:     v1.NodeStatus{Allocatable: v1.ResourceList{}, DeclaredFeatures: n.Features},
	}
	list := node.Status.Allocatable
	set := func(name v1.ResourceName, q *resource.Quantity) {
		if !q.IsZero() {
			list[name] = *q
		}
	}
	set(v1.ResourceCPU, resource.NewMilliQuantity(n.Allocatable.MilliCPU, resource.DecimalSI))
	set(v1.ResourceMemory, resource.NewQuantity(n.Allocatable.Memory, resource.BinarySI))
	set(v1.ResourceEphemeralStorage, resource.NewQuantity(n.Allocatable.EphemeralStorage, resource.BinarySI))
	set(v1.ResourcePods, resource.NewQuantity(n.AllowedPods, resource.DecimalSI))
	for _, s := range n.Allocatable.Scalars {
		set(s.Name, resource.NewQuantity(s.Value, resource.DecimalSI))
	}
	node.Status.Capacity = list
	for _, c := range n.Conditions {
		node.Status.Conditions = append(node.Status.Conditions, v1.NodeCondition{Type: c.Type, Status: c.Status})
	}
	for _, image := range n.Images {
		node.Status.Images = append(node.Status.Images, v1.ContainerImage{Names: image.Names, SizeBytes: image.Bytes})
	}
	return node
}
