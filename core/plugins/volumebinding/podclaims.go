package volumebinding

import (
	"cmp"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/match"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// notSupported is the provisioner of classes whose volumes are not provisioned.
const notSupported = "kubernetes.io/no-provisioner"

// podClaims is what a pod's PVCs require of a node.
type podClaims struct {
	// bound are the volumes of bound claims, up to the first that does not exist; gone is
	// set if there is one.
	bound []*object.PersistentVolume
	gone  bool
	// toProvision and toMatch wait for their first consumer. toProvision are claims for
	// which a node was selected before: a volume is to be provisioned there. toMatch are
	// the others, the smallest first: an existing volume is preferred to a new one.
	toProvision, toMatch []*claim
	// unsupported is the first of toMatch with a volumeAttributesClassName while the gate
	// VolumeAttributesClass is off; nil for none.
	unsupported *claim
}

// claim is a claim that waits for its first consumer, with the volumes and capacities
// that suit it.
type claim struct {
	*object.PersistentVolumeClaim
	volumes *candidates // nil for claims of toProvision
	class   *object.StorageClass
	// limited is set if the claim requests storage and its driver reports capacities. capacities
	// then holds those large enough for a volume of the claim, sorted by UID.
	limited    bool
	capacities []*object.CSIStorageCapacity
}

// podClaimsOf returns the pod's claims by what they require, with candidate volumes and reported
// capacities for those that wait for their first consumer; or a status that rejects the pod on
// every node.
func podClaimsOf(t *table.Table, p *object.Pod) (*podClaims, *decision.Status) {
	pc, s := sortClaims(t, p)
	if s != nil {
		return nil, s
	}
	for _, c := range pc.toProvision {
		c.findCapacities(t)
	}
	for _, c := range pc.toMatch {
		c.findCapacities(t)
		c.volumes = suitable(t, c.PersistentVolumeClaim, len(pc.toMatch)-1)
	}
	return pc, nil
}

// sortClaims returns the pod's claims by what they require, without candidates and capacities; or a
// status that rejects the pod on every node, as for an unbound claim that does not wait for its
// first consumer.
func sortClaims(t *table.Table, p *object.Pod) (*podClaims, *decision.Status) {
	claims, s := claimsOf(t, p)
	if s != nil {
		return nil, s
	}
	pc := &podClaims{}
	for _, c := range claims {
		if c.Bound() {
			pc.bind(t, c)
			continue
		}
		class := table.Lookup[*object.StorageClass](t, object.StorageClasses, "", c.Class)
		switch {
		case c.Class != "" && class != nil && !class.HasBindingMode:
			return nil, failed(fmt.Errorf("VolumeBindingMode not set for StorageClass %q", c.Class))
		case c.Class == "" || class == nil || !class.WaitForFirstConsumer || c.VolumeName != "":
			return nil, unresolvable("pod has unbound immediate PersistentVolumeClaims")
		case c.SelectedNode != "":
			pc.toProvision = append(pc.toProvision, newClaim(t, c, class))
		case c.SelectorError != nil:
			return nil, failed(fmt.Errorf("error creating internal label selector for claim: %s: %w", c.Key(), c.SelectorError))
		default:
			pc.toMatch = append(pc.toMatch, newClaim(t, c, class))
		}
	}
	slices.SortStableFunc(pc.toMatch, func(a, b *claim) int { return cmp.Compare(a.Bytes, b.Bytes) })
	return pc, nil
}

// claimsOf returns the pod's claims in the order of its volumes; a claim is repeated if several
// volumes name it. Or it returns a status that rejects the pod: a claim does not exist, is lost or
// being deleted, or is not the pod's own as an ephemeral volume's must be.
func claimsOf(t *table.Table, p *object.Pod) ([]*object.PersistentVolumeClaim, *decision.Status) {
	var claims []*object.PersistentVolumeClaim
	for i := range p.Volumes {
		v := &p.Volumes[i]
		if !v.Claimed {
			continue
		}
		c := table.Lookup[*object.PersistentVolumeClaim](t, object.PersistentVolumeClaims, p.Namespace, v.Claim)
		switch {
		case c == nil && v.Ephemeral:
			return nil, unresolvable("waiting for ephemeral volume controller to create the persistentvolumeclaim %q", v.Claim)
		case c == nil:
			return nil, unresolvable("persistentvolumeclaim %q not found", v.Claim)
		case c.Lost:
			return nil, unresolvable("persistentvolumeclaim %q bound to non-existent persistentvolume %q", c.Name, c.VolumeName)
		case c.Terminating:
			return nil, unresolvable("persistentvolumeclaim %q is being deleted", c.Name)
		case v.Ephemeral && c.Owner != p.UID:
			return nil, unresolvable("PVC %s was not created for pod %s (pod is not owner)", c.Key(), p.Key())
		}
		claims = append(claims, c)
	}
	return claims, nil
}

// unresolvable returns an UnschedulableAndUnresolvable status.
func unresolvable(format string, args ...any) *decision.Status {
	return &decision.Status{Code: decision.UnschedulableAndUnresolvable, Reasons: []string{fmt.Sprintf(format, args...)}}
}

// failed returns an Error status.
func failed(err error) *decision.Status { return &decision.Status{Code: decision.Error, Err: err} }

// bind adds the volume of bound claim c to bound. If the volume does not exist it sets gone; once
// gone is set, it does nothing.
func (pc *podClaims) bind(t *table.Table, c *object.PersistentVolumeClaim) {
	if pc.gone {
		return
	}
	v := table.Lookup[*object.PersistentVolume](t, object.PersistentVolumes, "", c.VolumeName)
	if v == nil {
		pc.gone = true
		return
	}
	pc.bound = append(pc.bound, v)
}

// newClaim returns claim c, which waits for its first consumer, with limited set. Its volumes and
// capacities are still to be found.
func newClaim(t *table.Table, c *object.PersistentVolumeClaim, class *object.StorageClass) *claim {
	found := &claim{PersistentVolumeClaim: c, class: class}
	driver := table.Lookup[*object.CSIDriver](t, object.CSIDrivers, "", class.Provisioner)
	found.limited = c.Sized && driver != nil && driver.StorageCapacity
	return found
}

// findCapacities sets capacities to those reported for the claim's class that are large enough for
// the claim, sorted by UID. It does nothing unless limited is set.
func (c *claim) findCapacities(t *table.Table) {
	if !c.limited {
		return
	}
	for o := range t.Objects().ByIndex(object.CSIStorageCapacities, c.class.Name) {
		if room := o.(*object.CSIStorageCapacity); room.Known && room.Bytes >= c.Bytes && room.Nodes != nil {
			c.capacities = append(c.capacities, room)
		}
	}
	slices.SortFunc(c.capacities, func(a, b *object.CSIStorageCapacity) int {
		return cmp.Or(cmp.Compare(a.UID, b.UID), cmp.Compare(a.Key(), b.Key()))
	})
}

// provisions reports whether a volume can be provisioned for the claim on the node. If not,
// lacksRoom is set if the only reason is that no capacity that is large enough is reported for the
// node.
func (c *claim) provisions(n *object.Node) (ok, lacksRoom bool) {
	if c.class.Provisioner == "" || c.class.Provisioner == notSupported || !allowed(c.class.Topologies, n) {
		return false, false
	}
	if !c.limited || c.room(n) != nil {
		return true, false
	}
	return false, true
}

// room returns the first of capacities that is for the node; nil if there is none.
func (c *claim) room(n *object.Node) *object.CSIStorageCapacity {
	for _, room := range c.capacities {
		if room.Nodes.Matches(labels.Set(n.Labels)) {
			return room
		}
	}
	return nil
}

// allowed reports whether one of the class's allowedTopologies matches the node. A term
// without expressions matches no node; an empty list allows every node.
func allowed(terms []v1.TopologySelectorTerm, n *object.Node) bool {
	return len(terms) == 0 || slices.ContainsFunc(terms, func(term v1.TopologySelectorTerm) bool {
		for _, e := range term.MatchLabelExpressions {
			if value, ok := n.Labels[e.Key]; !ok || !slices.Contains(e.Values, value) {
				return false
			}
		}
		return len(term.MatchLabelExpressions) > 0
	})
}

// reaches reports whether the node affinity s of a volume matches the labels of node n; nil matches
// every node.
func reaches(s *match.NodeSelector, n *object.Node) bool {
	return s.Matches(match.Subject{Labels: n.Labels})
}
