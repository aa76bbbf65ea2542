package day

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/machine"
)

// Later makes or replaces an object. The watch shows it in its turn.
func (c *Cluster) Later(o metav1.Object) { c.coming = append(c.coming, c.set(o)) }

// DeleteLater deletes a pod, if it is there. The watch shows that in its turn.
func (c *Cluster) DeleteLater(uid types.UID) {
	if p := c.pods[uid]; p != nil {
		delete(c.pods, uid)
		c.coming = append(c.coming, machine.PodGone{UID: uid, Namespace: p.Namespace, Name: p.Name})
	}
}

// Waiting returns how many events wait to be told to the machine.
func (c *Cluster) Waiting() int { return len(c.coming) }

// DeliverOne gives the machine the next reply, or the next event of the watch. It does
// nothing where there is none.
func (c *Cluster) DeliverOne(reply bool) {
	at := slices.IndexFunc(c.coming, func(e machine.Event) bool { return isReply(e) == reply })
	if at < 0 {
		return
	}
	e := c.coming[at]
	c.coming = slices.Delete(c.coming, at, at+1)
	c.Step(e)
}

func isReply(e machine.Event) bool {
	switch e.(type) {
	case machine.BindReply, machine.WriteReply, machine.ReadReply, machine.ExtenderReply, machine.EvictReply:
		return true
	}
	return false
}

// Restart gives the cluster another machine, which is told of all pods, and of the
// objects that only plugins read. What the one before waited for is lost.
func (c *Cluster) Restart(m *machine.Machine) {
	c.Machine, c.coming = m, nil
	for _, key := range slices.Sorted(maps.Keys(c.others)) {
		c.Set(c.others[key])
	}
	for _, p := range c.Pods() {
		c.Set(p)
	}
}

// Forget deletes a pod, if it is there, without a word of the watch: it shows another
// one under the name.
func (c *Cluster) Forget(uid types.UID) { delete(c.pods, uid) }
