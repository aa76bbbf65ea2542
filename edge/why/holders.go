package why

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/edge/terminal"
	"github.com/berth-scheduler/berth/edge/workload"
)

// mostHolders bounds the workloads that are named as holding what lacks.
const mostHolders = 2

// Holder is a workload that holds what pods lack.
type Holder struct {
	// Workload is kind/namespace/name, or what is known of it.
	Workload string `json:"workload"`
	Resource string `json:"resource"`
	Amount   string `json:"amount"`
	Pods     int    `json:"pods"`
}

// heldMost lists the workloads that hold most of the resource that is short on the nodes of the
// group, the largest first, but not the pod's own. It returns nil unless room alone is short there.
func (f *facts) heldMost(g *NodeGroup) []Holder {
	var short v1.ResourceName
	for i := range g.Blockers {
		b := &g.Blockers[i]
		if b.Code != decision.Unschedulable.String() {
			return nil
		}
		if len(b.insufficient) > 0 && short == "" {
			short = b.insufficient[0]
		}
	}
	if short == "" {
		return nil
	}
	held := holdings{}
	t := f.cluster.Machine.Table()
	for _, name := range g.names {
		if row, ok := t.Find(name); ok {
			for _, pl := range t.Pods(row) {
				has := pl.Pod.Demand.Usage.Of(short)
				if short == v1.ResourcePods {
					has = 1
				}
				held.add(f.cluster.makerOf(pl.Pod), has)
			}
		}
	}
	delete(held, f.cluster.WorkloadOf(f.api))
	return held.holders(f.cluster, short)
}

// sum is what the pods of a workload hold.
type sum struct {
	amount int64
	pods   int
}

type holdings map[Workload]sum

func (s holdings) add(w Workload, amount int64) {
	if amount > 0 {
		s[w] = sum{s[w].amount + amount, s[w].pods + 1}
	}
}

// holders lists the largest. One behind the first is named if it is at least half as large.
func (s holdings) holders(c *Cluster, resource v1.ResourceName) (all []Holder) {
	sorted := slices.SortedFunc(maps.Keys(s), func(a, b Workload) int {
		return cmp.Or(cmp.Compare(s[b].amount, s[a].amount), cmp.Compare(a.String(), b.String()))
	})
	for _, w := range sorted[:min(mostHolders, len(sorted))] {
		if 2*s[w].amount < s[sorted[0]].amount {
			break
		}
		name := w.String()
		if c.Set.Hidden(w.Namespace) {
			name = "a workload whose pods you may not list"
		}
		all = append(all, Holder{name, string(resource), amount(resource, s[w].amount), s[w].pods})
	}
	return all
}

// text says what the workload holds.
func (h *Holder) text() string {
	if h.Resource == string(v1.ResourcePods) {
		return fmt.Sprintf("%s (%s)", h.Workload, terminal.Count(h.Pods, "pod"))
	}
	return fmt.Sprintf("%s (%s, %s)", h.Workload, h.Amount, terminal.Count(h.Pods, "pod"))
}

// holdersText names those who hold most; indent stands before it.
func holdersText(b *strings.Builder, indent string, holders []Holder) {
	if len(holders) == 0 {
		return
	}
	var texts []string
	for i := range holders {
		texts = append(texts, holders[i].text())
	}
	terminal.Fprintf(b, "%s%s: %s\n", indent, terminal.Plural(len(texts), "Largest holder", "Largest holders"), strings.Join(texts, ", "))
}

// makerOf returns the workload of a placed pod, as far as its API object or else what the
// scheduler keeps of it tells: the pods of an unknown controller go by their names.
func (c *Cluster) makerOf(p *object.Pod) Workload {
	if api := c.indexPods()[p.UID]; api != nil {
		return cmp.Or(c.WorkloadOf(api), Workload{"pod", p.Namespace, p.Name})
	}
	seen := v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Labels: p.Labels}}
	job := cmp.Or(p.Labels["batch.kubernetes.io/job-name"], p.Labels["job-name"])
	controller := true
	switch kind := p.Controller.Kind.String(); {
	case kind != "":
		seen.OwnerReferences = []metav1.OwnerReference{{Kind: kind, Name: p.Controller.Name, Controller: &controller}}
	case job != "":
		seen.OwnerReferences = []metav1.OwnerReference{{Kind: "Job", Name: job, Controller: &controller}}
	case p.Controller.Replacement != object.NoReplacement:
		return likeNamed(p.Namespace, p.Name)
	}
	return cmp.Or(c.WorkloadOf(&seen), Workload{"pod", p.Namespace, p.Name})
}

// likeNamed returns the pods whose names are made from the same one, or the pod where no
// controller makes such a name.
func likeNamed(namespace, pod string) Workload {
	if by := workload.ByName(pod); len(by) > 0 {
		return Workload{"pods", namespace, by[0].Name + "-*"}
	}
	return Workload{"pod", namespace, pod}
}

// indexPods returns the API objects of the set's pods.
func (c *Cluster) indexPods() map[types.UID]*v1.Pod {
	if c.index.pods == nil {
		c.index.pods = make(map[types.UID]*v1.Pod, len(c.Set.Pods))
		for _, p := range c.Set.Pods {
			c.index.pods[p.UID] = p
		}
	}
	return c.index.pods
}
