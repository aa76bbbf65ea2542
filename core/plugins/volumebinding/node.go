package volumebinding

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/index/freevolumes"
	"github.com/berth-scheduler/berth/core/index/volumes"
	"github.com/berth-scheduler/berth/core/match"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// labelSet returns a map as labels.
func labelSet(m map[string]string) labels.Labels { return labels.Set(m) }

// on returns the verdict on the node for all claims of the pod. If into is not nil and
// the node fits, the volumes to bind and to provision there are added to it.
func (pc *podClaims) on(t *table.Table, r table.Row, n *object.Node, into *plan) framework.Verdict {
	var room [4]volumeReach
	return pc.waitingOn(r, n, into, pc.boundOn(t, r, n, pc.reachOfBound(t, room[:0])))
}

// waitingOn returns the verdict on the node for all claims, given the verdict for the
// bound ones. For each claim that waits for its first consumer it chooses a free
// volume, or checks that one can be provisioned. If into is not nil, the choice is
// added to it.
func (pc *podClaims) waitingOn(r table.Row, n *object.Node, into *plan, verdict framework.Verdict) framework.Verdict {
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
		v := c.volumes.on(r, n, taken)
		if v == nil {
			missing = append(missing[:len(missing):len(missing)], c)
			continue
		}
		taken = append(taken, v)
		if into != nil {
			into.bind(v, c.PersistentVolumeClaim)
		}
	}
	for _, c := range missing {
		switch ok, lacksRoom := c.provisions(n); {
		case lacksRoom:
			return verdict | noSpace
		case !ok:
			return verdict | noVolume
		case into != nil:
			into.provision(c, n)
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

// boundOn returns the verdict on the node for the bound claims. reach is the result of
// reachOfBound.
func (pc *podClaims) boundOn(t *table.Table, r table.Row, n *object.Node, reach []volumeReach) framework.Verdict {
	for i, v := range pc.bound {
		by := &reach[i].nodes
		if v.Migrated != nil && migratedOn(volumes.Of(t).CSINode(r), v.Migrated.Plugin) {
			if by = &reach[i].migrated; v.Migrated.Error != nil {
				return affinityConflict
			}
		}
		if !by.has(r, n) {
			return affinityConflict
		}
	}
	if pc.gone {
		return volumeGone
	}
	return framework.Fits
}

// volumeReach is the nodes that reach a volume: by its own node affinity, and by that
// which it has as a volume of the CSI driver that serves its in-tree plugin.
type volumeReach struct{ nodes, migrated nodesOf }

// nodesOf is the nodes that a selector matches, in a form that is fast to check. It is
// valid until the table changes.
type nodesOf struct {
	selector *match.NodeSelector
	// column is set if the selector only requires one of a few values of a label: it
	// numbers the label's values by row, and values holds the numbers that match.
	column *freevolumes.Column
	values [4]int32
}

// reachOf returns the nodes that the selector matches; nil matches all.
func reachOf(t *table.Table, s *match.NodeSelector) nodesOf {
	found := nodesOf{selector: s}
	if key, values, ok := s.OneOf(); ok && len(values) <= len(found.values) {
		if found.column = freevolumes.Of(t).Column(key); found.column != nil {
			for i, value := range values {
				found.values[i] = found.column.Number(value)
			}
		}
	}
	return found
}

// has reports whether the selector matches the row's node n.
func (c *nodesOf) has(r table.Row, n *object.Node) bool {
	if c.column == nil {
		return reaches(c.selector, n)
	}
	value := c.column.Of(r)
	return value != 0 && slices.Contains(c.values[:], value)
}

// reachOfBound returns, for each volume in pc.bound, the nodes that reach it. It
// appends to room.
func (pc *podClaims) reachOfBound(t *table.Table, room []volumeReach) []volumeReach {
	for _, v := range pc.bound {
		of := volumeReach{nodes: reachOf(t, v.Nodes)}
		if v.Migrated != nil {
			of.migrated = reachOf(t, v.Migrated.Nodes)
		}
		room = append(room, of)
	}
	return room
}

// accessible reports whether the node reaches the volume. An in-tree volume counts as one
// of the CSI driver that serves it on the node.
func accessible(t *table.Table, v *object.PersistentVolume, n *object.Node) bool {
	if v.Migrated != nil && migratedOn(table.Lookup[*object.CSINode](t, object.CSINodes, "", n.Name), v.Migrated.Plugin) {
		return v.Migrated.Error == nil && reaches(v.Migrated.Nodes, n)
	}
	return reaches(v.Nodes, n)
}

// migratedOn reports whether a CSI driver serves volumes of the in-tree plugin on the
// node; c may be nil.
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
