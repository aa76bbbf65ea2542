package why

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/edge/spelling"
)

// mostNear is how many similar names an error suggests.
const mostNear = 3

// noSuchPod says that no pod has the name, which is as for Find, and what may be meant instead.
func (c *Cluster) noSuchPod(name, namespace string) error {
	in, plain := c.inNamespace(name, namespace)
	if meant := c.Meant(name, namespace); meant != "" {
		return fmt.Errorf("pod %s/%s: there is no such pod; %s", in, plain, meant)
	}
	return fmt.Errorf("pod %s/%s: there is no such pod among %d", in, plain, len(c.Set.Pods))
}

// Meant says what a name that no pod has may stand for: a workload, or pods that are called like it.
// The name and the namespace are as for Find. It returns "" if there is nothing like it.
func (c *Cluster) Meant(name, namespace string) string {
	if w, give := c.called(name, namespace); give != "" {
		return fmt.Sprintf("there is %s %s/%s: give %s", w.Kind, w.Namespace, w.Name, give)
	}
	known := map[string]bool{}
	for _, p := range c.Set.Pods {
		known[p.Namespace+"/"+p.Name] = true
	}
	in, plain := c.inNamespace(name, namespace)
	if meant := didYouMean(in, plain, known); meant != "" || plain == name {
		return meant
	}
	return meantKind(c.Set.Pods, in, plain)
}

// meantKind proposes the kind of workload that a namespace without pods is spelt like; "" if it is
// like none.
func meantKind(pods []*v1.Pod, namespace, name string) string {
	if slices.ContainsFunc(pods, func(p *v1.Pod) bool { return p.Namespace == namespace }) {
		return ""
	}
	distance := func(kind string) int { return spelling.Distance(strings.ToLower(namespace), kind) }
	meant := slices.MinFunc(slices.Sorted(maps.Keys(workloadKinds)), func(a, b string) int { return cmp.Compare(distance(a), distance(b)) })
	if distance(meant) > min(2, len(namespace)/3) {
		return ""
	}
	return fmt.Sprintf("did you mean %s/%s?", meant, name)
}

// inNamespace returns the namespace and the name that a name stands for first.
func (c *Cluster) inNamespace(name, namespace string) (in, plain string) {
	if in, plain, qualified := strings.Cut(name, "/"); qualified {
		return in, plain
	}
	return cmp.Or(namespace, c.Namespace, v1.NamespaceDefault), name
}

// called returns the workload that has the name, and what to give to ask about it; "" if there is
// none. One of the name's own namespace comes first. Others count if the name has no namespace.
func (c *Cluster) called(name, namespace string) (found Workload, give string) {
	in, plain := c.inNamespace(name, namespace)
	all := quotas(c.Machine)
	for _, o := range c.all() {
		all = append(all, keyOf(o))
	}
	for _, p := range c.Set.Pods {
		all = append(all, c.WorkloadOf(p))
	}
	only := namespace != "" || plain != name
	all = slices.DeleteFunc(all, func(w Workload) bool {
		return w.Name != plain || workloadKinds[w.Kind] == "" || only && w.Namespace != in
	})
	if len(all) == 0 {
		return found, ""
	}
	found = slices.MinFunc(all, func(a, b Workload) int {
		switch {
		case a.Namespace == b.Namespace:
			return cmp.Compare(a.Kind, b.Kind)
		case a.Namespace == in:
			return -1
		case b.Namespace == in:
			return 1
		}
		return cmp.Compare(a.Namespace, b.Namespace)
	})
	give = found.Kind + "/" + found.Name
	if found.Namespace != in || plain != name {
		give = found.Namespace + "/" + give
	}
	return found, give
}

// didYouMean proposes those of the known names that are like the one that was asked for; "" if none
// is. All are NAMESPACE/NAME.
func didYouMean(namespace, name string, known map[string]bool) string {
	type near struct {
		key      string
		distance int
	}
	var all []near
	for key := range known { // any order: sorted below
		in, plain, _ := strings.Cut(key, "/")
		d := spelling.Distance(name, plain)
		if strings.Contains(plain, name) || strings.Contains(name, plain) {
			d = min(d, 2)
		}
		if strings.HasPrefix(plain, name+"-") { // as the pods of a workload are called
			d = min(d, 1)
		}
		if d > max(2, len(name)/4) {
			continue
		}
		if in != namespace {
			d++
		}
		all = append(all, near{key, d})
	}
	slices.SortFunc(all, func(a, b near) int { return cmp.Or(cmp.Compare(a.distance, b.distance), cmp.Compare(a.key, b.key)) })
	if len(all) == 0 {
		return ""
	}
	var names []string
	for _, n := range all[:min(mostNear, len(all))] {
		names = append(names, n.key)
	}
	return fmt.Sprintf("did you mean %s?", strings.Join(names, ", "))
}

// list is names, the first few of them.
func list(names []string, most int) string {
	if len(names) > most+1 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}
