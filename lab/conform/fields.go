package conform

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-scheduler/berth/edge/decode"
	"github.com/berth-scheduler/berth/sim/generate"
)

// kept are the fields without which an object is none; what is inside them may
// go.
var kept = map[string]bool{"apiVersion": true, "kind": true, "metadata": true, "name": true, "uid": true,
	"namespace": true, "creationTimestamp": true, "resourceVersion": true, "spec": true, "status": true, "nodeName": true,
	"schedulerName": true, "priority": true, "preemptionPolicy": true, "startTime": true,
	"containers": true, "operator": true, "key": true, "effect": true,
	"cel": true, "generation": true, "resourceSliceCount": true, "expression": true, "driver": true, "pool": true, "deviceClassName": true, "allocationMode": true,
	"maxSkew": true, "topologyKey": true, "whenUnsatisfiable": true}

// objects lists the API objects of a world, always in the same order: nodes,
// bound pods, pending pods, those of the changes, what else there is.
func objects(w generate.World) []any {
	var all []any
	for _, n := range w.Nodes {
		all = append(all, n)
	}
	for _, p := range slices.Concat(w.Bound, w.Pending) {
		all = append(all, p)
	}
	for _, c := range w.Changes {
		all = append(all, c.Object())
	}
	for _, o := range w.Objects {
		all = append(all, o)
	}
	return all
}

// stored tells whether the object has all defaults that an API server would
// give it, as far as a scheduler sees them. Others it never gets to see, and no
// story can hold them.
func stored(o any) bool {
	switch o := o.(type) {
	case *v1.Node:
		full := o.DeepCopy()
		decode.DefaultNode(full)
		return reflect.DeepEqual(decode.Node(full), decode.Node(o))
	case *v1.Pod:
		full := o.DeepCopy()
		decode.DefaultPod(full)
		return reflect.DeepEqual(decode.Pod(full), decode.Pod(o))
	}
	return true
}

// replaced is the world with another object in the place of the i-th.
func replaced(w generate.World, i int, object any) generate.World {
	if i < len(w.Nodes) {
		w.Nodes = slices.Clone(w.Nodes)
		w.Nodes[i] = object.(*v1.Node)
		return w
	}
	i -= len(w.Nodes)
	for _, pods := range []*[]*v1.Pod{&w.Bound, &w.Pending} {
		if i < len(*pods) {
			*pods = slices.Clone(*pods)
			(*pods)[i] = object.(*v1.Pod)
			return w
		}
		i -= len(*pods)
	}
	if at := i - len(w.Changes); at >= 0 {
		w.Objects = slices.Clone(w.Objects)
		w.Objects[at] = object.(metav1.Object)
		return w
	}
	w.Changes = slices.Clone(w.Changes)
	switch {
	case w.Changes[i].Node != nil:
		w.Changes[i].Node = object.(*v1.Node)
	case w.Changes[i].Namespace != nil:
		w.Changes[i].Namespace = object.(*v1.Namespace)
	case w.Changes[i].Other != nil:
		w.Changes[i].Other = object.(metav1.Object)
	default:
		w.Changes[i].Pod = object.(*v1.Pod)
	}
	return w
}

// without is the world with one field or list entry of the i-th object taken
// out; not ok when there is no such field. Of a pod it goes wherever the pod
// stands: most of a pod can never change.
func without(w generate.World, i int, path []any) (generate.World, bool) {
	all := objects(w)
	pod, isPod := all[i].(*v1.Pod)
	if !isPod {
		smaller, ok := trimmed(all[i], reflect.New(reflect.TypeOf(all[i]).Elem()).Interface(), path)
		return replaced(w, i, smaller), ok
	}
	found := false
	for j, object := range all {
		if same, ok := object.(*v1.Pod); ok && same.UID == pod.UID {
			if smaller, ok := trimmed(object, &v1.Pod{}, path); ok {
				w, found = replaced(w, j, smaller), true
			}
		}
	}
	return w, found
}

// trimmed decodes an object without one field into another of its type; not ok
// when there is no such field.
func trimmed(object, into any, path []any) (smaller any, ok bool) {
	t, ok := remove(tree(object), path)
	if !ok {
		return object, false
	}
	raw, err := json.Marshal(t)
	if err != nil || json.Unmarshal(raw, into) != nil {
		return object, false
	}
	return into, true
}

// tree is an object as plain maps, lists and values.
func tree(object any) any {
	raw, err := json.Marshal(object)
	if err != nil {
		panic("an API object is JSON: " + err.Error())
	}
	var t any
	if err := json.Unmarshal(raw, &t); err != nil {
		panic("JSON is JSON: " + err.Error())
	}
	return t
}

// paths lists the fields and list entries of a tree, outer ones first, list
// entries from the end.
func paths(t any, prefix []any) [][]any {
	var all [][]any
	below := func(step, inner any, removable bool) {
		path := append(slices.Clone(prefix), step)
		if removable {
			all = append(all, path)
		}
		all = append(all, paths(inner, path)...)
	}
	switch t := t.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(t)) {
			below(key, t[key], !kept[key])
		}
	case []any:
		for i := len(t) - 1; i >= 0; i-- {
			below(i, t[i], i > 0 || !slices.Equal(prefix, []any{"spec", "containers"}))
		}
	}
	return all
}

// remove takes the field or entry at a path out of a tree and returns the
// tree; not ok when the path leads nowhere.
func remove(t any, path []any) (any, bool) {
	switch t := t.(type) {
	case map[string]any:
		key, _ := path[0].(string)
		inner, there := t[key]
		if !there {
			return t, false
		}
		if len(path) == 1 {
			delete(t, key)
			return t, true
		}
		var ok bool
		t[key], ok = remove(inner, path[1:])
		return t, ok
	case []any:
		i, isIndex := path[0].(int)
		if !isIndex || i >= len(t) {
			return t, false
		}
		if len(path) == 1 {
			return slices.Delete(t, i, i+1), true
		}
		var ok bool
		t[i], ok = remove(t[i], path[1:])
		return t, ok
	}
	return t, false
}
