package volumerestrictions

import (
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/index/volumes"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/plugins/names"
	"github.com/berth-scheduler/berth/core/table"
)

const (
	reasonDisk  = "node(s) had no available disk"
	reasonInUse = "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
)

const (
	diskTaken  framework.Verdict = 1 + iota // a pod on the node has a disk that cannot be shared
	claimTaken                              // another pod uses a ReadWriteOncePod claim
)

// New returns the plugin.
func New() framework.Plugin {
	return framework.Plugin{
		Name:  names.VolumeRestrictions,
		Reads: framework.Reads{Kinds: []object.Kind{object.PersistentVolumeClaims}},
		EventsToRegister: []framework.ClusterEventWithHint{
			{Resource: framework.AssignedPod, ActionType: framework.Delete, QueueingHintFn: freed},
			{Resource: framework.Node, ActionType: framework.Add},
			// With a node its pods go, as far as claims are concerned; v1.37 waits
			// for the pods' own end.
			{Resource: framework.Node, ActionType: framework.Delete, QueueingHintFn: func(p *object.Pod, _ *framework.Event) bool { return p.HasPVCs(false) }},
			{Resource: framework.ResourceOf(object.PersistentVolumeClaims), ActionType: framework.Add, QueueingHintFn: claimCame, Names: func(p *object.Pod) []string { return p.PVCs(false) }},
		},
		SignPlugin: framework.SignPlugin{Locality: framework.NodeAndPods, Sign: sign, SignRevision: signRevision},
		PreFilter:  preFilter,
		FilterPlugin: framework.FilterPlugin{
			Filter: filter,
			Costly: true,
			Explain: func(_ *framework.Input, _ table.Row, v framework.Verdict) decision.Blocker {
				if v == diskTaken {
					return decision.Blocker{Code: decision.Unschedulable, Reasons: []string{reasonDisk}}
				}
				return decision.Blocker{Code: decision.Unschedulable, Reasons: []string{reasonInUse}}
			},
		},
	}
}

// signRevision returns revision 0, which never changes, for pods without disks and PVCs.
// known is false for others, so that sign is called at every attempt.
func signRevision(_ *table.Table, p *object.Pod) (revision uint64, known bool) {
	return 0, !restricted(p)
}

// sign appends to key the pod's disks, and its ReadWriteOncePod claims with the number
// of their users anywhere. Other claims matter only while they are missing.
func sign(key []byte, t *table.Table, p *object.Pod) []byte {
	if !restricted(p) {
		return key
	}
	s, missing := stateOf(t, p)
	if s == nil {
		return fmt.Appendf(key, "!%q", missing)
	}
	key = fmt.Appendf(key, "'%s'", p.Namespace)
	for _, d := range s.disks {
		key = fmt.Appendf(key, "%d%q%q%q%t", d.Kind, d.Name, d.Pool, d.Monitors, d.ReadOnly)
	}
	for _, c := range s.claims {
		key = fmt.Appendf(key, ",%q%d", c, volumes.Of(t).ClaimUsers(p.Namespace, c))
	}
	return key
}

// restricted reports whether the pod has a PVC, or an in-tree disk that pods cannot
// always share.
func restricted(p *object.Pod) bool {
	return p.HasPVCs(false) || slices.ContainsFunc(p.Volumes, func(v object.Volume) bool { return v.Disk != nil })
}

// state is the disks and claims that the pod cannot share.
type state struct {
	disks  []*object.Disk
	claims []string // names of ReadWriteOncePod PVCs
}

// preFilter rejects pods whose PVC does not exist, and skips those without disks whose
// ReadWriteOncePod claims are free. For others it returns the disks and claims as the state for
// Filter.
func preFilter(t *table.Table, p *object.Pod) framework.PreFilterResult {
	s, missing := stateOf(t, p)
	if s == nil {
		return framework.PreFilterResult{Status: &decision.Status{
			Code: decision.UnschedulableAndUnresolvable, Reasons: []string{fmt.Sprintf("persistentvolumeclaim %q not found", missing)}}}
	}
	return framework.PreFilterResult{State: s, Skip: len(s.disks) == 0 && !s.inUse(t, p.Namespace)}
}

// stateOf returns the disks and claims that the pod cannot share. If a claim does not exist it
// returns nil and the claim's name. Claims of ephemeral volumes are left out.
func stateOf(t *table.Table, p *object.Pod) (s *state, missing string) {
	s = &state{}
	for i := range p.Volumes {
		v := &p.Volumes[i]
		if v.Disk != nil {
			s.disks = append(s.disks, v.Disk)
		}
		if !v.Claimed || v.Ephemeral {
			continue
		}
		c := table.Lookup[*object.PersistentVolumeClaim](t, object.PersistentVolumeClaims, p.Namespace, v.Claim)
		if c == nil {
			return nil, v.Claim
		}
		if slices.Contains(c.Modes, v1.ReadWriteOncePod) {
			s.claims = append(s.claims, v.Claim)
		}
	}
	return s, ""
}

// inUse reports whether a placed pod uses one of the ReadWriteOncePod claims. Victims of a trial
// preemption, which are not in the table, use nothing.
func (s *state) inUse(t *table.Table, namespace string) bool {
	return slices.ContainsFunc(s.claims, func(c string) bool { return volumes.Of(t).ClaimUsers(namespace, c) > 0 })
}

// filter rejects the rows with a pod that has a conflicting disk (diskTaken), and all other rows if
// a ReadWriteOncePod claim of the pod is in use anywhere (claimTaken).
func filter(in *framework.Input, rows []table.Row, out []framework.Verdict) {
	s := in.State.(*state)
	elsewhere := framework.Fits
	if s.inUse(in.Table, in.Pod.Namespace) {
		elsewhere = claimTaken
	}
	for i := range out {
		out[i] = elsewhere
	}
	for _, d := range s.disks {
		written, read, sure := volumes.Of(in.Table).RowsWithDisk(d)
		taken := func(i int) {
			if sure || s.conflicts(in.Table.Pods(rows[i])) {
				out[i] = diskTaken
			}
		}
		written.In(rows, taken)
		read.In(rows, taken)
	}
}

// conflicts reports whether one of the placed pods has a disk that conflicts with a disk of
// the pod to be placed, as two writers of one disk do.
func (s *state) conflicts(pods []*table.Placed) bool {
	for _, pl := range pods {
		for i := range pl.Pod.Volumes {
			if d := pl.Pod.Volumes[i].Disk; d != nil && slices.ContainsFunc(s.disks, d.Conflicts) {
				return true
			}
		}
	}
	return false
}

// freed reports whether the deleted pod had a disk that conflicts with one of the rejected pod p,
// or used a claim that p uses. kube-scheduler overlooks disks of pods in other namespaces.
func freed(p *object.Pod, e *framework.Event) bool {
	gone := e.OldPod
	for i := range gone.Volumes {
		v := &gone.Volumes[i]
		if v.Disk != nil && slices.ContainsFunc(p.Volumes, func(w object.Volume) bool { return w.Disk != nil && w.Disk.Conflicts(v.Disk) }) {
			return true
		}
		if v.Claimed && !v.Ephemeral && gone.Namespace == p.Namespace && p.UsesPVC(v.Claim, false) {
			return true
		}
	}
	return false
}

// claimCame reports whether the rejected pod uses the new PVC.
func claimCame(p *object.Pod, e *framework.Event) bool {
	m := e.NewObject.Head()
	return m.Namespace == p.Namespace && p.UsesPVC(m.Name, false)
}
