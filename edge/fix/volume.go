package fix

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/resource"
	"github.com/berth-scheduler/berth/core/table"
)

const selectedNode = "volume.kubernetes.io/selected-node"

// unbound are the pod's claims that have no volume.
func (s *search) unbound() (claims []*object.PersistentVolumeClaim) {
	for i := range s.pod.Volumes {
		c := table.Lookup[*object.PersistentVolumeClaim](s.table, object.PersistentVolumeClaims, s.pod.Namespace, s.pod.Volumes[i].Claim)
		if s.pod.Volumes[i].Claimed && c != nil && c.VolumeName == "" {
			claims = append(claims, c)
		}
	}
	return claims
}

// claims tries what keeps the pod's unbound claims from a volume: the node on which it was
// to be made, where its class allows it, and volumes that nearly suit it.
func (s *search) claims() {
	var away []edit
	for _, c := range s.unbound() {
		if c.SelectedNode != "" {
			away = append(away, s.unselectNode(c))
		}
		for _, e := range slices.Concat(s.topologies(c), s.nearVolumes(c)) {
			s.consider(join(s.base, []edit{e}))
		}
	}
	if len(away) > 0 {
		s.consider(join(s.base, away))
	}
}

func claimTarget(c *object.PersistentVolumeClaim) target {
	return target{"v1", "PersistentVolumeClaim", c.Namespace, c.Name}
}

// unselectNode has the claim's volume be made wherever the pod goes.
func (s *search) unselectNode(c *object.PersistentVolumeClaim) edit {
	e := edit{kind: changeClaim, target: claimTarget(c), say: fmt.Sprintf("have the volume of claim %s made elsewhere than on node %s", c.Name, c.SelectedNode),
		ops: []Op{{Op: "remove", Path: "/metadata/annotations/" + escape(selectedNode)}}}
	if s.nodes[c.SelectedNode] == nil {
		e.say += ", which is gone"
		e.stage = undoes
	}
	return e
}

// topologies returns edits of the claim's class that allow what nodes are labelled with, or
// everything, and of a node that lacks the label the class asks for and has another one that says
// the same.
func (s *search) topologies(c *object.PersistentVolumeClaim) (edits []edit) {
	class := table.Lookup[*object.StorageClass](s.table, object.StorageClasses, "", c.Class)
	if class == nil || len(class.Topologies) == 0 {
		return nil
	}
	of := target{"storage.k8s.io/v1", "StorageClass", "", class.Name}
	for i, term := range class.Topologies[:min(mostMeant, len(class.Topologies))] {
		for j, e := range term.MatchLabelExpressions[:min(mostMeant, len(term.MatchLabelExpressions))] {
			meant, value, n := s.meantTopology(e)
			if n == nil {
				continue
			}
			edits = append(edits, edit{kind: correctName, target: of, say: fmt.Sprintf("have the StorageClass %s allow volumes by %s in place of %s", class.Name, meant, e.Key),
				ops: []Op{{Op: "replace", Path: at("/allowedTopologies/%d/matchLabelExpressions/%d/key", i, j), Value: meant}}})
			if row, ok := s.table.Find(n.Name); ok {
				if label, changes := s.relabelled(row, n, e.Key, &value); changes {
					edits = append(edits, label)
				}
			}
		}
	}
	return append(edits, edit{kind: changeClaim, target: of, say: fmt.Sprintf("have the StorageClass %s allow volumes everywhere", class.Name),
		ops: []Op{{Op: "remove", Path: "/allowedTopologies"}}})
}

// meantTopology returns a label that says of a node what the expression asks for, and the
// first such node; nil where there is none, or a node has the very label.
func (s *search) meantTopology(e v1.TopologySelectorLabelRequirement) (key, value string, on *v1.Node) {
	for _, n := range s.nodes { // any order: the first by name counts
		if _, has := n.Labels[e.Key]; has {
			return "", "", nil
		}
		if on != nil && on.Name <= n.Name || !s.spend(1) {
			continue
		}
		for _, want := range e.Values[:min(mostMeant, len(e.Values))] {
			if k, v, ok := MeantLabel(e.Key, want, n.Labels); ok {
				key, value, on = k, v, n
				break
			}
		}
	}
	return key, value, on
}

// nearVolumes returns edits that change the one thing because of which a volume does not suit
// the claim. Of the volumes that are too small one edit is made: a claim that requests what the
// smallest has can take each of them, and the request is tuned to the largest that helps.
func (s *search) nearVolumes(c *object.PersistentVolumeClaim) (edits []edit) {
	var small []*object.PersistentVolume
	for _, o := range s.table.Objects().List(object.PersistentVolumes) {
		if len(edits)+len(small) == mostMeant || !s.spend(1) {
			break
		}
		v := o.(*object.PersistentVolume)
		switch fault, ok := VolumeFault(v, c); {
		case !ok || fault == otherVolumeMode && !uses(s.spec, c.Name, v.VolumeMode):
		case fault == tooSmall:
			small = append(small, v)
		default:
			edits = append(edits, fault.edit(v, c))
		}
	}
	if len(small) == 0 {
		return edits
	}
	slices.SortStableFunc(small, func(a, b *object.PersistentVolume) int { return cmp.Compare(a.Bytes, b.Bytes) })
	return append(edits, smallerClaim(c, small, 0))
}

