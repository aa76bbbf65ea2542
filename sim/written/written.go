package written

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/edge/config"
	"github.com/berth-scheduler/berth/edge/decode"
	"github.com/berth-scheduler/berth/edge/fix"
	"github.com/berth-scheduler/berth/edge/manifest"
	"github.com/berth-scheduler/berth/edge/why"
	"github.com/berth-scheduler/berth/sim"
	"github.com/berth-scheduler/berth/sim/generate"
)

// Cluster is a cluster as files hold it: objects by kind and name, in JSON.
type Cluster struct {
	keys    []string
	objects map[string][]byte
	world   generate.World
	options machine.Options
}

// New writes the cluster down.
func New(w generate.World) (*Cluster, error) {
	all := &Cluster{objects: map[string][]byte{}, world: w}
	var failed error
	add := func(o metav1.Object) {
		kinds, _, err := scheme.Scheme.ObjectKinds(o.(runtime.Object))
		if err != nil {
			failed = err
			return
		}
		o.(runtime.Object).GetObjectKind().SetGroupVersionKind(kinds[0])
		data, err := json.Marshal(o)
		if err != nil {
			failed = err
			return
		}
		all.set(kinds[0].Kind, o.GetNamespace(), o.GetName(), data)
	}
	for _, o := range w.Nodes {
		add(o)
	}
	for _, list := range [][]*v1.Pod{w.Bound, w.Pending} {
		for _, o := range list {
			add(o)
		}
	}
	for _, o := range w.Budgets {
		add(o)
	}
	for _, o := range w.Namespaces {
		add(o)
	}
	for _, list := range [][]metav1.Object{w.SelectorOwners, w.Objects} {
		for _, o := range list {
			add(o)
		}
	}
	c := config.Default()
	if w.Config != "" {
		var err error
		if c, err = config.Decode([]byte(w.Config), w.Mix); err != nil {
			return nil, err
		}
	}
	options, err := sim.Options(c)
	all.options, all.options.Seed = options, w.Seed
	return all, errors.Join(failed, err)
}

func (w *Cluster) set(kind, namespace, name string, data []byte) {
	key := kind + " " + namespace + "/" + name
	if w.objects[key] == nil {
		w.keys = append(w.keys, key)
	}
	w.objects[key] = data
}

// Load reads the cluster as a command does.
func (w *Cluster) Load() (*why.Cluster, error) {
	var b bytes.Buffer
	for _, key := range w.keys {
		if data := w.objects[key]; data != nil {
			b.Write(data)
			b.WriteByte('\n')
		}
	}
	set := manifest.NewSet()
	set.KeepWritten = true
	if err := set.Files([]string{"-"}, &b, 1); err != nil {
		return nil, err
	}
	if err := set.Resolve(); err != nil {
		return nil, err
	}
	in := sim.Input{Start: set.Newest, Namespaces: set.Namespaces, SelectorOwners: set.SelectorOwners, Objects: set.Objects, Machine: w.options}
	for _, n := range set.Nodes {
		in.Nodes = append(in.Nodes, decode.Node(n))
	}
	for _, p := range set.Pods {
		in.Pods = append(in.Pods, decode.Pod(p))
	}
	for _, o := range set.Budgets {
		in.Budgets = append(in.Budgets, decode.Budget(o))
	}
	world, err := sim.Load(in)
	if err != nil {
		return nil, err
	}
	return &why.Cluster{Machine: world.Machine, Set: set}, nil
}

// With is the cluster after the changes; an error where they are not possible.
func (w *Cluster) With(changes []fix.Change) (*Cluster, error) {
	after := &Cluster{keys: slices.Clone(w.keys), objects: map[string][]byte{}, options: w.options, world: w.world}
	for k, v := range w.objects {
		after.objects[k] = v
	}
	for _, c := range changes {
		key := c.Kind + " " + c.Namespace + "/" + c.Name
		switch {
		case c.Delete:
			after.objects[key] = nil
		case c.Create != nil:
			data, err := json.Marshal(c.Create)
			if err != nil {
				return nil, err
			}
			after.set(c.Kind, c.Namespace, c.Name, data)
			if like, is := strings.CutSuffix(c.Name, "-copy"); is && c.Kind == "Node" {
				if err := after.installDrivers(c.Name, like); err != nil {
					return nil, err
				}
			}
		default:
			text, err := json.Marshal(c.Patch)
			if err != nil {
				return nil, err
			}
			patch, err := jsonpatch.DecodePatch(text)
			if err != nil {
				return nil, err
			}
			data, err := patch.Apply(after.objects[key])
			if err != nil {
				return nil, err
			}
			after.objects[key] = data
		}
	}
	return after, nil
}

// installDrivers gives the node the CSINode of the node that it is like, as its kubelet does.
func (w *Cluster) installDrivers(node, like string) error {
	data := w.objects["CSINode /"+like]
	if data == nil {
		return nil
	}
	data, err := jsonpatch.MergePatch(data, fmt.Appendf(nil, `{"metadata":{"name":%q,"uid":null}}`, node))
	if err == nil {
		w.set("CSINode", "", node, data)
	}
	return err
}

// World is the cluster as its generator would have it, its pods with the API
// server's defaults.
func (w *Cluster) World(c *why.Cluster) (generate.World, error) {
	out := w.world
	out.Nodes, out.Budgets = c.Set.Nodes, c.Set.Budgets
	out.Bound, out.Pending, out.Changes, out.Namespaces, out.SelectorOwners, out.Objects = nil, nil, nil, nil, nil, nil
	for _, p := range c.Set.Pods {
		if p.Spec.NodeName != "" {
			out.Bound = append(out.Bound, p)
		} else {
			out.Pending = append(out.Pending, p)
		}
	}
	for _, key := range w.keys {
		if w.objects[key] == nil {
			continue
		}
		o, _, err := scheme.Codecs.UniversalDeserializer().Decode(w.objects[key], nil, nil)
		if err != nil {
			return out, err
		}
		switch o := o.(type) {
		case *v1.Node, *v1.Pod, *policyv1.PodDisruptionBudget:
		case *v1.Namespace:
			out.Namespaces = append(out.Namespaces, o)
		case *v1.Service, *v1.ReplicationController, *appsv1.ReplicaSet, *appsv1.StatefulSet:
			out.SelectorOwners = append(out.SelectorOwners, o.(metav1.Object))
		default:
			out.Objects = append(out.Objects, o.(metav1.Object))
		}
	}
	return out, nil
}
