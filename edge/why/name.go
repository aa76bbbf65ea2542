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
	known := map[string]bool{}
	for _, p := range c.Set.Pods {
		known[p.Namespace+"/"+p.Name] = true
	}
	return didYouMean(fmt.Sprintf("pod %s/%s: there is no such pod", namespace, name), namespace, name, known)
}

// didYouMean is the text as an error, with those of the known names that are like the one
// that was asked for. All are NAMESPACE/NAME.
func didYouMean(text, namespace, name string, known map[string]bool) error {
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
		return fmt.Errorf("%s among %d", text, len(known))
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
