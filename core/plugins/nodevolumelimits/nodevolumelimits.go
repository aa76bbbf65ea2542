package nodevolumelimits

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/index/volumes"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/plugins/feature"
	"github.com/berth-scheduler/berth/core/plugins/names"
	"github.com/berth-scheduler/berth/core/sums"
	"github.com/berth-scheduler/berth/core/table"
)

// reason is kube-scheduler's text for rejected nodes.
const reason = "node(s) exceed max volume count"

const (
	full          framework.Verdict = 1 + iota // a driver cannot attach all of its volumes
	claimMissing                               // a PVC of the pod does not exist
	driverMissing                              // the node lacks a driver that it must have
)

// usual is the kinds of objects that the plugin reads, so that they must be watched. With the
// feature gate VolumeLimitScaling it also reads CSIDrivers.
var usual = []object.Kind{object.PersistentVolumeClaims, object.PersistentVolumes, object.StorageClasses, object.CSINodes, object.VolumeAttachments}

// New returns the plugin. With the gate VolumeLimitScaling, a CSIDriver may keep pods
// with its volumes off nodes without the driver.
func New(f feature.Features) framework.Plugin {
	kinds, events := usual, eventsToRegister
	if f.VolumeLimitScaling {
		kinds = append(slices.Clone(usual), object.CSIDrivers)
		events = append(slices.Clone(events), installedEvents...)
	}
	return framework.Plugin{
		Name:             names.NodeVolumeLimits,
		Reads:            framework.Reads{Kinds: kinds},
		EventsToRegister: events,
		SignPlugin: framework.SignPlugin{
			Locality:     framework.NodeAndPods,
			SignRevision: func(_ *table.Table, p *object.Pod) (uint64, bool) { return 0, !attaches(p) },
			Sign: func(key []byte, t *table.Table, p *object.Pod) []byte {
				if !attaches(p) {
					return key
				}
				return sign(key, t, p, f.VolumeLimitScaling)
			},
		},
		PreFilter: func(t *table.Table, p *object.Pod) framework.PreFilterResult {
			return preFilter(t, p, f.VolumeLimitScaling)
		},
		FilterPlugin: framework.FilterPlugin{Filter: filter, Explain: explain, Costly: true},
	}
}

// attaches reports whether the pod has volumes that may have to be attached: PVCs, or
// in-tree volumes that a CSI driver serves.
func attaches(p *object.Pod) bool {
	return slices.ContainsFunc(p.Volumes, func(v object.Volume) bool { return v.Claimed || v.Migrated != nil })
}

// podVolumes is the volumes that must be attached for the pod, whatever its node.
type podVolumes struct {
	missing string                // the first PVC that does not exist; "" for none
	volumes []object.VolumeSource // each once
	drivers []demand              // the volumes by driver
	// plainDrivers are the drivers of the volumes on nodes on which no CSI driver serves
	// in-tree volumes.
	plainDrivers []string
	// required are the drivers that a node must have (CSIDriver's
	// preventPodSchedulingIfMissing), and plainRequired those for a node without a CSINode,
	// by name. Without the gate VolumeLimitScaling there are none.
	required, plainRequired []string
}

// demand is how many volumes of the pod a driver must attach.
type demand struct {
	driver  string
	volumes int
	more    int // of these, those that count as new on every node (countsAnywhere)
}

// preFilter skips pods without volumes to attach, and returns the volumes of others as the state
// for Filter. Each volume that counts as new on every node gets a handle there that no volume has.
// With scaling (the gate VolumeLimitScaling) the state also has the drivers that a node must have.
func preFilter(t *table.Table, p *object.Pod, scaling bool) framework.PreFilterResult {
	if !attaches(p) {
		return framework.PreFilterResult{Skip: true}
	}
	w, attached := newPodVolumes(t, p), volumes.Of(t)
	for i := range w.drivers {
		attached.CountDriver(w.drivers[i].driver)
	}
	for i, v := range w.volumes {
		if w.countsAnywhere(attached, v) {
			w.volumes[i].Handle = fmt.Sprint("\x01", i) // that no volume has
			w.drivers[w.indexOf(v.Driver)].more++
		}
	}
	if scaling && w.missing == "" {
		for i := range w.drivers {
			w.required = append(w.required, w.drivers[i].driver)
		}
		w.required, w.plainRequired = preventing(t, w.required), preventing(t, w.plainDrivers)
	}
	return framework.PreFilterResult{State: w}
}

// preventing returns those of the drivers whose CSIDriver keeps pods off nodes without the driver,
// sorted by name.
func preventing(t *table.Table, drivers []string) (list []string) {
	for _, driver := range drivers {
		if d := table.Lookup[*object.CSIDriver](t, object.CSIDrivers, "", driver); d != nil && d.PreventIfMissing {
			list = append(list, driver)
		}
	}
	slices.Sort(list)
	return list
}

// newPodVolumes returns the pod's volumes by driver, or just the name of a PVC that
// does not exist.
func newPodVolumes(t *table.Table, p *object.Pod) *podVolumes {
	w := &podVolumes{}
	for i := range p.Volumes {
		v := &p.Volumes[i]
		if !v.Claimed {
			continue
		}
		c := table.Lookup[*object.PersistentVolumeClaim](t, object.PersistentVolumeClaims, p.Namespace, v.Claim)
		if c == nil {
			return &podVolumes{missing: v.Claim}
		}
		if driver := plainDriver(t, c); driver != "" && (!v.Ephemeral || c.Owner == p.UID) && !slices.Contains(w.plainDrivers, driver) {
			w.plainDrivers = append(w.plainDrivers, driver)
		}
	}
	w.volumes = volumes.Of(t).OfPod(p)
	for _, v := range w.volumes {
		if i := w.indexOf(v.Driver); i >= 0 {
			w.drivers[i].volumes++
		} else {
			w.drivers = append(w.drivers, demand{driver: v.Driver, volumes: 1})
		}
	}
	return w
}

