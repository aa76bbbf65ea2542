package spelling

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// DidYouMean proposes the names that are nearest to a name: "; did you mean a or b?". It is
// empty if none is near.
func DidYouMean(name string, names []string) string {
	found := nearest(name, names)
	if len(found) == 0 {
		return ""
	}
	return "; did you mean " + strings.Join(found, " or ") + "?"
}

// Profile names the profile whose name is nearest to the schedulerName of pods: either of them may be
// the one that is wrong. It is empty if none is near.
func Profile(schedulerName string, profiles []string) string {
	found := nearest(schedulerName, profiles)
	if len(found) == 0 {
		return ""
	}
	return fmt.Sprintf("; the configuration has the profile %q: one of the two names is misspelt", found[0])
}

// nearest returns at most three names that are nearest to a name.
func nearest(name string, names []string) []string {
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
	return text
}
