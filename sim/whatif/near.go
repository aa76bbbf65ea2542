package whatif

import (
	"cmp"
	"slices"
	"strings"

	"github.com/berth-scheduler/berth/edge/spelling"
)

// DidYouMean proposes the nearest names, or is empty: "; did you mean a or b?".
func DidYouMean(name string, names []string) string {
	type near struct {
		name     string
		distance int
	}
	var found []near
	for _, n := range names {
		d := spelling.Distance(name, n)
		if strings.HasPrefix(n, name) || strings.HasSuffix(n, "/"+name) {
			d = min(d, 1)
		}
		if d <= (len(name)+1)/3 && d < len(name) {
			found = append(found, near{n, d})
		}
	}
	slices.SortFunc(found, func(a, b near) int { return cmp.Or(cmp.Compare(a.distance, b.distance), cmp.Compare(a.name, b.name)) })
	var text []string
	for i, n := range found {
		if i < 3 && n.distance == found[0].distance {
			text = append(text, n.name)
		}
	}
	if len(text) == 0 {
		return ""
	}
	return "; did you mean " + strings.Join(text, " or ") + "?"
}
