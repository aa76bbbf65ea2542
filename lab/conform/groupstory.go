package conform

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// groupsMix is the mix of worlds with pod groups. They are stories: the pods of a group are
// decided on in one cycle, and so both sides have queues and a clock.
const groupsMix = "groups"

// playGroups plays the stories of all seeds and returns in how many the sides part.
func (c *comparison) playGroups() (parted int, err error) {
	var total storyCounts
	start, report := time.Now(), c.report(groupsMix)
	for seed := c.first; seed <= c.last; seed++ {
		name, text := fmt.Sprintf("%s-%d.txt", groupsMix, seed), groupStory(seed)
		counts, said := compareStory(name, text)
		total.add(counts)
		report(total.stories)
		if len(said) == 0 {
			continue
		}
		if parted++; c.brief {
			words := strings.SplitN(said[0], ": ", 4) // file and line, step, pod, what differs
			fmt.Fprintf(c.out, "%s, seed %d: %s\n", groupsMix, seed, words[len(words)-1])
			return parted, nil
		}
		if parted > maxShown {
			fmt.Fprintln(c.out, said[0])
			continue
		}
		fmt.Fprintln(c.out, strings.Join(said, "\n"))
		if c.dir == "" {
			fmt.Fprintln(c.out, text)
			continue
		}
		if err := os.MkdirAll(c.dir, 0o755); err != nil {
			return parted, fmt.Errorf("--out: %w", err)
		}
		if err := os.WriteFile(filepath.Join(c.dir, name), []byte(text), 0o644); err != nil {
			return parted, fmt.Errorf("--out: %w", err)
		}
	}
	if !c.brief {
		fmt.Fprintf(c.out, "%s: %d worlds, %d decisions, %d places and %d requeues compared (%d extra, %d in vain that Berth spares), %s, %d worlds disagree; %.0f decisions/s\n",
			groupsMix, total.stories, total.decisions, total.places, total.requeues, total.extra, total.spared, total.groupCycles(), parted, float64(total.decisions)/time.Since(start).Seconds())
	}
	return parted, nil
}

// groupWorld writes the story of a seed.
type groupWorld struct {
	*rand.Rand
	text  strings.Builder
	nodes int
	made  int // pods with a start
	// topology is set if groups may be kept within a zone.
	topology bool
	groups   []*storyGroup
}

// storyGroup is a PodGroup of a story.
type storyGroup struct {
	name          string
	min, priority int // min 0: no gang
	within, whole bool
	gated         []string
	headless      bool // its first pod was deleted
}

func (w *groupWorld) line(format string, args ...any) { fmt.Fprintf(&w.text, format+"\n", args...) }

// one reports true once in n.
func (w *groupWorld) one(n int) bool { return w.IntN(n) == 0 }

// groupStory is the story of a seed: nodes, pods on them, some of groups, and groups and
// single pods that come.
func groupStory(seed uint64) string {
	w := &groupWorld{Rand: rand.New(rand.NewPCG(seed, 7))} // #nosec G404 -- a story is to be the same for a seed
	w.topology = w.one(3)
	gates := "gates GenericWorkload=true"
	if w.topology {
		gates += " TopologyAwareWorkloadScheduling=true"
	}
	w.line("%s", gates)
	if w.one(8) {
		w.line("config\n  apiVersion: kubescheduler.config.k8s.io/v1\n  kind: KubeSchedulerConfiguration\n  profiles:\n  - schedulerName: default-scheduler\n  - schedulerName: other")
	}
	w.cluster()
	for i := range 1 + w.IntN(4) {
		if w.one(3) {
			w.single(fmt.Sprintf("p-%d", i))
		}
		w.group(i)
		switch w.IntN(6) {
		case 0:
			w.line("node m-%d cpu=8 label:zone=z0 label:kubernetes.io/hostname=m-%d", i, i)
		case 1:
			w.line("advance %ds", 1+w.IntN(12))
		}
		w.line("schedule")
		w.change()
	}
	w.line("advance 12s")
	return w.text.String()
}

// started is the start of the next pod: no two pods have one, as equal ones would come in
// random order.
func (w *groupWorld) started() string {
	w.made++
	return fmt.Sprintf("started=1999-01-01T00:%02d:%02dZ", w.made/60, w.made%60)
}

// cluster makes the nodes and the pods on them.
func (w *groupWorld) cluster() {
	w.nodes = 1 + w.IntN(6)
	for i := range w.nodes {
		taint := ""
		if w.one(6) {
			taint = " taint=k:NoSchedule"
		}
		w.line("node n-%d cpu=%d pods=%d label:zone=z%d label:kubernetes.io/hostname=n-%d%s", i, 1+w.IntN(6), 20, w.IntN(3), i, taint)
	}
	placed := []string{"", ""}
	if w.one(2) {
		for i := range 1 + w.IntN(2) {
			name := fmt.Sprintf("old-%d", i)
			w.line("podgroup %s priority=%d disruption=%s", name, w.IntN(4), []string{"single", "all"}[w.IntN(2)])
			placed = append(placed, " group="+name)
		}
	}
	for i := range w.IntN(3 * w.nodes) {
		w.line("pod b-%d %s bound=n-%d cpu=%d priority=%d label:app=%s%s", i, w.started(), w.IntN(w.nodes), w.IntN(3), w.IntN(4),
			[]string{"a0", "a1", "b"}[w.IntN(3)], placed[w.IntN(len(placed))])
	}
	if w.one(5) {
		w.line("object\n  kind: PodDisruptionBudget\n  metadata: {name: b, namespace: default}\n  spec: {selector: {matchLabels: {app: b}}}\n  status: {disruptionsAllowed: %d}", w.IntN(2))
	}
}

