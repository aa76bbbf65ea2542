package group

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/object"
)

// labelled is what the labels of a group's pods say of it, where there is no object that
// does.
type labelled struct {
	minAvailable map[string]int   // number of members by their label min-available, "" for none
	group        *object.PodGroup // as the labels describe it; nil: the group has an object
}

// Labelled returns the group as the labels of its pods describe it, another object whenever
// they say something else. It is nil for a group that has an object, or no pods.
func (g *Group) Labelled() *object.PodGroup {
	if g == nil {
		return nil
	}
	return g.group
}

// read takes the label min-available of p, the pod of the member, over into what the labels say.
// again is set if an earlier state of the pod was read. It does nothing for a group that has an
// object.
func (g *Group) read(p *object.Pod, m *member, again bool) {
	source, _ := object.GroupSource(p.PodGroup())
	if !object.FromLabels(source) {
		return
	}
	text := p.Labels[object.MinAvailableLabel(source)]
	if again && m.minAvailable == text {
		return
	}
	if g.minAvailable == nil {
		g.minAvailable = map[string]int{}
	}
	gone := again && g.drop(m.minAvailable)
	m.minAvailable = text
	if g.minAvailable[text]++; g.minAvailable[text] == 1 || gone {
		g.describeAgain(p.GroupKey())
	}
}

// unread drops the label of a member that leaves the group.
func (g *Group) unread(p *object.Pod, m *member) {
	if g.group != nil && g.drop(m.minAvailable) {
		g.describeAgain(p.GroupKey())
	}
}

// drop counts the label of one member less. It reports whether no member has it any more.
func (g *Group) drop(text string) (gone bool) {
	g.minAvailable[text]--
	if gone = g.minAvailable[text] == 0; gone {
		delete(g.minAvailable, text)
	}
	return gone
}

// describeAgain sets the group to what the labels describe now, if that is something else.
func (g *Group) describeAgain(name types.NamespacedName) {
	if now := g.describe(name); g.group == nil || *now != *g.group {
		g.group = now
	}
}

// mostShown is how many labels that differ are named. There may be as many as pods, and each
// pod that comes must not cost a look at all of them.
const mostShown = 3

// describe returns the group of this name that the labels describe, a gang. It has a Fault if the
// pods' labels differ, are missing or are no number of at least 1.
func (g *Group) describe(name types.NamespacedName) *object.PodGroup {
	source, short := object.GroupSource(name.Name)
	o := &object.PodGroup{Meta: object.Meta{Kind: object.PodGroups, Namespace: name.Namespace, Name: short}, Source: source, Gang: true}
	label := object.MinAvailableLabel(source)
	if len(g.minAvailable) > mostShown {
		o.Fault = fmt.Sprintf("its pods do not agree on the label %s: it has more than %d values", label, mostShown)
		return o
	}
	texts := slices.Sorted(maps.Keys(g.minAvailable))
	if len(texts) != 1 {
		for i, text := range texts {
			if texts[i] = strconv.Quote(text); text == "" {
				texts[i] = "none"
			}
		}
		o.Fault = fmt.Sprintf("its pods do not agree on the label %s: %s", label, strings.Join(texts, " and "))
		return o
	}
	n, err := strconv.ParseInt(texts[0], 10, 32)
	switch {
	case texts[0] == "":
		o.Fault = fmt.Sprintf("its pods lack the label %s", label)
	case err != nil || n < 1:
		o.Fault = fmt.Sprintf("the label %s of its pods is %q, and should be a number of pods, at least 1", label, texts[0])
	}
	o.MinCount = int(n)
	return o
}

// checkLabels returns an error unless the labels that were read are those of the members.
func (g *Group) checkLabels(name types.NamespacedName) error {
	if source, _ := object.GroupSource(name.Name); !object.FromLabels(source) {
		return nil
	}
	counted := map[string]int{}
	for i := range g.members {
		counted[g.members[i].minAvailable]++
	}
	if !maps.Equal(counted, g.minAvailable) || g.group == nil || *g.group != *g.describe(name) {
		return fmt.Errorf("group: the labels of %s are %v, counted are %v", name, counted, g.minAvailable)
	}
	return nil
}
