package nodevolumelimits

import (
	"fmt"
	"maps"
	"slices"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/plugins/feature"
	"github.com/berth-scheduler/berth/core/plugins/names"
	"github.com/berth-scheduler/berth/core/table"
)

const reason = "node(s) exceed max volume count"

const (
	full framework.Verdict = 1 + iota
	claimMissing
	driverMissing
)

var usual = []object.Kind{object.PersistentVolumeClaims, object.PersistentVolumes, object.StorageClasses, object.CSINodes, object.VolumeAttachments}

// New returns the plugin. With the gate VolumeLimitScaling, drivers may
// ask that pods with their volumes stay off nodes without them.
func New(f feature.Features) framework.Plugin {
	kinds, events, filter := usual, eventsToRegister, filter
	if f.VolumeLimitScaling {
		kinds = append(slices.Clone(usual), object.CSIDrivers)
		events = append(slices.Clone(events), installedEvents...)
		filter = filterInstalled
	}
	return framework.Plugin{
		Name:             names.NodeVolumeLimits,
		Reads:            kinds,
		EventsToRegister: events,
		SignPlugin: framework.SignPlugin{
			Locality:     framework.NodeAndPods,
			SignRevision: func(_ *table.Table, p *object.Pod) (uint64, bool) { return 0, !attaches(p) },
			Sign: func(key []byte, t *table.Table, p *object.Pod) []byte {
				if !attaches(p) {
					return key
				}
				return sign(key, t, p, t.ObjectRevision(kinds...))
			},
		},
		PreFilter:    preFilter,
		FilterPlugin: framework.FilterPlugin{Filter: filter, Explain: explain},
	}
}

// attaches tells whether the pod has volumes that may have to be attached.
func attaches(p *object.Pod) bool {
	return slices.ContainsFunc(p.Volumes, func(v object.Volume) bool { return v.Claimed || v.Migrated != nil })
}

// wants is what the pod has attached wherever it goes.
type podVolumes struct {
	missing string // the first claim that is not there; "" is none
	volumes map[object.VolumeSource]bool
	drivers []demand
}

// demand is how many volumes a driver is to attach.
type demand struct {
	driver  string
	volumes int
}

func preFilter(t *table.Table, p *object.Pod) framework.PreFilterResult {
	if !attaches(p) {
		return framework.PreFilterResult{Skip: true}
	}
	for i := range p.Volumes {
		if v := &p.Volumes[i]; v.Claimed && claim(t, p, v) == nil {
			return framework.PreFilterResult{State: &podVolumes{missing: v.Claim}}
		}
	}
	w := &podVolumes{volumes: map[object.VolumeSource]bool{}}
	if volumes, known := volumesOf(t, p); known {
		addAll(volumes, w.volumes)
	} else {
		collect(t, p, true, w.volumes)
	}
	for v := range w.volumes { // any order: each driver is asked for itself
		if !slices.ContainsFunc(w.drivers, func(d demand) bool { return d.driver == v.Driver }) {
			w.drivers = append(w.drivers, demand{v.Driver, count(w.volumes, v.Driver)})
		}
	}
	return framework.PreFilterResult{State: w}
}

func claim(t *table.Table, p *object.Pod, v *object.Volume) *object.PersistentVolumeClaim {
	return table.Lookup[*object.PersistentVolumeClaim](t, object.PersistentVolumeClaims, p.Namespace, v.Claim)
}

func filter(in *framework.Input, rows []table.Row, out []framework.Verdict) {
	w := in.State.(*podVolumes)
	verdict := framework.Fits
	if w.missing != "" {
		verdict = claimMissing
	}
	for i, r := range rows {
		out[i] = verdict
		if len(w.drivers) == 0 {
			continue
		}
		if n := in.Table.Node(r); n != nil && w.exceed(in.Table, r, n.Name) {
			out[i] = full
		}
	}
}

// filterInstalled is filter where drivers count that a node lacks.
func filterInstalled(in *framework.Input, rows []table.Row, out []framework.Verdict) {
	filter(in, rows, out)
	if in.State.(*podVolumes).missing != "" {
		return
	}
	for i, r := range rows {
		if n := in.Table.Node(r); n != nil && absent(in.Table, in.Pod, n.Name) != "" {
			out[i] = driverMissing
		}
	}
}

// absent is the first driver, by name, that the pod's volumes need, that wants
// pods to stay off nodes without it, and that the node lacks; "" if there is
// none. Without a CSINode no in-tree volume is a driver's.
func absent(t *table.Table, p *object.Pod, node string) string {
	wanted := map[object.VolumeSource]bool{}
	c := table.Lookup[*object.CSINode](t, object.CSINodes, "", node)
	collect(t, p, c != nil, wanted)
	var first string
	for v := range wanted { // any order: takes the first by name
		d := table.Lookup[*object.CSIDriver](t, object.CSIDrivers, "", v.Driver)
		if d == nil || !d.PreventIfMissing || c != nil && c.Has(v.Driver) {
			continue
		}
		if first == "" || v.Driver < first {
			first = v.Driver
		}
	}
	return first
}

func explain(in *framework.Input, r table.Row, v framework.Verdict) (decision.Code, []string) {
	switch v {
	case full:
		return decision.Unschedulable, []string{reason}
	case driverMissing:
		return decision.Unschedulable, []string{absent(in.Table, in.Pod, in.Table.Name(r)) + " CSI driver is not installed on the node"}
	}
	name := in.State.(*podVolumes).missing
	return decision.UnschedulableAndUnresolvable, []string{fmt.Sprintf("looking up PVC %s/%s: persistentvolumeclaim %q not found", in.Pod.Namespace, name, name)}
}

// exceed counts the node's volumes, but only where a driver has a limit that
// they might come to.
func (w *podVolumes) exceed(t *table.Table, r table.Row, node string) bool {
	c := table.Lookup[*object.CSINode](t, object.CSINodes, "", node)
	if c == nil || !slices.ContainsFunc(c.Drivers, func(d object.CSINodeDriver) bool { return d.Limited && w.of(d.Name) > 0 }) {
		return false
	}
	most := atMost(t, r, node)
	if !slices.ContainsFunc(c.Drivers, func(d object.CSINodeDriver) bool {
		return d.Limited && w.of(d.Name) > 0 && most+w.of(d.Name) > int(d.Limit)
	}) {
		return false
	}
	attached := map[object.VolumeSource]bool{}
	for _, pl := range t.Pods(r) {
		collect(t, pl.Pod, true, attached)
	}
	added := maps.Clone(w.volumes)
	for v := range attached { // any order: takes what is there
		delete(added, v)
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
		n := count(added, d.Name)
		return d.Limited && n > 0 && count(attached, d.Name)+n > int(d.Limit)
	})
}

// of is how many volumes the driver is to attach.
func (w *podVolumes) of(driver string) int {
	for i := range w.drivers {
		if w.drivers[i].driver == driver {
			return w.drivers[i].volumes
		}
	}
	return 0
}

// atMost is a bound, found without looking at what is behind a claim, on how
// many volumes any driver has attached to the node.
func atMost(t *table.Table, r table.Row, node string) (n int) {
	for _, pl := range t.Pods(r) {
		n += len(pl.Pod.Volumes)
	}
	for range t.Group(object.VolumeAttachments, node) {
		n++
	}
	return n
}

func count(volumes map[object.VolumeSource]bool, driver string) (n int) {
	for v := range volumes { // any order: counts
		if v.Driver == driver {
			n++
		}
	}
	return n
}
