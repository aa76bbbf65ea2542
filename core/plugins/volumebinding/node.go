package volumebinding

import (
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/index/volumes"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// labelSet returns a map as labels.
func labelSet(m map[string]string) labels.Labels { return labels.Set(m) }

// choice is what the claims of a pod that wait for their first consumer would get on a node.
type choice struct {
	bound []bindable
	made  []makable
}

// bindable is a free volume for a claim.
type bindable struct {
	volume *object.PersistentVolume
	claim  *object.PersistentVolumeClaim
}

// makable is a claim for which a volume would be provisioned. room is the capacity that is
// reported for it; nil: none is.
type makable struct {
	claim *claim
	room  *object.CSIStorageCapacity
}

// on returns the verdict on the node for all claims of the pod. If into is not nil, on adds to it
// the volumes to bind and to provision there. They are complete only if the node fits.
func (pc *podClaims) on(t *table.Table, r table.Row, n *object.Node, into *choice) framework.Verdict {
	return pc.waitingOn(n, into, pc.boundOn(t, r, n))
}

// waitingOn returns the verdict on the node for all claims, given the verdict for the bound ones.
// For each claim that waits for its first consumer it chooses a free volume, or checks that one can
// be provisioned. The first claim without either adds noVolume or noSpace. If into is not nil, the
// choice is added to it, even if a later claim fails.
func (pc *podClaims) waitingOn(n *object.Node, into *choice, verdict framework.Verdict) framework.Verdict {
	if len(pc.toProvision) == 0 && len(pc.toMatch) == 0 || into == nil && pc.unsupported == nil && pc.provisionsAll(n) {
		return verdict
	}
	for _, c := range pc.toProvision {
		if c.SelectedNode != n.Name {
			return verdict | noVolume
		}
	}
	if pc.unsupported != nil {
		return unsupported
	}
	var room [8]*object.PersistentVolume
	taken := room[:0]
	missing := pc.toProvision
	for _, c := range pc.toMatch {
		v := c.volumes.on(n, taken)
		if v == nil {
			missing = append(missing[:len(missing):len(missing)], c)
			continue
		}
		taken = append(taken, v)
		if into != nil {
			into.bound = append(into.bound, bindable{v, c.PersistentVolumeClaim})
		}
	}
	for _, c := range missing {
		switch ok, lacksRoom := c.provisions(n); {
		case lacksRoom:
			return verdict | noSpace
		case !ok:
			return verdict | noVolume
		case into != nil:
			into.made = append(into.made, makable{c, c.room(n)})
		}
	}
	return verdict
}

// provisionsAll reports whether volumes can be provisioned on the node for all claims
// that wait. The node then satisfies them, whichever of them would get an existing
// volume.
func (pc *podClaims) provisionsAll(n *object.Node) bool {
	for _, c := range pc.toProvision {
		if ok, _ := c.provisions(n); !ok || c.SelectedNode != n.Name {
			return false
		}
	}
	for _, c := range pc.toMatch {
		if ok, _ := c.provisions(n); !ok {
			return false
		}
	}
	return true
}

// boundOn returns the verdict on the node for the bound claims: affinityConflict if the node does
// not reach one of their volumes, else volumeGone if a volume does not exist, else Fits.
func (pc *podClaims) boundOn(t *table.Table, r table.Row, n *object.Node) framework.Verdict {
	c := volumes.Of(t).CSINode(r)
	for _, v := range pc.bound {
		if !accessible(c, v, n) {
			return affinityConflict
		}
	}
	if pc.gone {
		return volumeGone
	}
	return framework.Fits
}

// accessible reports whether node n reaches volume v. c is the node's CSINode, nil for none. An
// in-tree volume that a CSI driver serves on the node counts as the driver's; no node reaches it
// then if it cannot be translated.
func accessible(c *object.CSINode, v *object.PersistentVolume, n *object.Node) bool {
	if v.Migrated != nil && migratedOn(c, v.Migrated.Plugin) {
		return v.Migrated.Error == nil && reaches(v.Migrated.Nodes, n)
	}
	return reaches(v.Nodes, n)
}

// migratedOn reports whether a CSI driver serves volumes of the in-tree plugin on the node of
// CSINode c, which may be nil.
func migratedOn(c *object.CSINode, plugin string) bool {
	if c == nil {
		return false
	}
	for name, rest, more := strings.Cut(c.Migrated, ","); ; name, rest, more = strings.Cut(rest, ",") {
		if name == plugin && c.Migrated != "" {
			return true
		}
		if !more {
			return false
		}
	}
}
