package volumezone

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/plugins/names"
	"github.com/berth-scheduler/berth/core/table"
)

// reason is kube-scheduler's text for rejected nodes.
const reason = "node(s) had no available volume zone"

// elsewhere is the verdict on a node in another zone or region than a volume.
const elsewhere framework.Verdict = 1

// labels are the labels for the zone and region of volumes and nodes.
var labels = []string{v1.LabelFailureDomainBetaZone, v1.LabelFailureDomainBetaRegion, v1.LabelTopologyZone, v1.LabelTopologyRegion}

// stable is the stable label of each label: the one that replaced a beta label, else
// itself.
var stable = map[string]string{
	v1.LabelFailureDomainBetaZone:   v1.LabelTopologyZone,
	v1.LabelFailureDomainBetaRegion: v1.LabelTopologyRegion,
	v1.LabelTopologyZone:            v1.LabelTopologyZone,
	v1.LabelTopologyRegion:          v1.LabelTopologyRegion,
}

// kinds is the kinds of objects that the plugin reads.
var kinds = []object.Kind{object.PersistentVolumeClaims, object.PersistentVolumes, object.StorageClasses}

// New returns the plugin.
func New() framework.Plugin {
	return framework.Plugin{
		Name:  names.VolumeZone,
		Reads: framework.Reads{Kinds: kinds},
		EventsToRegister: []framework.ClusterEventWithHint{
			{Resource: framework.ResourceOf(object.StorageClasses), ActionType: framework.Add, QueueingHintFn: classCame},
			{Resource: framework.Node, ActionType: framework.Add | framework.UpdateNodeLabel},
			framework.OwnClaimChanged(false),
			{Resource: framework.ResourceOf(object.PersistentVolumes), ActionType: framework.Add | framework.UpdateOther, QueueingHintFn: volumeMoved},
		},
		SignPlugin: framework.SignPlugin{
			Locality:     framework.NodeOnly,
			SignRevision: func(_ *table.Table, p *object.Pod) (uint64, bool) { return 0, !p.HasPVCs(false) },
			Sign: func(key []byte, t *table.Table, p *object.Pod) []byte {
				if !p.HasPVCs(false) {
					return key
				}
				places, status := topologyPairsOf(t, p)
				if status != nil {
					return fmt.Appendf(key, "!%q", status.Reasons)
				}
				return fmt.Appendf(key, "%q", places)
			},
		},
		PreFilter: preFilter,
		FilterPlugin: framework.FilterPlugin{
			Filter: filter,
			Costly: true, // its classes are as many as the pods, and answers are not worth to be kept
			Explain: func(*framework.Input, table.Row, framework.Verdict) decision.Blocker {
				return decision.Blocker{Code: decision.UnschedulableAndUnresolvable, Reasons: []string{reason}}
			},
		},
	}
}

// topologyPair is a zone or region label that nodes must have with one of the values.
type topologyPair struct {
	label  string
	values []string
}

// preFilter skips pods whose volumes have no zone or region labels, and returns the labels of
// others as the state for Filter. It rejects a pod if the volume of a claim cannot be found.
func preFilter(t *table.Table, p *object.Pod) framework.PreFilterResult {
	places, status := topologyPairsOf(t, p)
	return framework.PreFilterResult{State: places, Status: status, Skip: status == nil && len(places) == 0}
}

// topologyPairsOf returns the zone and region labels of the volumes of the pod's claims, or a
// status that rejects the pod. It leaves out the claims of ephemeral volumes.
func topologyPairsOf(t *table.Table, p *object.Pod) (places []topologyPair, s *decision.Status) {
	for i := range p.Volumes {
		if v := &p.Volumes[i]; v.Claimed && !v.Ephemeral {
			at, s := whereIs(t, p.Namespace, v.Claim)
			if s != nil {
				return nil, s
			}
			places = append(places, at...)
		}
	}
	return places, nil
}