// smallerClaim returns an edit that makes the claim as small as the i-th of the volumes, which
// are sorted by size.
func smallerClaim(c *object.PersistentVolumeClaim, small []*object.PersistentVolume, i int64) edit {
	e := tooSmall.edit(small[i], c)
	e.tune = &tune{value: i, best: int64(len(small)) - 1, step: 1, with: func(i int64) edit { return smallerClaim(c, small, i) }}
	return e
}

// uses reports whether the pod's containers use the claim as volumes of the mode are used: block
// volumes as devices, others as directories.
func uses(spec *v1.PodSpec, claim string, mode v1.PersistentVolumeMode) bool {
	at := slices.IndexFunc(spec.Volumes, func(v v1.Volume) bool {
		return v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == claim
	})
	if at < 0 {
		return false
	}
	name := spec.Volumes[at].Name
	block, directory := false, false
	for _, c := range slices.Concat(spec.InitContainers, spec.Containers) {
		block = block || slices.ContainsFunc(c.VolumeDevices, func(d v1.VolumeDevice) bool { return d.Name == name })
		directory = directory || slices.ContainsFunc(c.VolumeMounts, func(m v1.VolumeMount) bool { return m.Name == name })
	}
	if mode == v1.PersistentVolumeBlock {
		return block && !directory
	}
	return !block
}

// A Fault is the only reason for which a volume does not suit a claim.
type Fault int

const (
	released Fault = iota
	tooSmall
	otherModes
	otherVolumeMode
	otherClass
)

// VolumeFault returns the one reason for which the volume does not suit the claim. ok is
// false where it suits it, or there are several reasons.
func VolumeFault(v *object.PersistentVolume, c *object.PersistentVolumeClaim) (fault Fault, ok bool) {
	if v.Terminating || v.Attributes != c.Attributes || c.Selector != nil && !c.Selector.Matches(labels.Set(v.Labels)) {
		return 0, false
	}
	var faults []Fault
	add := func(f Fault, is bool) {
		if is {
			faults = append(faults, f)
		}
	}
	add(released, v.Claim != nil && !v.Keeps(c))
	add(tooSmall, v.Bytes < c.Bytes)
	add(otherModes, slices.ContainsFunc(c.Modes, func(m v1.PersistentVolumeAccessMode) bool { return !slices.Contains(v.Modes, m) }))
	add(otherVolumeMode, v.VolumeMode != c.VolumeMode)
	add(otherClass, v.Class != c.Class)
	if len(faults) != 1 {
		return 0, false
	}
	return faults[0], true
}

// Text says how the volume does not suit the claim.
func (f Fault) Text(v *object.PersistentVolume, c *object.PersistentVolumeClaim) string {
	switch f {
	case released:
		return fmt.Sprintf("volume %s was made for claim %s/%s", v.Name, v.Claim.Namespace, v.Claim.Name)
	case tooSmall:
		return fmt.Sprintf("volume %s has %s, and the claim requests %s", v.Name, size(v.Bytes), size(c.Bytes))
	case otherModes:
		return fmt.Sprintf("volume %s is %s, and the claim wants %s", v.Name, modes(v.Modes), modes(c.Modes))
	case otherVolumeMode:
		return fmt.Sprintf("volume %s has the volumeMode %s, and the claim %s", v.Name, v.VolumeMode, c.VolumeMode)
	}
	return fmt.Sprintf("volume %s is of class %q", v.Name, v.Class)
}

func (f Fault) edit(v *object.PersistentVolume, c *object.PersistentVolumeClaim) edit {
	say := func(format string, args ...any) string {
		return fmt.Sprintf("make claim %s anew with ", c.Name) + fmt.Sprintf(format, args...) + ", as volume " + v.Name + " has"
	}
	e := edit{kind: changeClaim, target: claimTarget(c)}
	switch f {
	case released: // the volume controller then finds it available
		e.target = target{"v1", "PersistentVolume", "", v.Name}
		e.say = fmt.Sprintf("release volume %s from claim %s/%s, whose data it has", v.Name, v.Claim.Namespace, v.Claim.Name)
		e.ops = []Op{{Op: "remove", Path: "/spec/claimRef"}, {Op: "add", Path: "/status/phase", Value: string(v1.VolumeAvailable)}}
	case tooSmall:
		e.say = say("%s", size(v.Bytes))
		e.ops = []Op{{Op: "replace", Path: "/spec/resources/requests/storage", Value: size(v.Bytes)}}
	case otherModes:
		e.say = say("the access modes %s", modes(v.Modes))
		e.ops = []Op{{Op: "replace", Path: "/spec/accessModes", Value: v.Modes}}
	case otherVolumeMode:
		e.say = say("the volumeMode %s", v.VolumeMode)
		e.ops = []Op{{Op: "add", Path: "/spec/volumeMode", Value: string(v.VolumeMode)}}
	case otherClass:
		e.say = say("the class %q", v.Class)
		e.ops = []Op{{Op: "add", Path: "/spec/storageClassName", Value: v.Class}}
	}
	return e
}

func size(bytes int64) string { return resource.Quantity(v1.ResourceMemory, bytes).String() }

func modes(list []v1.PersistentVolumeAccessMode) string {
	text := make([]string, len(list))
	for i, m := range list {
		text[i] = string(m)
	}
	return strings.Join(text, ", ")
}
