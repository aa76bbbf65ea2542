package tool

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/berth-scheduler/berth/edge/records"
)

// Names of pods as controllers make them: with a random end, of a ReplicaSet's behind the hash of
// its template, or with a number.
var (
	randomName   = regexp.MustCompile(`^(.+?)(-[bcdfghjklmnpqrstvwxz2456789]{7,10})?-[bcdfghjklmnpqrstvwxz2456789]{5}$`)
	numberedName = regexp.MustCompile(`-\d+$`)
)

// familyOf returns what the names of a pod and of those that were made like it have in common, with
// a * for the rest: the record keeps names alone of pods that are gone.
func familyOf(pod string) string {
	found := randomName.FindStringSubmatch(pod)
	if found == nil {
		return numberedName.ReplaceAllString(pod, "-*")
	}
	return numberedName.ReplaceAllString(found[1], "") + "-*"
}

// evictionTexts says who evicts whom, those with most victims first. Pods of one family count
// together.
func evictionTexts(of []records.Preemption) []string {
	type family struct{ by, victims string }
	groups := map[family][]records.Preemption{}
	for _, p := range of {
		var victims []string
		for _, v := range p.Victims {
			victims = append(victims, familyOf(v))
		}
		slices.Sort(victims)
		f := family{familyOf(p.For), strings.Join(slices.Compact(victims), ", ")}
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
			l.text = fmt.Sprintf("%s of %s for %d pods of %s", plural(l.pods, "pod"), f.victims, len(all), f.by)
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
