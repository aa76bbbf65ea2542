package whatif

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-scheduler/berth/edge/decode"
	"github.com/berth-scheduler/berth/edge/workload"
)

// apply puts the objects of files in the place of those of the same name. Pods
// of a workload whose template changes are made anew, all at once.
func (s *session) apply(c *Change) error {
	set := s.set
	nodes, pods, budgets, workloads := slices.Clone(set.Nodes), slices.Clone(set.Pods), slices.Clone(set.Budgets), slices.Clone(set.Workloads)
	objects, owners, namespaces := len(set.Objects), len(set.SelectorOwners), len(set.Namespaces)
	set.Replace = true
	if err := set.Files(c.Operands, s.options.Stdin, 1); err != nil {
		return err
	}
	if err := set.AdmitNew(); err != nil {
		return err
	}
	for _, n := range set.Namespaces[namespaces:] {
		s.cluster.SetNamespace(n)
	}
	s.tellNew(objects, owners)
	for _, n := range set.Nodes {
		if !slices.Contains(nodes, n) {
			s.nodes[n.Name] = n
			s.cluster.SetNode(s.set.DecodeNode(n))
		}
	}
	for _, p := range set.Pods {
		if !slices.Contains(pods, p) {
			if err := s.applyPod(p); err != nil {
				return err
			}
		}
	}
	for _, o := range set.Workloads {
		if !slices.Contains(workloads, o) {
			if err := s.applyWorkload(o, workloads); err != nil {
				return err
			}
		}
	}
	s.applyBudgets(budgets)
	return nil
}

func (s *session) applyBudgets(before []*policyv1.PodDisruptionBudget) {
	for _, b := range s.set.Budgets {
		if !slices.Contains(before, b) {
			workload.FillBudget(b, s.set.Pods)
			s.cluster.SetBudget(decode.Budget(b))
		}
	}
	s.countBudgets()
}

func (s *session) applyPod(p *v1.Pod) error {
	if err := s.set.Priority(p); err != nil {
		return err
	}
	key := p.Namespace + "/" + p.Name
	if old := s.cluster.Pod(key); old != nil {
		_ = s.cluster.DeletePod(key) // it is there
		if p.Spec.NodeName == "" || p.UID == old.UID {
			p.UID = old.UID + "-again"
		}
	}
	s.setPod(p)
	return nil
}

func (s *session) applyWorkload(o metav1.Object, before []metav1.Object) error {
	w, ok := workload.Of(o)
	if !ok {
		return nil
	}
	for _, old := range before {
		was, ok := workload.Of(old)
		switch {
		case !ok || was.Title() != w.Title():
		case sameTemplate(was, w):
			return s.scaleTo(w, w.Replicas)
		case w.Paused:
			return s.scaleTo(was, w.Replicas)
		}
	}
	if w.Paused {
		return nil
	}
	for _, p := range s.owned(w) {
		s.dropPod(p.Namespace+"/"+p.Name, "its "+w.Kind+" has another template")
	}
	_, err := s.make(w, nil)
	return err
}