// single makes a pod of no group.
func (w *groupWorld) single(name string) {
	w.line("pod %s %s cpu=%d priority=%d", name, w.started(), 1+w.IntN(4), w.IntN(7))
}

// group makes a group and its pods come in one order or another.
func (w *groupWorld) group(i int) {
	pods := 1 + w.IntN(5)
	g := &storyGroup{name: fmt.Sprintf("g%d", i), priority: w.IntN(7)}
	if !w.one(4) {
		g.min = 1 + w.IntN(pods)
		if w.one(5) {
			g.min++
		}
	}
	g.within, g.whole = w.topology && w.one(2), w.one(3)
	w.groups = append(w.groups, g)
	late := w.one(4)
	if !late {
		w.show(g)
	}
	alike, all := "", ""
	if w.one(2) {
		alike = w.attributes(i)
	}
	if w.one(12) {
		all = " never-preempts"
	}
	for n := range pods {
		attributes := alike
		if attributes == "" {
			attributes = w.attributes(i)
		}
		priority := g.priority
		if w.one(80) {
			priority++
		}
		name := fmt.Sprintf("g%d-%d", i, n)
		attributes += all + w.oddity()
		if w.one(20) {
			attributes += " gate=hold"
			g.gated = append(g.gated, name)
		}
		w.line("pod %s %s group=%s priority=%d label:app=a%d%s", name, w.started(), g.name, priority, w.IntN(2), attributes)
		if w.one(8) {
			w.line("schedule")
		}
	}
	if late {
		w.show(g)
	}
}

// oddity is an attribute that few pods have.
func (w *groupWorld) oddity() string {
	switch w.IntN(120) {
	case 0:
		return " scheduler=other"
	case 1:
		return " never-preempts"
	case 2:
		return " terminating"
	}
	return ""
}

// show creates the PodGroup, or changes it.
func (w *groupWorld) show(g *storyGroup) {
	policy, rest := "basic: {}", ""
	if g.min > 0 {
		policy = fmt.Sprintf("gang: {minCount: %d}", g.min)
	}
	if g.within {
		rest += ", schedulingConstraints: {topology: [{key: zone}]}"
	}
	if g.whole {
		rest += ", disruptionMode: {all: {}}"
	}
	w.line("object\n  apiVersion: scheduling.k8s.io/v1beta1\n  kind: PodGroup\n  metadata: {name: %s, namespace: default, uid: %s-uid}\n  spec: {priority: %d, schedulingPolicy: {%s}%s}", g.name, g.name, g.priority, policy, rest)
}

// change changes a group or the cluster, or adds a pod to a group.
func (w *groupWorld) change() {
	g := w.groups[w.IntN(len(w.groups))]
	switch w.IntN(8) {
	case 0:
		if g.min > 0 {
			g.min = max(1, g.min+w.IntN(4)-2)
			w.show(g)
		}
	case 1:
		w.made++
		w.line("pod %s-late-%d %s group=%s priority=%d%s", g.name, w.made, w.started(), g.name, g.priority, w.attributes(9))
	case 2:
		if len(g.gated) > 0 {
			w.line("update pod %s -gate=hold", g.gated[0])
			g.gated = g.gated[1:]
		}
	case 3:
		if g.headless {
			return
		}
		w.line("delete pod %s-0 ignore-not-found", g.name) // it may have been evicted
		g.gated = slices.DeleteFunc(g.gated, func(name string) bool { return name == g.name+"-0" })
		g.headless = true
	case 4:
		w.line("node late-%d cpu=%d label:zone=z%d label:kubernetes.io/hostname=late-%d", w.made, 1+w.IntN(6), w.IntN(3), w.made)
		w.made++
	case 5:
		w.line("advance %ds", 1+w.IntN(12))
	default:
		return
	}
	w.line("schedule")
}

// attributes of a pod of the i-th group.
func (w *groupWorld) attributes(i int) string {
	cpu := fmt.Sprintf(" cpu=%d", 1+w.IntN(3))
	switch w.IntN(14) {
	case 0:
		return cpu + " away=\"zone app=b\""
	case 1:
		return cpu + " near=\"zone app=b\""
	case 2:
		return cpu + fmt.Sprintf(" port=%d", 80+i)
	case 3:
		return cpu + " toleration=k"
	case 4:
		return cpu + " prefer=\"10 zone=z1\""
	case 5:
		return cpu + " spread=\"1 zone app=a0\""
	case 6:
		return cpu + " away=\"kubernetes.io/hostname app=a0\""
	case 7:
		return cpu + " near=\"zone app=a0\""
	}
	return cpu
}
