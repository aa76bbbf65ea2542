package whatif

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/edge/decode"
	"github.com/berth-scheduler/berth/edge/workload"
)

// maxAdded is the most nodes that a change adds.
const maxAdded = 100_000

// shape is a node of which more are added.
type shape struct {
	node *v1.Node
	like string // the node that it was taken from, "" for none
}

// addNodes adds a number of empty nodes of a shape, with the pods that
// DaemonSets run there.
func (s *session) addNodes(c *Change) error {
	if len(c.Operands) != 2 {
		return errors.New("wants a number and a shape, such as: 3 node-1, or 3 cpu=8,memory=32Gi,zone=b")
	}
	number, text := c.Operands[0], c.Operands[1]
	n, err := strconv.Atoi(number)
	if err != nil {
		if n, err = strconv.Atoi(text); err == nil {
			text = number
		}
	}
	if err != nil || n < 1 || n > maxAdded {
		return fmt.Errorf("%q is no number of nodes from 1 to %d", number, maxAdded)
	}
	of, err := s.shape(text)
	if err != nil {
		return err
	}
	return s.add(of, n)
}

// shape reads NODE or ATTRIBUTE=VALUE,...: like, name, zone, label:KEY,
// taint and resources.
func (s *session) shape(text string) (shape, error) {
	of := shape{node: &v1.Node{}}
	of.node.Name = "new"
	of.node.Status.Allocatable = v1.ResourceList{v1.ResourcePods: resource.MustParse("110")}
	for i, part := range strings.Split(text, ",") {
		key, value, ok := strings.Cut(part, "=")
		if !ok {
			key, value = "like", part
		}
		if key == "like" && i > 0 {
			return of, fmt.Errorf("%s: comes first in a shape", part)
		}
		var err error
		if key == "like" {
			of, err = s.likeNode(value)
		} else {
			err = of.set(key, value)
		}
		if err != nil {
			return of, err
		}
	}
	return of, nil
}

// likeNode is the shape of a node that is there.
func (s *session) likeNode(name string) (shape, error) {
	nodes, err := s.named([]string{"node/" + strings.TrimPrefix(name, "node/")})
	if err != nil {
		return shape{}, err
	}
	n := nodes[0].DeepCopy()
	n.ObjectMeta = metav1.ObjectMeta{Name: n.Name, Labels: n.Labels, Annotations: n.Annotations}
	return shape{workload.NewNode(n, n.Name+"-copy"), n.Name}, nil
}

func (of *shape) set(key, value string) error {
	label := ""
	switch {
	case key == "name":
		of.node.Name = value
	case key == "zone":
		label = v1.LabelTopologyZone
	case strings.HasPrefix(key, "label:"):
		if label = strings.TrimPrefix(key, "label:"); label == "" {
			return fmt.Errorf("%s=%s: the label has no key: want label:KEY=VALUE", key, value)
		}
	case key == "taint":
		rest, effect, _ := strings.Cut(value, ":")
		taint := v1.Taint{Effect: v1.TaintEffect(effect)}
		taint.Key, taint.Value, _ = strings.Cut(rest, "=")
		of.node.Spec.Taints = append(of.node.Spec.Taints, taint)
	case slices.Contains([]string{"cpu", "memory", "pods", "ephemeral-storage"}, key) || strings.HasPrefix(key, "hugepages-") || strings.Contains(key, "/"):
		q, err := resource.ParseQuantity(value)
		if err != nil {
			return fmt.Errorf("%s=%s: is not a quantity, such as 500m, 2 or 1Gi", key, value)
		}
		of.node.Status.Allocatable[v1.ResourceName(key)] = q
	default:
		return fmt.Errorf("%s: is no attribute of a node: like=NODE, name, zone, cpu, memory, pods, ephemeral-storage, DOMAIN/RESOURCE, label:KEY or taint", key)
	}
	if label != "" {
		metav1.SetMetaDataLabel(&of.node.ObjectMeta, label, value)
	}
	return nil
}