// plainDriver returns the CSI driver of the claim's volume, or of its class, on nodes
// on which no CSI driver serves in-tree volumes; "" for none.
func plainDriver(t *table.Table, c *object.PersistentVolumeClaim) string {
	v := table.Lookup[*object.PersistentVolume](t, object.PersistentVolumes, "", c.VolumeName)
	if c.VolumeName != "" && v != nil {
		if !v.Source.Attachable() {
			return ""
		}
		return v.Source.Driver
	}
	class := table.Lookup[*object.StorageClass](t, object.StorageClasses, "", c.Class)
	if c.Class == "" || class == nil || class.MigratedTo != "" {
		return ""
	}
	return class.Provisioner
}

// filter rejects the rows on which a driver would have to attach more volumes than it can, those
// that lack a driver that is required, and every row if a PVC of the pod does not exist. A row that
// lacks a driver gets that verdict even if another driver has too many volumes.
func filter(in *framework.Input, rows []table.Row, out []framework.Verdict) {
	w := in.State.(*podVolumes)
	verdict := framework.Fits
	if w.missing != "" {
		verdict = claimMissing
	}
	for i := range out {
		out[i] = verdict
	}
	for k := range w.drivers {
		w.filterDriver(volumes.Of(in.Table), &w.drivers[k], rows, out)
	}
	if len(w.required)+len(w.plainRequired) == 0 {
		return
	}
	for i, r := range rows {
		if w.absent(in.Table, r) != "" {
			out[i] = driverMissing
		}
	}
}

// filterDriver rejects the rows on which the driver of d would have to attach more
// volumes than it can.
func (w *podVolumes) filterDriver(attached *volumes.Index, d *demand, rows []table.Row, out []framework.Verdict) {
	c := attached.DriverColumns(d.driver)
	for i, r := range rows {
		switch {
		case c != nil && enough(d.volumes, int(c.Attached[r]), c.Limits[r]):
		case c != nil && d.more > 0 && !enough(d.more, int(c.Attached[r]), c.Limits[r]), w.exceeds(attached, r, d):
			out[i] = full
		}
	}
}

// absent returns the first required driver, by name, that the node lacks; "" for none. A node
// without a CSINode lacks all, but no driver is required there for in-tree volumes.
func (w *podVolumes) absent(t *table.Table, r table.Row) string {
	c := volumes.Of(t).CSINode(r)
	if c == nil {
		return cmp.Or(w.plainRequired...)
	}
	if i := slices.IndexFunc(w.required, func(driver string) bool { return !c.Has(driver) }); i >= 0 {
		return w.required[i]
	}
	return ""
}

// explain returns the code and reason of a verdict.
func explain(in *framework.Input, r table.Row, v framework.Verdict) decision.Blocker {
	switch v {
	case full:
		return decision.Blocker{Code: decision.Unschedulable, Reasons: []string{reason}}
	case driverMissing:
		return decision.Blocker{Code: decision.Unschedulable, Reasons: []string{in.State.(*podVolumes).absent(in.Table, r) + " CSI driver is not installed on the node"}}
	}
	name := in.State.(*podVolumes).missing
	return decision.Blocker{Code: decision.UnschedulableAndUnresolvable, Reasons: []string{fmt.Sprintf("looking up PVC %s/%s: persistentvolumeclaim %q not found", in.Pod.Namespace, name, name)}}
}

// enough reports whether the limit of a driver on a node lets it attach that many volumes beside
// those that it has attached there.
func enough(volumes, attached int, limit int32) bool {
	return sums.Compare(int64(volumes), int64(limit), int64(attached)) == sums.Fits
}

// exceeds reports whether the driver of wanted would have to attach more volumes to the row's node
// than it can. Volumes that a pod on the row has need not be attached again. Like kube-scheduler it
// counts a volume twice that the pod wants and that is attached without a pod using it. Without a
// CSINode there is no limit.
func (w *podVolumes) exceeds(attached *volumes.Index, r table.Row, wanted *demand) bool {
	c := attached.CSINode(r)
	if c == nil {
		return false
	}
	has := attached.Attached(r, wanted.driver)
	for i := range c.Drivers {
		d := &c.Drivers[i]
		if d.Name != wanted.driver || !d.Limited || enough(wanted.volumes, has, d.Limit) {
			continue
		}
		if more := w.lacking(attached, r, d.Name); more > 0 && !enough(more, has, d.Limit) {
			return true
		}
	}
	return false
}

// lacking returns how many of the pod's volumes of the driver no pod on the row has.
func (w *podVolumes) lacking(attached *volumes.Index, r table.Row, driver string) (n int) {
	for _, v := range w.volumes {
		if v.Driver == driver && !attached.PodsHave(r, v) {
			n++
		}
	}
	return n
}

// of returns how many volumes of the pod the driver must attach.
func (w *podVolumes) of(driver string) int {
	if i := w.indexOf(driver); i >= 0 {
		return w.drivers[i].volumes
	}
	return 0
}

// indexOf returns the driver's index in drivers; -1 if the pod has no volume of it.
func (w *podVolumes) indexOf(driver string) int {
	return slices.IndexFunc(w.drivers, func(d demand) bool { return d.driver == driver })
}
