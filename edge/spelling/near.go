package spelling

import (
	"cmp"
	"slices"
	"strings"
)

// DidYouMean proposes the names that are nearest to a name: "; did you mean a or b?". It is
// empty if none is near.
func DidYouMean(name string, names []string) string {
	type near struct {
		name     string
		distance int
	}
	var found []near
	for _, n := range names {
		d := Distance(name, n)
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
