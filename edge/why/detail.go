package why

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/plugins/names"
	ours "github.com/berth-scheduler/berth/core/resource"
	"github.com/berth-scheduler/berth/core/sums"
	"github.com/berth-scheduler/berth/edge/fix"
	"github.com/berth-scheduler/berth/edge/terminal"
)

// detail says what a blocker of a group means on its nodes, with numbers and names.
func (f *facts) detail(b *Blocker, nodes []string) string {
	if b.text == "" { // the verdict and the list of nodes both have it
		b.text = f.newDetail(b, nodes)
	}
	return b.text
}

func (f *facts) newDetail(b *Blocker, nodes []string) string {
	switch b.Plugin {
	case names.NodeResourcesFit:
		return f.shortText(b, nodes)
	case names.TaintToleration:
		return f.taintText(nodes)
	case names.NodeUnschedulable:
		return "cordoned (spec.unschedulable)"
	case names.NodeAffinity:
		return f.affinityText(nodes)
	case names.NodePorts:
		return f.portText(nodes)
	case names.InterPodAffinity:
		return f.podAffinityText(b, nodes)
	case names.PodTopologySpread:
		return f.spreadText(b, nodes)
	case names.VolumeBinding, names.VolumeZone, names.VolumeRestrictions, names.NodeVolumeLimits:
		return strings.Join(b.Reasons, ", ") + f.claimText(b, nodes)
	case names.CapacityScheduling:
		return quotaDetail(f, b)
	case names.DynamicResources:
		return strings.Join(b.Reasons, ", ") + f.deviceText(nodes)
	}
	return b.Plugin + ": " + strings.Join(b.Reasons, ", ")
}

// shortText names the freest of the nodes for each resource that is short.
func (f *facts) shortText(b *Blocker, nodes []string) string {
	var parts []string
	t := f.cluster.Machine.Table()
	for _, name := range b.insufficient {
		row, ok := t.Find(nodes[0])
		switch {
		case name != v1.ResourcePods:
			parts = append(parts, f.shortOf(name, nodes))
		case ok:
			text := fmt.Sprintf("%s runs %d of %d pods", nodes[0], t.PodCount()[row], t.AllowedPods()[row])
			if first := f.nominated(nodes[0]); len(first) > 0 {
				text += ", and " + keys(first) + terminal.Plural(len(first), " is", " are") + " nominated to it"
			}
			parts = append(parts, text)
		}
	}
	if len(parts) == 0 { // another plugin of this name
		return strings.Join(b.Reasons, ", ")
	}
	return strings.Join(parts, "; ")
}

func (f *facts) shortOf(name v1.ResourceName, nodes []string) string {
	wants := f.pod.Demand.Requests.Of(name)
	best, free, whole := f.freest(name, nodes)
	switch {
	case whole == 0:
		return fmt.Sprintf("it requests %s, and no node here offers any", amount(name, wants)) + f.offeredInstead(name, nodes)
	case wants > f.largest(name, nodes):
		return fmt.Sprintf("it requests %s, more than any node here has (the largest has %s)", amount(name, wants), quantity(name, f.largest(name, nodes)))
	}
	of := best
	if len(nodes) > 1 {
		of = "the freest of them, " + best + ","
	}
	text := fmt.Sprintf("it requests %s; %s has %s of %s free", amount(name, wants), of, quantity(name, free), quantity(name, whole))
	text += f.resizes(name, best)
	if first := f.nominated(best); len(first) > 0 {
		text += ", as " + keys(first) + terminal.Plural(len(first), " is", " are") + " nominated to it"
	}
	return text
}

// resizes says how much of the resource deferred resizes of pods hold on the node.
func (f *facts) resizes(name v1.ResourceName, node string) string {
	var held int64
	var pods []string
	for _, p := range f.cluster.Set.Pods {
		if p.Spec.NodeName != node {
			continue
		}
		for _, r := range fix.Deferred(p) {
			if r.Resource == name {
				held += r.Wants - r.Has
				pods = append(pods, fmt.Sprintf("%s/%s (%s to %s)", p.Namespace, p.Name, quantity(name, r.Has), quantity(name, r.Wants)))
			}
		}
	}
	if len(pods) == 0 {
		return ""
	}
	return fmt.Sprintf("; %s are held by the deferred resize of %s", amount(name, held), list(pods, 2))
}