// whereIs returns the zone and region labels of the volume of a claim; none for a claim without a
// volume that waits for its first consumer. It returns a status that rejects the pod if the claim
// or its volume does not exist, or the claim has no volume and does not wait for a consumer.
func whereIs(t *table.Table, namespace, name string) ([]topologyPair, *decision.Status) {
	unresolvable := func(format string, args ...any) *decision.Status {
		return &decision.Status{Code: decision.UnschedulableAndUnresolvable, Reasons: []string{fmt.Sprintf(format, args...)}}
	}
	c := table.Lookup[*object.PersistentVolumeClaim](t, object.PersistentVolumeClaims, namespace, name)
	switch {
	case name == "":
		return nil, unresolvable("PersistentVolumeClaim had no name")
	case c == nil:
		return nil, unresolvable("persistentvolumeclaim %q not found", name)
	case c.VolumeName != "":
		v := table.Lookup[*object.PersistentVolume](t, object.PersistentVolumes, "", c.VolumeName)
		if v == nil {
			return nil, unresolvable("persistentvolume %q not found", c.VolumeName)
		}
		return topologyPairs(v), nil
	case c.Class == "":
		return nil, unresolvable("PersistentVolumeClaim had no pv name and storageClass name")
	}
	class := table.Lookup[*object.StorageClass](t, object.StorageClasses, "", c.Class)
	switch {
	case class == nil:
		return nil, unresolvable("storageclass.storage.k8s.io %q not found", c.Class)
	case !class.HasBindingMode:
		return nil, unresolvable("VolumeBindingMode not set for StorageClass %q", c.Class)
	case !class.WaitForFirstConsumer:
		return nil, unresolvable("PersistentVolume had no name")
	}
	return nil, nil
}

// topologyPairs returns the volume's zone and region labels. A value may list several
// zones with "__" between them; a list with an empty zone is ignored.
func topologyPairs(v *object.PersistentVolume) []topologyPair {
	var found []topologyPair
	for _, l := range labels {
		text, ok := v.Labels[l]
		if !ok {
			continue
		}
		values := strings.Split(text, "__")
		for i := range values {
			values[i] = strings.TrimSpace(values[i])
		}
		if !slices.Contains(values, "") {
			found = append(found, topologyPair{l, values})
		}
	}
	return found
}

// filter rejects the rows in another zone or region than one of the volumes. Nodes
// without any such label pass.
func filter(in *framework.Input, rows []table.Row, out []framework.Verdict) {
	places := in.State.([]topologyPair)
	for i, r := range rows {
		out[i] = framework.Fits
		if n := in.Table.Node(r); n != nil && located(n) && slices.ContainsFunc(places, func(at topologyPair) bool { return !at.has(n) }) {
			out[i] = elsewhere
		}
	}
}

// located reports whether the node has a zone or region label.
func located(n *object.Node) bool {
	return slices.ContainsFunc(labels, func(l string) bool { _, ok := n.Labels[l]; return ok })
}

// has reports whether the node has the label with one of the values. A beta label also
// counts under its stable name.
func (at *topologyPair) has(n *object.Node) bool {
	value, ok := n.Labels[at.label]
	if !ok {
		value, ok = n.Labels[stable[at.label]]
	}
	return ok && slices.Contains(at.values, value)
}

// classCame reports whether claims of the new class wait for their first consumer.
func classCame(_ *object.Pod, e *framework.Event) bool {
	return e.NewObject.(*object.StorageClass).WaitForFirstConsumer
}

// volumeMoved reports whether the volume is new, or has other zone or region labels.
func volumeMoved(_ *object.Pod, e *framework.Event) bool {
	if e.OldObject == nil {
		return true
	}
	old, now := topologyPairs(e.OldObject.(*object.PersistentVolume)), topologyPairs(e.NewObject.(*object.PersistentVolume))
	return !slices.EqualFunc(old, now, func(a, b topologyPair) bool { return a.label == b.label && slices.Equal(a.values, b.values) })
}
