package why

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/core/index/volumes"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/plugins/names"
	"github.com/berth-scheduler/berth/core/table"
	"github.com/berth-scheduler/berth/edge/fix"
	"github.com/berth-scheduler/berth/edge/terminal"
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
	attached := volumes.Of(t)
	if !ok || attached.CSINode(row) == nil {
		return nil
	}
	more := map[string]int{}
	for _, v := range attached.OfPod(f.pod) {
		if !attached.PodsHave(row, v) {
			more[v.Driver]++
		}
	}
	for _, d := range attached.CSINode(row).Drivers {
		if has := attached.Attached(row, d.Name); d.Limited && more[d.Name] > 0 && has+more[d.Name] > int(d.Limit) {
			texts = append(texts, fmt.Sprintf("%s attaches %s of %s, has %d, and the pod brings %d", node, terminal.Count(int(d.Limit), "volume"), d.Name, has, more[d.Name]))
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
		return "claim " + v.Claim + " is not there" + meantObject(f.cluster.Machine.Table(), object.PersistentVolumeClaims, f.pod.Namespace, v.Claim)
	case c.Terminating:
		return deletedClaim(v.Claim, f.cluster.Set.Written("PersistentVolumeClaim", f.pod.Namespace, v.Claim), f.users(v.Claim))
	case b.Plugin == names.VolumeRestrictions:
		return fmt.Sprintf("claim %s is for one pod at a time, and %s", v.Claim, f.users(v.Claim))
	case c.VolumeName == "":
		return f.unboundText(c)
	case !c.Bound():
		return fmt.Sprintf("claim %s names volume %s and is not bound yet", v.Claim, c.VolumeName)
	}
	return f.boundText(v.Claim, c.VolumeName)
}

// users says which pods on nodes use the claim, "" if none does.
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
	switch len(users) {
	case 0:
		return ""
	case 1:
		return users[0] + " uses it"
	}
	return list(users, 2) + " use it"
}

// unboundText says what keeps the claim from a volume, as far as objects tell it.
func (f *facts) unboundText(c *object.PersistentVolumeClaim) string {
	t := f.cluster.Machine.Table()
	class := table.Lookup[*object.StorageClass](t, object.StorageClasses, "", c.Class)
	text := fmt.Sprintf("claim %s of class %q is not bound", c.Name, c.Class)
	switch {
	case class == nil && c.Class != "":
		text = fmt.Sprintf("claim %s is of class %q, which is not there", c.Name, c.Class) + meantObject(t, object.StorageClasses, "", c.Class)
	case c.SelectedNode != "" && f.node(c.SelectedNode) == nil:
		return fmt.Sprintf("the volume of claim %s is to be made on node %s, which is gone", c.Name, c.SelectedNode)
	case c.SelectedNode != "":
		return fmt.Sprintf("the volume of claim %s is to be made on node %s", c.Name, c.SelectedNode)
	case class != nil && len(class.Topologies) > 0 && !f.allowed(class):
		var terms []string
		for _, term := range class.Topologies {
			for _, e := range term.MatchLabelExpressions {
				terms = append(terms, fmt.Sprintf("%s in [%s]", e.Key, strings.Join(e.Values, " ")))
			}
		}
		return fmt.Sprintf("class %s of claim %s allows volumes by %s only, and no node has that label", class.Name, c.Name, list(terms, 3))
	}
	for _, o := range t.Objects().List(object.PersistentVolumes) {
		v := o.(*object.PersistentVolume)
		if fault, near := fix.VolumeFault(v, c); near {
			return text + "; " + fault.Text(v, c)
		}
	}
	if class != nil && !class.WaitForFirstConsumer && fix.Provisioned(class) {
		text += fmt.Sprintf("; %s has not made its volume yet: see kubectl describe pvc %s -n %s", class.Provisioner, word(c.Name), word(c.Namespace))
	}
	return text
}

// allowed reports whether the class allows volumes on some node.
func (f *facts) allowed(class *object.StorageClass) bool {
	return slices.ContainsFunc(f.cluster.Set.Nodes, func(n *v1.Node) bool {
		return slices.ContainsFunc(class.Topologies, func(term v1.TopologySelectorTerm) bool {
			return !slices.ContainsFunc(term.MatchLabelExpressions, func(e v1.TopologySelectorLabelRequirement) bool {
				return !slices.Contains(e.Values, n.Labels[e.Key])
			})
		})
	})
}

func (f *facts) boundText(claim, name string) string {
	v := table.Lookup[*object.PersistentVolume](f.cluster.Machine.Table(), object.PersistentVolumes, "", name)
	switch {
	case v == nil:
		return fmt.Sprintf("claim %s is bound to volume %s, which is not there", claim, name)
	case v.Pin != nil && !f.reached(v.Pin) && v.Pin.Key == v1.LabelHostname:
		return fmt.Sprintf("volume %s of claim %s is on node %s, which is gone: bring the node back, or delete claim %s and volume %s, so that a new volume is made",
			name, claim, list(v.Pin.Values, 3), claim, name)
	case v.Pin != nil:
		text := fmt.Sprintf("claim %s is bound to volume %s, on nodes with %s in [%s]", claim, name, v.Pin.Key, strings.Join(v.Pin.Values, " "))
		if !f.reached(v.Pin) {
			text += ", and no node has that"
		}
		return text
	case v.Labels[v1.LabelTopologyZone] != "":
		return fmt.Sprintf("claim %s is bound to volume %s in zone %s", claim, name, v.Labels[v1.LabelTopologyZone])
	}
	return fmt.Sprintf("claim %s is bound to volume %s", claim, name)
}

// reached reports whether a node has the label with one of the values.
func (f *facts) reached(pin *object.LabelPin) bool {
	return slices.ContainsFunc(f.cluster.Set.Nodes, func(n *v1.Node) bool {
		value, has := n.Labels[pin.Key]
		return has && slices.Contains(pin.Values, value)
	})
}