// nominated are the pods that count as placed on the node though they are not there.
func (f *facts) nominated(node string) (first []*object.Pod) {
	for _, p := range f.cluster.Machine.Nominator().NominatedTo(node) {
		if p.Priority >= f.pod.Priority && p.UID != f.pod.UID {
			first = append(first, p)
		}
	}
	return first
}

// on are the pods that count as placed on the node.
func (f *facts) on(node string) []*object.Pod {
	t := f.cluster.Machine.Table()
	pods := f.nominated(node)
	if row, ok := t.Find(node); ok {
		for _, pl := range t.Pods(row) {
			pods = append(pods, pl.Pod)
		}
	}
	return pods
}

// keys names a few pods.
func keys(pods []*object.Pod) string {
	names := make([]string, len(pods))
	for i, p := range pods {
		names[i] = p.Key()
	}
	return list(slices.Sorted(slices.Values(names)), 2)
}

// freest is the node with the most room, its room and its size.
func (f *facts) freest(name v1.ResourceName, nodes []string) (best string, free, whole int64) {
	t := f.cluster.Machine.Table()
	for _, n := range nodes {
		if row, ok := t.Find(n); ok {
			size, room := sums.Free(t, name, row)
			for _, p := range f.nominated(n) {
				room -= p.Demand.Requests.Of(name)
			}
			if best == "" || room > free || room == free && size > whole {
				best, free, whole = n, room, size
			}
		}
	}
	return best, max(0, free), whole
}

// largest is the most that a node offers, used or not.
func (f *facts) largest(name v1.ResourceName, nodes []string) (most int64) {
	t := f.cluster.Machine.Table()
	for _, n := range nodes {
		if row, ok := t.Find(n); ok {
			has, _ := sums.Free(t, name, row)
			most = max(most, has)
		}
	}
	return most
}

func quantity(name v1.ResourceName, n int64) string {
	q := ours.Quantity(name, n)
	if q.Format == resource.BinarySI {
		return binary(n)
	}
	return q.String()
}

// binary is an amount of bytes as people read it: rounded, where it is odd.
func binary(n int64) string {
	for _, u := range []struct {
		size int64
		name string
	}{{1 << 40, "Ti"}, {1 << 30, "Gi"}, {1 << 20, "Mi"}, {1 << 10, "Ki"}} {
		if n >= u.size && n%u.size == 0 {
			return fmt.Sprintf("%d%s", n/u.size, u.name)
		}
		if n >= 10*u.size {
			return fmt.Sprintf("%.1f%s", float64(n)/float64(u.size), u.name)
		}
	}
	return fmt.Sprint(n)
}

// amount is a quantity with its unit.
func amount(name v1.ResourceName, n int64) string {
	switch {
	case name == v1.ResourceCPU && n == 1000:
		return "1 CPU"
	case name == v1.ResourceCPU:
		return quantity(name, n) + " CPUs"
	}
	return quantity(name, n) + " " + string(name)
}

// portText names who has the ports.
func (f *facts) portText(nodes []string) string {
	const allAddresses = "0.0.0.0"
	holders := map[string]bool{}
	for _, name := range nodes {
		for _, p := range f.on(name) {
			for _, hp := range p.HostPorts {
				if slices.ContainsFunc(f.pod.HostPorts, func(w object.HostPort) bool {
					return w.Port == hp.Port && w.Protocol == hp.Protocol && (w.IP == hp.IP || w.IP == allAddresses || hp.IP == allAddresses)
				}) {
					holders[fmt.Sprintf("host port %d/%s is taken by %s", hp.Port, hp.Protocol, p.Key())] = true
				}
			}
		}
	}
	return list(slices.Sorted(maps.Keys(holders)), 2)
}
