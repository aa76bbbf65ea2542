package compat

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	v1 "k8s.io/api/core/v1"
	ndf "k8s.io/component-helpers/nodedeclaredfeatures"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	imageindex "github.com/berth-scheduler/berth/core/index/images"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// snapshot is the cluster at the start of a cycle. It is immutable and shares what did not
// change with the snapshot before.
type snapshot struct {
	chunks []*chunk             // by row / chunkRows
	rows   map[string]table.Row // by node name
	live   int                  // number of nodes

	listed sync.Once
	list   []fwk.NodeInfo // made by nodes
}

// chunkRows is the size of a chunk: so many rows are copied if one of them changes.
const chunkRows = 128

// chunk is the nodes of consecutive rows; nil: the row has no node. Snapshots share the
// chunks in which nothing changed.
type chunk [chunkRows]*nodeInfo

// at returns the node of the row; nil if the row had no node.
func (s *snapshot) at(r table.Row) *nodeInfo {
	if c := int(r) / chunkRows; c < len(s.chunks) {
		return s.chunks[c][int(r)%chunkRows]
	}
	return nil
}

// nodes returns all nodes, in the order of their rows. The slice is shared.
func (s *snapshot) nodes() []fwk.NodeInfo {
	s.listed.Do(func() {
		s.list = make([]fwk.NodeInfo, 0, s.live)
		for _, chunk := range s.chunks {
			for _, n := range chunk {
				if n != nil {
					s.list = append(s.list, n)
				}
			}
		}
	})
	return s.list
}

// snapshots makes each snapshot from the one before. Only the loop makes them; any
// goroutine may read the last.
type snapshots struct {
	mu      sync.Mutex
	current *snapshot // nil: last and refresh were not called yet

	// current was made when the table and the index of images had the first two revisions, and
	// when so many API objects of pods had been replaced (table.Shown).
	revision, images, shown uint64
	touchMu                 sync.Mutex
	touched                 []table.Row // rows whose nodeInfo a plugin has changed
}

// last returns the last snapshot; an empty one before the first.
func (l *snapshots) last() *snapshot {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.current == nil {
		l.current = &snapshot{rows: map[string]table.Row{}}
	}
	return l.current
}

// refresh returns a snapshot of the table as it is now, and makes it the last. It is the last one
// itself if nothing has changed. Nodes that plugins have changed are made anew.
func (l *snapshots) refresh(t *table.Table) *snapshot {
	old := l.last()
	l.touchMu.Lock()
	rows := append(l.touched, t.AppendChanged(nil, l.revision, t.Rows()+1)...)
	l.touched = nil
	l.touchMu.Unlock()
	rows = t.Shown().Append(rows, l.shown)
	images := imageindex.Of(t).Revision() != l.images
	if l.revision != 0 && len(rows) == 0 && !images {
		return old
	}
	if l.revision == 0 || images {
		rows = t.All()
	}
	s := l.next(old, t, rows)
	l.revision, l.images, l.shown = t.Revision(), imageindex.Of(t).Revision(), t.Shown().Count()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.current = s
	return s
}

// next returns a copy of the old snapshot in which the nodes of these rows are as the table
// has them now. The old one does not change, since attempts under way still read it.
func (l *snapshots) next(old *snapshot, t *table.Table, rows []table.Row) *snapshot {
	s := &snapshot{chunks: slices.Clone(old.chunks), rows: old.rows, live: old.live}
	for len(s.chunks)*chunkRows < t.Rows() {
		s.chunks = append(s.chunks, &chunk{})
	}
	copied := make([]bool, len(s.chunks))
	named := false
	for _, r := range rows {
		c, i := int(r)/chunkRows, int(r)%chunkRows
		if !copied[c] {
			of := *s.chunks[c]
			s.chunks[c], copied[c] = &of, true
		}
		was := s.chunks[c][i]
		is := l.nodeAt(t, r, was)
		s.chunks[c][i] = is
		named = named || (was == nil) != (is == nil) || was != nil && was.name() != is.name()
	}
	if named {
		s.rows, s.live = map[string]table.Row{}, 0
		for _, r := range t.All() {
			if n := s.at(r); n != nil {
				s.rows[n.name()] = r
				s.live++
			}
		}
	}
	return s
}

