package whatif

import (
	"cmp"
	"slices"
	"strings"
)

// didYouMean proposes the nearest names, or is empty: "; did you mean a or b?".
func didYouMean(name string, names []string) string {
	type near struct {
		name     string
		distance int
	}
	var found []near
	for _, n := range names {
		d := distance(name, n)
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

// distance is the number of letters to insert, delete or replace.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(row[j+1]+1, row[j]+1, change)
		}
	}
	return row[len(b)]
}
