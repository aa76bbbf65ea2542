package why

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/berth-scheduler/berth/edge/spelling"
)

// mostNear is how many similar names an error suggests.
const mostNear = 3

// noSuchPod says that there is no such pod, and which have similar names.
func (c *Cluster) noSuchPod(namespace, name string) error {
	type near struct {
		key      string
		distance int
	}
	var all []near
	for _, p := range c.Set.Pods {
		d := spelling.Distance(name, p.Name)
		if strings.Contains(p.Name, name) || strings.Contains(name, p.Name) {
			d = min(d, 2)
		}
		if d > max(2, len(name)/4) {
			continue
		}
		if p.Namespace != namespace {
			d++
		}
		all = append(all, near{p.Namespace + "/" + p.Name, d})
	}
	slices.SortFunc(all, func(a, b near) int { return cmp.Or(cmp.Compare(a.distance, b.distance), cmp.Compare(a.key, b.key)) })
	text := fmt.Sprintf("pod %s/%s: there is no such pod", namespace, name)
	if len(all) == 0 {
		return fmt.Errorf("%s among %d", text, len(c.Set.Pods))
	}
	var names []string
	for _, n := range all[:min(mostNear, len(all))] {
		names = append(names, n.key)
	}
	return fmt.Errorf("%s; did you mean %s?", text, strings.Join(names, ", "))
}

// list is names, the first few of them.
func list(names []string, most int) string {
	if len(names) > most+1 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}