// nodeAt returns the nodeInfo of the row as the table is now; nil if it has no node. It
// reuses what still holds of was, the one before, which may be nil.
func (l *snapshots) nodeAt(t *table.Table, r table.Row, was *nodeInfo) *nodeInfo {
	node := t.Node(r)
	if node == nil {
		return nil
	}
	sums := &[3]amounts{2: amountsOf(node.Allocatable)}
	n := &nodeInfo{object: node, requested: &sums[0], nonZero: &sums[1], allocatable: &sums[2], generation: int64(t.Revision())}
	n.allocatable.pods = int(node.AllowedPods)
	if was != nil {
		n.changed = was.changed
	} else {
		n.changed = func() { l.touch(r) }
	}
	n.node = APINode(node)
	if n.imageRevision = imageindex.Of(t).Revision(); was != nil && was.object == node && was.imageRevision == n.imageRevision {
		n.features, n.images = was.features, was.images
	} else {
		n.features, n.images = ndf.DefaultFramework.TryMap(node.Features), imagesOf(t, node)
	}
	placed := t.Pods(r)
	n.pods = make([]fwk.PodInfo, 0, len(placed))
	var known map[*object.Pod]*podInfo
	for i, pl := range placed {
		info := was.podAt(i)
		if info == nil || info.object != pl.Pod {
			if known == nil {
				known = was.podInfos()
			}
			if info = known[pl.Pod]; info == nil {
				info = newPodInfo(pl.Pod, node.Name)
			}
		}
		n.add(info)
	}
	return n
}

// touch records that a plugin changed the row's nodeInfo, so that it is made anew.
func (l *snapshots) touch(r table.Row) {
	l.touchMu.Lock()
	defer l.touchMu.Unlock()
	l.touched = append(l.touched, r)
}

// podAt returns the i-th pod; nil if there is none, or a plugin has added it.
func (n *nodeInfo) podAt(i int) *podInfo {
	if n == nil || i >= len(n.pods) {
		return nil
	}
	info, _ := n.pods[i].(*podInfo)
	return info
}

// podInfos returns the pods that a snapshot made, by core's pod. n may be nil.
func (n *nodeInfo) podInfos() map[*object.Pod]*podInfo {
	known := map[*object.Pod]*podInfo{}
	if n == nil {
		return known
	}
	for i := range n.pods {
		if info := n.podAt(i); info != nil {
			known[info.object] = info
		}
	}
	return known
}

// APINode returns the node's API object. For a node that was decoded without keeping it,
// APINode returns a new object with the few fields that are known.
func APINode(n *object.Node) *v1.Node {
	if n.API != nil {
		return n.API
	}
	node := &v1.Node{}
	node.Name, node.UID, node.Labels, node.Annotations = n.Name, n.UID, n.Labels, n.Annotations
	node.Spec.Unschedulable, node.Spec.Taints = n.Unschedulable, n.Taints
	return node
}

// imagesOf returns the node's images by name, with their size in bytes and the number
// of nodes that have them.
func imagesOf(t *table.Table, node *object.Node) map[string]*fwk.ImageStateSummary {
	images := make(map[string]*fwk.ImageStateSummary, len(node.Images))
	for _, image := range node.Images {
		for _, name := range image.Names {
			summary := &fwk.ImageStateSummary{Size: image.Bytes}
			if on := imageindex.Of(t).Image(name); on != nil {
				summary.NumNodes = on.Nodes()
			}
			images[name] = summary
		}
	}
	return images
}

// sharedLister is the fwk.SharedLister of plugins. It always reads the last snapshot,
// so that a plugin may keep it. It is their fwk.MutableSnapshotSharedLister too, which
// PodGroupPostFilter plugins may change while they are called (grouppostfilter.go).
type sharedLister struct{ *Hosts }

// StartMutations begins changes of the snapshot. It is an error except in a call of
// PodGroupPostFilter, and if changes have begun already.
func (l sharedLister) StartMutations() error { return l.inTrial((*groupTrial).start) }

