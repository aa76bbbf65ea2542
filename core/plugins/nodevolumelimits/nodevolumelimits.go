package nodevolumelimits

import (
	"fmt"
	"slices"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/plugins/names"
	"github.com/berth-scheduler/berth/core/table"
)

const reason = "node(s) exceed max volume count"

const (
	full framework.Verdict = 1 + iota
	claimMissing
)

var kinds = []object.Kind{object.PersistentVolumeClaims, object.PersistentVolumes, object.StorageClasses, object.CSINodes, object.VolumeAttachments}

// New returns the plugin.
func New() framework.Plugin {
	return framework.Plugin{
		Name:     names.NodeVolumeLimits,
		Locality: framework.NodeAndPods,
		Reads:    kinds,
		PartIn: func(key []byte, t *table.Table, p *object.Pod) []byte {
			if !attaches(p) {
				return key
			}
			return fmt.Appendf(key, "%s#%d", p.VolumesKey(), t.ObjectRevision(kinds...))
		},
		Wakes:     wakes,
		PreFilter: preFilter,
		Filter:    filter,
		Explain:   explain,
	}
}

// attaches tells whether the pod has volumes that may have to be attached.
func attaches(p *object.Pod) bool {
	return slices.ContainsFunc(p.Volumes, func(v object.Volume) bool { return v.Claimed || v.Migrated != nil })
}

// missing is the first claim that is not there; "" is none.
type missing string

func preFilter(t *table.Table, p *object.Pod) framework.Prepared {
	if !attaches(p) {
		return framework.Prepared{Skip: true}
	}
	for i := range p.Volumes {
		if v := &p.Volumes[i]; v.Claimed && claim(t, p, v) == nil {
			return framework.Prepared{State: missing(v.Claim)}
		}
	}
	return framework.Prepared{State: missing("")}
}

func claim(t *table.Table, p *object.Pod, v *object.Volume) *object.PersistentVolumeClaim {
	return table.Lookup[*object.PersistentVolumeClaim](t, object.PersistentVolumeClaims, p.Namespace, v.Claim)
}

func filter(in *framework.Input, rows []table.Row, out []framework.Verdict) {
	verdict := framework.Fits
	if in.State.(missing) != "" {
		verdict = claimMissing
	}
	for i, r := range rows {
		out[i] = verdict
		if n := in.Table.Node(r); verdict == framework.Fits && n != nil && exceeds(in.Table, in.Pod, r, n.Name) {
			out[i] = full
		}
	}
}

func explain(in *framework.Input, _ table.Row, v framework.Verdict) (decision.Code, []string) {
	if v == full {
		return decision.Unschedulable, []string{reason}
	}
	name := string(in.State.(missing))
	return decision.Unresolvable, []string{fmt.Sprintf("looking up PVC %s/%s: persistentvolumeclaim %q not found", in.Pod.Namespace, name, name)}
}

// exceeds counts the node's volumes, but only where a driver has a limit.
func exceeds(t *table.Table, p *object.Pod, r table.Row, node string) bool {
	c := table.Lookup[*object.CSINode](t, object.CSINodes, "", node)
	if c == nil || !slices.ContainsFunc(c.Drivers, func(d object.CSINodeDriver) bool { return d.Limited }) {
		return false
	}
	wanted := map[object.VolumeSource]bool{}
	collect(t, p, wanted)
	if len(wanted) == 0 {
		return false
	}
	attached := map[object.VolumeSource]bool{}
	for _, pl := range t.Pods(r) {
		collect(t, pl.Pod, attached)
	}
	for v := range attached { // any order: takes what is there
		delete(wanted, v)
	}
	// v1.36 does not see that a volume which is attached without a pod to use it
	// may be a wanted one: it then counts twice.
	for o := range t.Group(object.VolumeAttachments, node) {
		a := o.(*object.VolumeAttachment)
		v := table.Lookup[*object.PersistentVolume](t, object.PersistentVolumes, "", a.Volume)
		if a.Attacher != "" && v != nil && v.Source.Driver != "" {
			attached[object.VolumeSource{Driver: a.Attacher, Handle: v.Source.Handle}] = true
		}
	}
	return slices.ContainsFunc(c.Drivers, func(d object.CSINodeDriver) bool {
		added := count(wanted, d.Name)
		return d.Limited && added > 0 && count(attached, d.Name)+added > int(d.Limit)
	})
}

func count(volumes map[object.VolumeSource]bool, driver string) (n int) {
	for v := range volumes { // any order: counts
		if v.Driver == driver {
			n++
		}
	}
	return n
}
