package tool

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/berth-scheduler/berth/edge/records"
	"github.com/berth-scheduler/berth/edge/terminal"
	"github.com/berth-scheduler/berth/edge/workload"
)

// evictionTexts says who evicts whom, those with most victims first. Pods of one family count
// together.
func evictionTexts(of []records.Preemption) []string {
	type family struct{ by, victims string }
	groups := map[family][]records.Preemption{}
	for _, p := range of {
		var victims []string
		for _, v := range p.Victims {
			victims = append(victims, workload.Family(v))
		}
		slices.Sort(victims)
		f := family{workload.Family(p.For), strings.Join(slices.Compact(victims), ", ")}
		groups[f] = append(groups[f], p)
	}
	type line struct {
		pods int
		text string
	}
	var lines []line
	for f, all := range groups { // any order: sorted below
		l := line{all[0].Evicted, preemptionText(&all[0])}
		if len(all) > 1 {
			l.pods = 0
			for i := range all {
				l.pods += all[i].Evicted
			}
			l.text = fmt.Sprintf("%s of %s for %d pods of %s", terminal.Count(l.pods, "pod"), f.victims, len(all), f.by)
		}
		lines = append(lines, l)
	}
	slices.SortFunc(lines, func(a, b line) int { return cmp.Or(cmp.Compare(b.pods, a.pods), cmp.Compare(a.text, b.text)) })
	texts := make([]string, len(lines))
	for i := range lines {
		texts[i] = lines[i].text
	}
	return texts
}