// EndMutations undoes the changes since StartMutations. It is an error if that was not called.
func (l sharedLister) EndMutations() error { return l.inTrial((*groupTrial).finish) }

// AddPod adds a pod to the node. It is an error if the pod is placed already, if the node does not
// exist, or before StartMutations.
func (l sharedLister) AddPod(p fwk.PodInfo, node string) error {
	if p == nil || p.GetPod() == nil || p.GetPod().UID == "" {
		return errors.New("AddPod: there is no pod, or none with a UID")
	}
	pod := coreInfo(p)
	return l.inTrial(func(x *groupTrial) error { return x.add(p, pod, node) })
}

// RemovePod removes a pod from the node. It is an error if the pod is not there, or before
// StartMutations.
func (l sharedLister) RemovePod(_ klog.Logger, p *v1.Pod, node string) error {
	if p == nil {
		return errors.New("RemovePod: there is no pod")
	}
	return l.inTrial(func(x *groupTrial) error { return x.remove(p, node) })
}

// NodeInfos returns l.
func (l sharedLister) NodeInfos() fwk.NodeInfoLister { return l }

// StorageInfos returns l.
func (l sharedLister) StorageInfos() fwk.StorageInfoLister { return l }

// PodGroupStates returns the pod groups as a snapshot of kube-scheduler has them.
func (l sharedLister) PodGroupStates() fwk.PodGroupStateLister { return podGroups{l.Hosts, true} }

// PodGroups returns the lister of PodGroup objects.
func (l sharedLister) PodGroups() fwk.PodGroupLister { return l.podGroupObjects() }

// CompositePodGroupStates returns a lister that always fails.
func (l sharedLister) CompositePodGroupStates() fwk.CompositePodGroupStateLister {
	return noCompositeStates{}
}

// CompositePodGroups returns a lister that always fails.
func (l sharedLister) CompositePodGroups() fwk.CompositePodGroupLister { return noComposites{} }

// List returns all nodes. The list is the caller's.
func (l sharedLister) List() ([]fwk.NodeInfo, error) {
	return slices.Clone(l.shownNodes()), nil
}

// HavePodsWithAffinityList returns the nodes with pods that have pod affinity or anti-affinity.
func (l sharedLister) HavePodsWithAffinityList() ([]fwk.NodeInfo, error) {
	return l.that(func(n fwk.NodeInfo) bool { return len(n.GetPodsWithAffinity()) > 0 }), nil
}

// HavePodsWithRequiredAntiAffinityList returns the nodes with pods that have required
// anti-affinity.
func (l sharedLister) HavePodsWithRequiredAntiAffinityList() ([]fwk.NodeInfo, error) {
	return l.that(func(n fwk.NodeInfo) bool { return len(n.GetPodsWithRequiredAntiAffinity()) > 0 }), nil
}

// HavePodsWithRequiredNonHostScopedAntiAffinityList returns nil, as in kube-scheduler without
// the feature gate InterPodAffinityHostnameFastPath.
func (l sharedLister) HavePodsWithRequiredNonHostScopedAntiAffinityList() ([]fwk.NodeInfo, error) {
	return nil, nil
}

// that returns the nodes for which holds is true.
func (l sharedLister) that(holds func(fwk.NodeInfo) bool) []fwk.NodeInfo {
	var list []fwk.NodeInfo
	for _, n := range l.shownNodes() {
		if holds(n) {
			list = append(list, n)
		}
	}
	return list
}

// Get returns the node of that name, or an error if there is none.
func (l sharedLister) Get(name string) (fwk.NodeInfo, error) {
	if n := l.shownNode(name); n != nil {
		return n, nil
	}
	return nil, fmt.Errorf("nodeinfo not found for node name %q", name)
}

// IsPVCUsedByPods reports whether a pod on a node uses the claim, by namespace/name.
func (l sharedLister) IsPVCUsedByPods(key string) bool {
	return slices.ContainsFunc(l.shownNodes(), func(n fwk.NodeInfo) bool { return n.GetPVCRefCounts()[key] > 0 })
}
