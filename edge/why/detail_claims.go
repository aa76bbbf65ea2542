package why

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/plugins/names"
	"github.com/berth-scheduler/berth/core/table"
)

// mostProbed bounds the nodes on which each of the pod's volumes is tried alone.
const mostProbed = 50

// claimText names the pod's volumes that block, with who has them.
func (f *facts) claimText(b *Blocker, nodes []string) string {
	var parts []string
	if b.Plugin == names.NodeVolumeLimits {
		parts = f.limitTexts(nodes[0])
	}
	if len(parts) == 0 {
		for _, i := range f.blocking(b, nodes) {
			parts = append(parts, f.volumeText(b, &f.pod.Volumes[i], nodes[0]))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

// blocking are the places of the pod's volumes for each of which alone the plugin
// rejects one of the nodes; all of them where none does so alone.
func (f *facts) blocking(b *Blocker, nodes []string) (at []int) {
	var all []int
	t := f.cluster.Machine.Table()
	for i := range f.pod.Volumes {
		if v := &f.pod.Volumes[i]; !v.Claimed && v.Disk == nil {
			continue
		}
		all = append(all, i)
		alone := *f.pod
		alone.Volumes = f.pod.Volumes[i : i+1]
		if slices.ContainsFunc(nodes[:min(mostProbed, len(nodes))], func(name string) bool {
			row, ok := t.Find(name)
			return ok && slices.ContainsFunc(blockersOf(f.cluster.Machine.Blockers(&alone, row)), func(o Blocker) bool {
				return o.Plugin == b.Plugin && slices.ContainsFunc(o.Reasons, func(reason string) bool { return slices.Contains(b.Reasons, reason) })
			})
		}) {
			at = append(at, i)
		}
	}
	if len(at) == 0 {
		return all
	}
	return at
}

// limitTexts says of each driver how many volumes it attaches to the node, where the
// pod's are too many.
func (f *facts) limitTexts(node string) (texts []string) {
	t := f.cluster.Machine.Table()
	row, ok := t.Find(node)
	if !ok || t.CSINode(row) == nil {
		return nil
	}
	more := map[string]int{}
	for _, v := range t.VolumesOf(f.pod) {
		if !t.PodsHaveVolume(row, v) {
			more[v.Driver]++
		}
	}
	for _, d := range t.CSINode(row).Drivers {
		if has := t.AttachedVolumes(row, d.Name); d.Limited && more[d.Name] > 0 && has+more[d.Name] > int(d.Limit) {
			texts = append(texts, fmt.Sprintf("%s attaches %s of %s, has %d, and the pod brings %d", node, count(int(d.Limit), "volume"), d.Name, has, more[d.Name]))
		}
	}
	return texts
}

func (f *facts) volumeText(b *Blocker, v *object.Volume, node string) string {
	if v.Disk != nil {
		for _, p := range f.on(node) {
			if slices.ContainsFunc(p.Volumes, func(o object.Volume) bool { return o.Disk != nil && v.Disk.Conflicts(o.Disk) }) {
				return fmt.Sprintf("%s on %s has disk %s", p.Key(), node, v.Disk.Name)
			}
		}
		return "disk " + v.Disk.Name
	}
	c := table.Lookup[*object.PersistentVolumeClaim](f.cluster.Machine.Table(), object.PersistentVolumeClaims, f.pod.Namespace, v.Claim)
	switch {
	case c == nil:
		return "claim " + v.Claim + " is not there"
	case b.Plugin == names.VolumeRestrictions:
		return fmt.Sprintf("claim %s is for one pod at a time, and %s", v.Claim, f.users(v.Claim))
	case c.VolumeName == "":
		return fmt.Sprintf("claim %s of class %q is not bound", v.Claim, c.Class)
	case !c.Bound():
		return fmt.Sprintf("claim %s names volume %s and is not bound yet", v.Claim, c.VolumeName)
	}
	return f.boundText(v.Claim, c.VolumeName)
}

// users says which pods on nodes use the claim.
func (f *facts) users(claim string) string {
	t := f.cluster.Machine.Table()
	var users []string
	for _, r := range t.All() {
		for _, pl := range t.Pods(r) {
			if p := pl.Pod; p.Namespace == f.pod.Namespace && p.UsesPVC(claim, true) {
				users = append(users, p.Key()+" on "+t.Name(r))
			}
		}
	}
	slices.Sort(users)
	if len(users) == 1 {
		return users[0] + " uses it"
	}
	return list(users, 2) + " use it"
}

func (f *facts) boundText(claim, name string) string {
	v := table.Lookup[*object.PersistentVolume](f.cluster.Machine.Table(), object.PersistentVolumes, "", name)
	switch {
	case v == nil:
		return fmt.Sprintf("claim %s is bound to volume %s, which is not there", claim, name)
	case v.Pin != nil:
		return fmt.Sprintf("claim %s is bound to volume %s, on nodes with %s in [%s]", claim, name, v.Pin.Key, strings.Join(v.Pin.Values, " "))
	case v.Labels[v1.LabelTopologyZone] != "":
		return fmt.Sprintf("claim %s is bound to volume %s in zone %s", claim, name, v.Labels[v1.LabelTopologyZone])
	}
	return fmt.Sprintf("claim %s is bound to volume %s", claim, name)
}
