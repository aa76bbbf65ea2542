package whatif

import (
	"cmp"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/edge/manifest"
	"github.com/berth-scheduler/berth/sim"
)

// session is a run with changes. It owns the set.
type session struct {
	set     *manifest.Set
	cluster *sim.Cluster
	world   *sim.World
	start   time.Time
	options Options
	counted bool // a profile counts ElasticQuotas

	// pods and nodes are the API's forms of what is or was in the cluster.
	pods  map[string]*v1.Pod // by namespace/name
	nodes map[string]*v1.Node

	changed bool            // changes were asked for
	there   map[string]bool // pods of the cluster with the changes, by namespace/name: not what a question adds

	running []*object.Pod // at the start, by namespace and name
	gone    map[string]string
	left    map[string]string // by a drain, and why
	leaving []leaver
	asked   map[string]bool // pods that are or were leaving
	budgets []*budget
	bare    []string // pods without controller that were made again all the same
}

// leaver is a pod that is to be evicted. why is what keeps it, and by the budgets that do.
type leaver struct {
	pod  string // namespace/name
	uid  types.UID
	node string
	why  string
	by   []BudgetUse
}

func newSession(set *manifest.Set, in *sim.Input, o Options) *session {
	s := &session{set: set, start: in.Start, options: o, pods: map[string]*v1.Pod{}, nodes: map[string]*v1.Node{}, gone: map[string]string{}, left: map[string]string{}, asked: map[string]bool{}, there: map[string]bool{}}
	for _, p := range set.Pods {
		s.pods[p.Namespace+"/"+p.Name] = p
	}
	for _, n := range set.Nodes {
		s.nodes[n.Name] = n
	}
	for _, p := range in.Pods {
		if p.NodeName != "" && !p.Terminal {
			s.running = append(s.running, p)
		}
	}
	slices.SortFunc(s.running, func(a, b *object.Pod) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	for _, p := range in.Machine.Profiles {
		s.counted = s.counted || p.Quotas != nil
	}
	s.countBudgets()
	return s
}

// begin makes the changes and starts the evictions.
func (s *session) begin(w *sim.World, changes []Change) error {
	s.cluster, s.world, s.changed = w.Cluster, w, len(changes) > 0
	for i := range changes {
		if err := s.made(&changes[i]); err != nil {
			return err
		}
	}
	s.evictAllowed()
	for pod := range s.set.Refused { // any order: into a map
		s.there[pod] = true
	}
	return nil
}

// again makes the pod anew, without a node, as its controller does when it is
// gone, if the quotas of its namespace have room for it. It is another pod of the same
// name; its claims follow it. One that is held is not tried.
func (s *session) again(key string, held bool) {
	old := s.pods[key]
	if metav1.GetControllerOfNoCopy(old) == nil {
		s.bare = append(s.bare, key)
	}
	p := old.DeepCopy()
	p.UID = old.UID + "-again"
	p.Spec.NodeName = ""
	p.CreationTimestamp, p.DeletionTimestamp = metav1.Time{}, nil
	p.Status = v1.PodStatus{Phase: v1.PodPending, ResourceClaimStatuses: p.Status.ResourceClaimStatuses}
	s.set.Release(old)
	if refusal := s.set.Charge(p); refusal != nil {
		s.set.Refuse(p, refusal)
		return
	}
	s.pods[key] = p
	now := s.set.DecodePod(p)
	s.releaseClaims(old.UID, now)
	if held {
		s.cluster.Hold(now)
		return
	}
	s.cluster.SetPod(now)
}

// lose takes the running pod from its node: it is made again, unless it belongs
// to the node, which is what why says then.
func (s *session) lose(p *object.Pod, why string) {
	_ = s.cluster.DeletePod(p.Key()) // it is there: it was listed
	if why != "" {
		s.gone[p.Key()] = why
		return
	}
	s.again(p.Key(), false)
}

// stays tells why the pod belongs to its node; "" when it can run elsewhere.
func (s *session) stays(key string) string {
	p := s.pods[key]
	owner := metav1.GetControllerOfNoCopy(p)
	switch {
	case p.Annotations[v1.MirrorPodAnnotationKey] != "", owner != nil && owner.Kind == "Node":
		return "a static pod of its node"
	case owner != nil && owner.Kind == "DaemonSet":
		return "a pod of DaemonSet " + owner.Name
	}
	return ""
}

// byNode lists the pods on each node, by namespace and name.
func (s *session) byNode() map[string][]*object.Pod {
	on := map[string][]*object.Pod{}
	for _, p := range s.cluster.Pods() {
		if p.NodeName != "" {
			on[p.NodeName] = append(on[p.NodeName], p)
		}
	}
	return on
}

// leave notes that the pod is to be evicted.
func (s *session) leave(p *object.Pod) {
	if s.asked[p.Key()] {
		return
	}
	s.asked[p.Key()] = true
	delete(s.left, p.Key())
	s.leaving = append(s.leaving, leaver{pod: p.Key(), uid: p.UID, node: p.NodeName})
}

// evictAllowed evicts those pods that the budgets let go now; false when there
// is none. Once the others of a budget run again, more may go.
func (s *session) evictAllowed() bool {
	s.countDown()
	evicted := false
	var rest []leaver
	for _, l := range s.leaving {
		p := s.cluster.Pod(l.pod)
		if p == nil || p.UID != l.uid || p.NodeName == "" {
			continue // somebody evicted it, or it is going anyway
		}
		if l.why, l.by = s.refused(p); l.why != "" && !s.options.IgnoreBudgets {
			rest = append(rest, l)
			continue
		}
		s.lose(p, "")
		s.lost(p)
		evicted = true
	}
	s.leaving = rest
	s.tellBudgets()
	return evicted
}
