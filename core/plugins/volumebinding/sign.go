package volumebinding

import (
	"fmt"
	"strconv"

	"github.com/berth-scheduler/berth/core/index/freevolumes"
	"github.com/berth-scheduler/berth/core/match"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// signRevision returns revision 0, which never changes, for pods without PVCs. known is
// false for others, so that sign is called at every attempt.
func signRevision(_ *table.Table, p *object.Pod) (revision uint64, known bool) {
	return 0, !p.HasPVCs(true)
}

// sign appends to key what verdicts and scores depend on of the pod's claims, without
// their names. What CSI drivers report of a node changes the node's row, and is left
// out.
func sign(key []byte, t *table.Table, p *object.Pod) []byte {
	if !p.HasPVCs(true) {
		return key
	}
	pc, status := sortClaims(t, p)
	if status != nil {
		return fmt.Appendf(key, "!%d%q%v", status.Code, status.Reasons, status.Err)
	}
	for _, v := range pc.bound {
		if key = appendNodes(append(key, "bound"...), v.Nodes); v.Migrated != nil {
			key = appendNodes(fmt.Appendf(key, "%q%t", v.Migrated.Plugin, v.Migrated.Error == nil), v.Migrated.Nodes)
		}
	}
	if pc.gone {
		key = append(key, "gone"...)
	}
	if len(pc.toProvision)+len(pc.toMatch) == 0 {
		return key
	}
	key = fmt.Appendf(key, "#%d", t.Objects().Revision(object.StorageClasses, object.CSIDrivers))
	for _, c := range pc.toProvision {
		key = c.appendKey(fmt.Appendf(key, "on%q", c.SelectedNode), t)
	}
	for _, c := range pc.toMatch {
		key = c.appendVolumesKey(c.appendKey(append(key, "free"...), t), t)
	}
	return key
}

// appendKey appends what the claim requests, and the revision of reported capacities if
// they limit it.
func (c *claim) appendKey(key []byte, t *table.Table) []byte {
	key = fmt.Appendf(key, "%q %d", c.Class, c.Bytes)
	if c.limited {
		key = fmt.Appendf(key, "#%d", t.Objects().Revision(object.CSIStorageCapacities))
	}
	return key
}

// appendVolumesKey appends what decides which volumes the claim may be bound to, and
// the revision of free volumes.
func (c *claim) appendVolumesKey(key []byte, t *table.Table) []byte {
	key = fmt.Appendf(key, "%q%q%q#%d", c.VolumeMode, c.Attributes, c.Modes, freevolumes.Of(t).Revision(c.Class))
	if c.Selector != nil {
		key = strconv.AppendQuote(key, c.Selector.String())
	}
	for _, v := range preBound(t, c.PersistentVolumeClaim) {
		key = appendNodes(fmt.Appendf(key, "kept%q %d", v.Name, v.Bytes), v.Nodes)
	}
	return key
}

// appendNodes appends a node selector to a key; nil is all nodes.
func appendNodes(key []byte, s *match.NodeSelector) []byte {
	if s == nil {
		return append(key, '-')
	}
	return strconv.AppendQuote(append(key, '='), s.Key)
}
