package whatif

import (
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/object"
)

// copier adds copies of a pod.
type copier struct {
	*session
	api     *v1.Pod
	each    int    // copies of a round
	more    int    // of the first round, beside each
	group   string // each round is one more of this group; "": copies stay in the pod's
	rounds  int
	decoded *object.Pod // a copy; nil before the first
	copies  int
}

func (c *copier) scheduler() string { return c.api.Spec.SchedulerName }

func (c *copier) add() (pods []string, refused string, err error) {
	n := c.each + c.more
	c.more, c.rounds = 0, c.rounds+1
	if c.group != "" {
		groups{c.session}.copyGroup(c.api.Namespace, c.group, numbered(c.group, c.rounds))
	}
	for range n {
		if refusal := c.set.Charge(c.api); refusal != nil {
			return pods, refusal.Error(), nil
		}
		c.copies++
		name := fmt.Sprintf("%s-fit-%d", c.api.Name, c.copies)
		if err := c.addCopy(name); err != nil {
			return pods, "", err
		}
		pods = append(pods, c.api.Namespace+"/"+name)
	}
	return pods, "", nil
}

// addCopy adds a copy. All copies share what is decoded of the pod, as it may be as large as
// the API takes it. Those that need claims of their own are made one by one, through the
// set.
func (c *copier) addCopy(name string) error {
	if slices.ContainsFunc(c.api.Spec.Volumes, func(v v1.Volume) bool { return v.Ephemeral != nil }) || len(c.api.Spec.ResourceClaims) > 0 {
		p := c.copyOf(name)
		objects, owners := len(c.set.Objects), len(c.set.SelectorOwners)
		if err := c.set.AddPod(p, "the copy"); err != nil {
			return err
		}
		c.tellNew(objects, owners)
		c.cluster.SetPod(c.set.DecodePod(p))
		return nil
	}
	if c.group != "" { // the copies of a round alone are alike
		c.cluster.SetPod(c.set.DecodePod(c.copyOf(name)))
		return nil
	}
	if c.decoded == nil {
		c.decoded = c.set.DecodePod(c.copyOf(name))
	}
	p := *c.decoded
	p.Name, p.UID = name, copyUID(p.Namespace, name)
	if p.API != nil {
		p.API = c.copyOf(name)
	}
	c.cluster.SetPod(&p)
	return nil
}

// copyOf returns a copy of the pod that is pending and evicts nobody.
func (c *copier) copyOf(name string) *v1.Pod {
	never := v1.PreemptNever
	p := c.api.DeepCopy()
	p.ObjectMeta = metav1.ObjectMeta{Namespace: p.Namespace, Name: name, UID: copyUID(p.Namespace, name),
		Labels: p.Labels, Annotations: p.Annotations, OwnerReferences: p.OwnerReferences}
	p.Spec.NodeName, p.Spec.PreemptionPolicy = "", &never
	p.Status = v1.PodStatus{}
	if c.group != "" {
		joinGroup(&p.ObjectMeta, &p.Spec, numbered(c.group, c.rounds))
	}
	return p
}

func copyUID(namespace, name string) types.UID { return types.UID("pod " + namespace + "/" + name) }