// add adds nodes of the shape.
func (s *session) add(of shape, number int) error {
	var added []*v1.Node
	for i := 1; len(added) < number; i++ {
		name := fmt.Sprintf("%s-%d", of.node.Name, i)
		if s.nodes[name] != nil {
			continue
		}
		n := of.node.DeepCopy()
		if of.like != "" {
			n = workload.NewNode(n, name)
			n.Spec.Taints = of.node.Spec.Taints // which may have been asked for
		}
		n.Name = name
		metav1.SetMetaDataLabel(&n.ObjectMeta, v1.LabelHostname, name)
		if err := s.set.Add(n, "v1/Node", "the new node"); err != nil {
			return err
		}
		s.nodes[name] = n
		s.cluster.SetNode(s.set.DecodeNode(n))
		if of.like != "" {
			s.copyParts(of.like, name)
		}
		added = append(added, n)
	}
	if err := s.runDaemons(of.like, added); err != nil || of.like == "" {
		return err
	}
	return s.runStatic(of.like, added)
}

// copyParts gives the new node the drivers and the devices of the other.
func (s *session) copyParts(from, to string) {
	if drivers, ok := s.cluster.Object(object.CSINodes, "", from).(*object.CSINode); ok {
		s.cluster.SetObject(drivers.ForNode(to))
	}
	for _, o := range s.set.Objects {
		slice, ok := o.(*object.ResourceSlice)
		if !ok || slice.API.Spec.NodeName == nil || *slice.API.Spec.NodeName != from {
			continue
		}
		api := slice.API.DeepCopy()
		api.Name, api.UID = api.Name+"-"+to, ""
		api.Spec.NodeName, api.Spec.Pool.Name = &to, api.Spec.Pool.Name+"-"+to
		s.cluster.SetObject(decode.Object(api))
	}
}

// runDaemons makes the pods that DaemonSets run on the new nodes: of DaemonSets
// in the input, and else copies of those on the node that the shape is from.
func (s *session) runDaemons(like string, added []*v1.Node) error {
	known := map[string]bool{}
	for _, o := range s.set.Workloads {
		w, ok := workload.Of(o)
		if !ok || w.Kind != "DaemonSet" {
			continue
		}
		known[w.Namespace+"/"+w.Name] = true
		if _, err := s.make(w, s.owned(w)); err != nil {
			return err
		}
	}
	if like == "" {
		return nil
	}
	for _, p := range s.byNode()[like] {
		api := s.pods[p.Key()]
		kind, name := workload.OfPod(api)
		if kind != "DaemonSet" || known[api.Namespace+"/"+name] {
			continue
		}
		for _, n := range added {
			if err := s.adopt(workload.OnNode(api, n.Name)); err != nil {
				return err
			}
		}
	}
	return nil
}

// runStatic makes the static pods of the new nodes: those that all nodes of the pool have.
func (s *session) runStatic(like string, added []*v1.Node) error {
	on := s.byNode()
	has := func(node, static string) bool {
		return slices.ContainsFunc(on[node], func(p *object.Pod) bool {
			return p.Controller.Replacement == object.SameNode && p.Namespace+"/"+workload.StaticName(p.Name, node) == static
		})
	}
	key := workload.PoolKey(s.nodes[like])
	var pool []string
	for name, n := range s.nodes { // any order: all or not all
		if workload.PoolKey(n) == key && !slices.Contains(added, n) {
			pool = append(pool, name)
		}
	}
	for _, p := range on[like] {
		name := workload.StaticName(p.Name, like)
		if name == "" || p.Controller.Replacement != object.SameNode || slices.ContainsFunc(pool, func(node string) bool { return !has(node, p.Namespace+"/"+name) }) {
			continue
		}
		for _, n := range added {
			if err := s.adopt(workload.OnNode(s.pods[p.Key()], n.Name)); err != nil {
				return err
			}
		}
	}
	return nil
}

// owned lists the pods in the cluster that are the workload's.
func (s *session) owned(w *workload.Workload) (pods []*v1.Pod) {
	for _, key := range slices.Sorted(maps.Keys(s.pods)) {
		if s.cluster.Pod(key) != nil && w.Owns(s.pods[key]) {
			pods = append(pods, s.pods[key])
		}
	}
	return pods
}
