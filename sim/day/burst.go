package day

import (
	"math/rand/v2"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/machine"
)

// Burst adds many pods at a time. Measurements use it.
type Burst struct {
	g    *generator
	next int
	here []types.UID
}

// NewBurst adds that many nodes to the cluster.
func NewBurst(c *Cluster, nodes int) *Burst {
	b := &Burst{g: &generator{Cluster: c, size: Size{Nodes: nodes, Pods: 1, Length: time.Hour}, draw: rand.New(rand.NewPCG(1, 1))}} // #nosec G404 -- a load is to be the same each time
	for i := range nodes {
		c.Set(b.g.node(i))
	}
	return b
}

// Arrivals are the events that tell of that many new pods.
func (b *Burst) Arrivals(n int) []machine.Event {
	b.g.Now = b.g.Now.Add(time.Second)
	var events []machine.Event
	for range n {
		p := b.g.newPod(b.next)
		b.next++
		b.here = append(b.here, p.UID)
		events = append(events, b.g.set(p))
	}
	return events
}

// Leave deletes the pods.
func (b *Burst) Leave() {
	for _, uid := range b.here {
		b.g.Delete(uid)
	}
	b.here = b.here[:0]
}
