package chaos

import (
	"errors"
	"strconv"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/sim/apiserver"
)

const csiNodes = "csinodes.storage.k8s.io"

// limit says how many volumes that the driver made a node takes.
func (p *play) limit(words []string) error {
	if len(words) != 2 {
		return errors.New("want a node and a number")
	}
	n, err := strconv.ParseInt(words[1], 10, 32)
	if err != nil || n < 1 {
		return errors.New("want a node and a number")
	}
	drivers := []storagev1.CSINodeDriver{{Name: driver, NodeID: words[0], Allocatable: &storagev1.VolumeNodeResources{Count: ptr.To(int32(n))}}}
	if p.server.Get(csiNodes, "", words[0]) != nil {
		return p.server.Update(csiNodes, "", words[0], func(o apiserver.Object) { o.(*storagev1.CSINode).Spec.Drivers = drivers })
	}
	return p.server.Create(&storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: words[0]}, Spec: storagev1.CSINodeSpec{Drivers: drivers}})
}

func limitOf(n *storagev1.CSINode) int { return int(*n.Spec.Drivers[0].Allocatable.Count) }

// madeClaimsOf names the pod's claims whose volumes the driver makes.
func (s *stored) madeClaimsOf(pod *v1.Pod) (names []string) {
	for _, name := range claimsOf(pod) {
		if claim := s.claims[name]; claim != nil && *claim.Spec.StorageClassName == madeClass {
			names = append(names, name)
		}
	}
	return names
}

// claimsOf names the claims of volumes of a pod.
func claimsOf(pod *v1.Pod) (names []string) {
	for i := range pod.Spec.Volumes {
		if source := pod.Spec.Volumes[i].PersistentVolumeClaim; source != nil {
			names = append(names, source.ClaimName)
		}
	}
	return names
}

// attaches tells whether the node takes the pod's volumes beside those of the pods
// there, except for those without which it may count.
func (s *stored) attaches(pod *v1.Pod, n *v1.Node, pods []*v1.Pod, without func(*v1.Pod) bool) bool {
	limit, limited := s.limits[n.Name]
	attached := map[string]bool{}
	for _, other := range pods {
		if other.Spec.NodeName == n.Name && (without == nil || !without(other)) {
			for _, claim := range s.madeClaimsOf(other) {
				attached[claim] = true
			}
		}
	}
	before := len(attached)
	for _, claim := range s.madeClaimsOf(pod) {
		attached[claim] = true
	}
	return !limited || len(attached) == before || len(attached) <= limit
}

// learn notes at which step the process was told of a limit, or of a claim.
func (k *knowledge) learn(o object.Object) {
	switch o := o.(type) {
	case *object.CSINode:
		for i := range o.Drivers {
			k.limits[o.Name] = limited{int(o.Drivers[i].Limit), k.step}
		}
	case *object.PersistentVolumeClaim:
		if _, known := k.claims[o.Name]; !known {
			k.claims[o.Name] = k.step
		}
	}
}

// limited is the number of volumes that a node takes, and the step in which a
// process was told so.
type limited struct{ limit, step int }

// overAttached tells whether the process, when it decided at that step to place the
// pod, knew that the node does not take its volumes beside those of the others that
// count. A pod whose volumes are all there already, for others, fits.
func (c *check) overAttached(k *knowledge, at placed, pod *onNode, others []*onNode) bool {
	l, known := k.limits[pod.node]
	attached := map[string]bool{}
	attach := func(p *onNode) {
		for _, claim := range p.claims {
			if step, told := k.claims[claim]; c.made[claim] && told && step < at.step {
				attached[claim] = true
			}
		}
	}
	for _, p := range others {
		attach(p)
	}
	before := len(attached)
	attach(pod)
	return known && l.step < at.step && len(attached) > before && len(attached) > l.limit
}
