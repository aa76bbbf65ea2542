package volumebinding

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

func labelSet(m map[string]string) labels.Labels { return labels.Set(m) }

// on tells how the node meets the claims; where it does, what is to be bound and
// made is added to the plan, if one is given.
func (pc *podClaims) on(t *table.Table, n *object.Node, into *plan) framework.Verdict {
	verdict := pc.boundOn(t, n)
	if len(pc.toProvision) == 0 && len(pc.toMatch) == 0 || into == nil && pc.provisionsAll(n) {
		return verdict
	}
	for _, c := range pc.toProvision {
		if c.SelectedNode != n.Name {
			return verdict | noVolume
		}
	}
	var room [8]*object.PersistentVolume
	taken := room[:0]
	missing := pc.toProvision
	for i, c := range pc.toMatch {
		if into == nil && i == len(pc.toMatch)-1 && c.volumes.surelyOn(n, taken) {
			break
		}
		v := c.volumes.on(n, taken)
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

// provisionsAll tells whether volumes can be made on the node for all claims that wait:
// then it has what they need, whichever of them would get one that is there.
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

// boundOn tells whether the node reaches the volumes that the pod's claims
// have already.
func (pc *podClaims) boundOn(t *table.Table, n *object.Node) framework.Verdict {
	for _, v := range pc.bound {
		if !accessible(t, v, n) {
			return affinityConflict
		}
	}
	if pc.gone {
		return volumeGone
	}
	return framework.Fits
}

// accessible tells whether the node reaches the volume; an in-tree volume as
// the CSI driver's, where that serves it on the node.
func accessible(t *table.Table, v *object.PersistentVolume, n *object.Node) bool {
	if v.Migrated != nil && migratedOn(t, v.Migrated.Plugin, n.Name) {
		return v.Migrated.Error == nil && reaches(v.Migrated.Nodes, n)
	}
	return reaches(v.Nodes, n)
}

func migratedOn(t *table.Table, plugin, node string) bool {
	c := table.Lookup[*object.CSINode](t, object.CSINodes, "", node)
	return c != nil && c.Migrated != "" && slices.Contains(strings.Split(c.Migrated, ","), plugin)
}
