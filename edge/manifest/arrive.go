package manifest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-scheduler/berth/edge/admission"
	"github.com/berth-scheduler/berth/edge/decode"
)

// Refused is a pod that admission refuses.
type Refused struct {
	Pod *v1.Pod
	*admission.Refusal
}

// arrivals are the objects that admission has still to see, and what it said.
type arrivals struct {
	// arrived are new pods: those that no API server gave a UID or a time of creation,
	// and that are on no node.
	arrived []*v1.Pod
	// fresh holds the titles of the pods that were new.
	fresh      map[string]bool
	claimsSeen []seenClaim
	// noRuntime are new pods whose RuntimeClass is not known, by class.
	noRuntime map[string][]string
}

// seenClaim is a claim and its place among the set's objects.
type seenClaim struct {
	claim *v1.PersistentVolumeClaim
	at    int
}

func newArrivals() arrivals {
	return arrivals{fresh: map[string]bool{}, noRuntime: map[string][]string{}}
}

// arrive records that the object is a new pod, if it is one.
func (s *Set) arrive(o metav1.Object, key string) {
	p, ok := o.(*v1.Pod)
	if !ok {
		return
	}
	delete(s.fresh, key)
	created := p.CreationTimestamp
	if p.UID == "" && created.IsZero() && p.Spec.NodeName == "" && p.DeletionTimestamp == nil && p.Status.Phase == v1.PodPending {
		s.arrived = append(s.arrived, p)
		s.fresh[key] = true
	}
}

// AdmitNew does with the new pods and claims what admission does, and makes the claims of
// the pods.
func (s *Set) AdmitNew() error {
	for _, c := range s.claimsSeen {
		if c.claim.Spec.VolumeName == "" && s.rules.SetClass(c.claim) {
			s.Objects[c.at] = decode.Object(c.claim)
		}
	}
	s.claimsSeen = nil
	pods, err := s.admitArrived()
	if err != nil || s.Expand == ExpandNone {
		return err
	}
	for _, p := range pods {
		if err := s.claims(nil, p); err != nil {
			return err
		}
	}
	return nil
}

// admitArrived returns the new pods that admission lets in. The others leave the set.
func (s *Set) admitArrived() ([]*v1.Pod, error) {
	arrived := s.arrived
	s.arrived = nil
	known := map[*v1.Pod]bool{}
	for _, p := range arrived {
		known[p] = true
	}
	s.rules.Count(s.Pods, known)
	var admitted []*v1.Pod
	for _, p := range arrived {
		if err := s.classes.Resolve(p); err != nil {
			return nil, fmt.Errorf("%s: %w", s.places[p], err)
		}
		refusal := s.rules.Change(p, recheck)
		if refusal == nil {
			refusal = s.rules.Charge(p)
		}
		if refusal != nil {
			s.Refuse(p, refusal)
			continue
		}
		if !s.rules.HasRuntime(p) {
			class := *p.Spec.RuntimeClassName
			s.noRuntime[class] = append(s.noRuntime[class], p.Namespace+"/"+p.Name)
		}
		delete(known, p)
		delete(s.Refused, p.Namespace+"/"+p.Name)
		admitted = append(admitted, p)
	}
	if len(known) > 0 {
		s.Pods = slices.DeleteFunc(s.Pods, func(p *v1.Pod) bool { return known[p] })
	}
	return admitted, nil
}

// Refuse records that admission refuses the pod. Another may have its name.
func (s *Set) Refuse(p *v1.Pod, why *admission.Refusal) {
	s.Refused[p.Namespace+"/"+p.Name] = Refused{p, why}
	delete(s.known, title("pod", p.Namespace, p.Name))
	delete(s.uids, "Pod "+string(p.UID))
	delete(s.places, p)
}

// recheck says what the API server would not take of a pod that admission changed.
func recheck(p *v1.Pod) error { return join(slices.Concat(decode.CheckPod(p), checkPod(p))) }

// Charge charges a pod that is to be made to the quotas of its namespace. It returns why
// they have no room for it, nil if they have.
func (s *Set) Charge(p *v1.Pod) *admission.Refusal { return s.rules.Charge(p) }

// CoveredBy returns the pods of the set that the quota is about; none if the quota is not known.
func (s *Set) CoveredBy(namespace, quota string) []*v1.Pod {
	return s.rules.CoveredBy(namespace, quota, s.Pods)
}

// Release takes back what was charged for a pod.
func (s *Set) Release(p *v1.Pod) { s.rules.Release(p) }

// Refusals returns why admission refuses pods, by namespace/name.
func (s *Set) Refusals() map[string]string {
	all := map[string]string{}
	for key, r := range s.Refused { // any order: into a map
		all[key] = r.Error()
	}
	return all
}

// uncounted adds notices of what admission would go by and is not counted.
func (s *Set) uncounted() {
	for _, class := range slices.Sorted(maps.Keys(s.noRuntime)) {
		pods := s.noRuntime[class]
		notice := fmt.Sprintf("pod %s: runtimeClassName %s: the input has no such RuntimeClass, so its overhead, node selector and tolerations do not count", pods[0], class)
		if len(pods) > 1 {
			notice += fmt.Sprintf(" (%d pods)", len(pods))
		}
		s.Notices = append(s.Notices, notice)
	}
	if quotas := s.rules.Uncounted(); len(quotas) > 0 {
		s.Notices = append(s.Notices, strings.Join(quotas, "; ")+": does not count, as only what pods take of a quota does")
	}
}
