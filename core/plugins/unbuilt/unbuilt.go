package unbuilt

import (
	"fmt"
	"slices"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/plugins/names"
	"github.com/berth-scheduler/berth/core/table"
)

// Constraint is a hard constraint that a plugin which is not built yet would
// see to.
type Constraint struct {
	Plugin string
	Uses   string // what of a pod calls for it, after "this pod has"
}

// Constraints lists them in the order of the default profile.
func Constraints() []Constraint {
	return []Constraint{
		{names.VolumeRestrictions, "volumes that not every pod may share"},
		{names.NodeVolumeLimits, "volumes that nodes attach a limited number of"},
		{names.VolumeBinding, "persistent volume claims"},
		{names.VolumeZone, "persistent volume claims"},
	}
}

// New returns the stand-in. It has no wake rules: no change in the cluster
// helps a pod that it rejects.
func New(c Constraint) framework.Plugin {
	used := func(p *object.Pod) bool { return slices.Contains(p.Unbuilt, c.Plugin) }
	p := framework.Plugin{
		Name: c.Plugin,
		Part: func(key []byte, p *object.Pod) []byte {
			if used(p) {
				return append(key, "used"...)
			}
			return key
		},
		PreFilter: func(_ *table.Table, p *object.Pod) framework.Prepared {
			if !used(p) {
				return framework.Prepared{Skip: true}
			}
			return framework.Prepared{Status: &decision.Status{
				Code:    decision.Unresolvable,
				Reasons: []string{fmt.Sprintf("Berth does not have the plugin %s yet and this pod has %s", c.Plugin, c.Uses)},
			}}
		},
	}
	return p
}
