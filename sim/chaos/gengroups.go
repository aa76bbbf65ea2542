package chaos

import (
	"fmt"
	"slices"
	"strings"
)

// batchOf are the words of the directive for the kinds of groups and quotas of the story.
func (g *generator) batchOf() string {
	var words []string
	if g.with.has(withGroups) {
		g.groupKind = g.word(nativeGroups, nativeGroups, labelGroups)
		words = append(words, g.groupKind)
	}
	if g.with.has(withQuotas) {
		words = append(words, withQuotas)
	}
	return strings.Join(words, " ")
}

// namespace is where a pod is.
func (g *generator) namespace() string {
	if !g.with.has(withQuotas) {
		return ""
	}
	return g.word("", "a/", "a/", "b/", "b/", "c/")
}

// quota makes or changes a quota.
func (g *generator) quota() {
	least := g.pick(0, 1, 2, 2, 3)
	g.line("quota %s min=%d max=%d", g.word("a", "b", "b", "c"), least, least+g.pick(0, 1, 2, 4))
}

// group is a group with its pods, and now and then a fault that hits it on the way.
func (g *generator) group() {
	switch g.IntN(6) {
	case 0:
		g.line("fault %s replica=leader on=bind for=20s nth=%d", g.word(crashAt, crashAfter), g.pick(1, 2, 2, 3))
	case 1:
		g.line("fault %s on=%s for=8s share=%d%%", g.word(lostReply, lostReply, lostRequest, hangReply), g.word(bindRequest, bindRequest, statusRequest), g.pick(30, 60, 100))
	case 2:
		g.line("fault %s on=bind for=5s share=30%% code=%d", g.word(refused, failReply), g.pick(409, 500, 503))
	}
	g.groups++
	pods := g.pick(2, 2, 3, 3, 4, 6)
	g.member = member{namespace: g.namespace(), name: fmt.Sprint("g", g.groups), min: g.pick(pods, pods, pods, 1+g.IntN(pods)),
		priority: g.pick(0, 0, 0, 10, 100), cpu: g.word("500m", "1", "1", "2"), labels: g.groupKind == labelGroups && g.IntN(2) == 0}
	if g.IntN(5) == 0 {
		g.member.cpu = ""
	}
	early := g.IntN(4) > 0
	if early {
		g.groupObject()
	}
	for range pods {
		g.memberPod()
		if g.IntN(8) == 0 {
			g.line("advance %dms", g.pick(1, 20, 400))
		}
	}
	if !early {
		g.groupObject()
	}
	if g.IntN(3) == 0 {
		g.line("advance %dms", g.pick(1, 10, 60, 900, 6000))
		g.line("%s", g.word("crash leader", "crash leader", "terminate leader", "cut all"))
		g.line("advance %dms", g.pick(1, 900, 16000))
		g.line("start all")
	}
}

// member is what pods of a group have in common.
type member struct {
	namespace, name, cpu string // cpu: "" where they differ
	min, priority        int
	labels               bool
}

func (g *generator) groupObject() {
	if m := g.member; !m.labels {
		g.line("podgroup %s%s min=%d priority=%d", m.namespace, m.name, m.min, m.priority)
	}
}

func (g *generator) memberPod() {
	m := g.member
	g.pods++
	words := fmt.Sprintf("pod %sp%d cpu=%s priority=%d", m.namespace, g.pods, m.cpu, m.priority)
	if m.cpu == "" {
		words = fmt.Sprintf("pod %sp%d cpu=%s priority=%d", m.namespace, g.pods, g.word("500m", "1", "2"), m.priority)
	}
	switch {
	case g.groupKind == nativeGroups:
		words += " group=" + m.name
	case m.labels:
		words += fmt.Sprintf(" label:%s/name=%s label:%s/min-available=%d", labelsPrefix, m.name, labelsPrefix, m.min)
	default:
		words += " label:scheduling.x-k8s.io/pod-group=" + m.name
	}
	if m.namespace != "" {
		g.spaces[g.pods] = m.namespace
	}
	g.line("%s", words)
}

// alterBatch changes groups and quotas, or what they consist of.
func (g *generator) alterBatch() {
	switch n := g.IntN(10); {
	case n < 3 && g.with.has(withQuotas):
		g.quota()
	case n < 4 && g.with.has(withQuotas):
		g.line("delete quota %s", g.word("a", "b", "c"))
	case n < 6 || g.groups == 0:
		g.line("finish %s", g.somePod())
	case n < 8:
		g.memberPod()
	case n < 9 && !g.member.labels && g.groupKind == labelGroups:
		g.member.min = 1 + g.IntN(4)
		g.groupObject()
	case !g.member.labels:
		g.line("delete podgroup %s%s", g.member.namespace, g.member.name)
		g.line("advance %dms", g.pick(1, 300, 2000))
		g.groupObject()
	}
}

// batchHappens is something that happens to groups or quotas; it is false if nothing did.
func (g *generator) batchHappens() bool {
	if !slices.ContainsFunc(g.with, func(w string) bool { return w == withGroups || w == withQuotas }) {
		return false
	}
	switch n := g.IntN(10); {
	case n < 3 && g.with.has(withGroups):
		g.group()
	case n < 5:
		g.alterBatch()
	default:
		return false
	}
	return true
}
