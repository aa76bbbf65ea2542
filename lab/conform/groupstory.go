package conform

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// groupsMix is the mix of worlds with pod groups. They are stories: the pods of a group are
// decided on in one cycle, and so both sides have queues and a clock.
const groupsMix = "groups"

// playGroups plays the stories of all seeds, and tells in how many the sides part.
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
			fmt.Fprintf(c.out, "%s, seed %d: %s\n", groupsMix, seed, strings.TrimPrefix(words[len(words)-1], "["))
			return parted, nil
		}
		if parted > maxShown {
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
		fmt.Fprintf(c.out, "%s: %d worlds, %d decisions and %d requeues compared (%d extra, %d in vain that Berth spares), %d worlds disagree; %.0f decisions/s\n",
			groupsMix, total.stories, total.decisions, total.requeues, total.extra, total.spared, parted, float64(total.decisions)/time.Since(start).Seconds())
	}
	return parted, nil
}

// groupStory is the story of a seed: some nodes, pods on them, and groups that come.
func groupStory(seed uint64) string {
	r := rand.New(rand.NewPCG(seed, 7)) // #nosec G404 -- a story is to be the same for a seed
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	gang := r.IntN(4) > 0
	preempts := gang && seed%2 == 0 // groups as a whole
	line("gates GenericWorkload=true GangScheduling=%t TopologyAwareWorkloadScheduling=%t WorkloadAwarePreemption=%t", gang, r.IntN(2) == 0, preempts)
	nodes := 1 + r.IntN(6)
	for i := range nodes {
		taint := ""
		if r.IntN(5) == 0 {
			taint = " taint=k:NoSchedule"
		}
		line("node n-%d cpu=%d pods=%d label:zone=z%d label:kubernetes.io/hostname=n-%d%s", i, 1+r.IntN(6), 20, r.IntN(3), i, taint)
	}
	if preempts {
		line("podgroup placed priority=%d disruption=%s", r.IntN(4), []string{"Pod", "PodGroup"}[r.IntN(2)])
	}
	for i := range r.IntN(2 * nodes) {
		of := ""
		if preempts && r.IntN(3) == 0 {
			of = " group=placed"
		}
		// A pod that does not say when it started has started now, which is another time on
		// kube-scheduler's clock.
		line("pod b-%d started=1999-01-01T00:00:%02dZ bound=n-%d cpu=%d priority=%d label:app=%s%s", i, i, r.IntN(nodes), r.IntN(2), r.IntN(3), []string{"a0", "a1", "b"}[r.IntN(3)], of)
	}
	for i := range 1 + r.IntN(4) {
		if r.IntN(4) == 0 {
			line("pod p-%d cpu=%d priority=%d", i, 1+r.IntN(3), r.IntN(3))
		}
		group(r, line, i, preempts)
		switch r.IntN(6) {
		case 0:
			line("node m-%d cpu=8 label:zone=z0", i)
		case 1:
			line("advance %ds", 1+r.IntN(12))
		}
		line("schedule")
	}
	line("advance 12s")
	return b.String()
}

// group has a group and its pods come in one order or another. A group that preempts as a
// whole has a priority, which its pods have, too.
func group(r *rand.Rand, line func(string, ...any), i int, preempts bool) {
	pods := 1 + r.IntN(5)
	min := fmt.Sprintf(" min=%d", 1+r.IntN(pods+1))
	if r.IntN(4) == 0 {
		min = ""
	}
	if r.IntN(2) == 0 {
		min += " within=zone"
	}
	// Pods of a gang are not preempted: those that are left may be few enough to be kept out of
	// kube-scheduler's queue, when they are in Berth's already.
	priority := 5
	if min == "" {
		priority = r.IntN(6)
	}
	if preempts {
		min += fmt.Sprintf(" priority=%d", priority)
	}
	late := r.IntN(3) == 0
	if !late {
		line("podgroup g%d%s", i, min)
	}
	for n := range pods {
		// No pod preempts another one for a port: kube-scheduler then forgets the port
		// (scenarios/podgroups/port.txt).
		attributes := attributes(r)
		switch port := strings.Contains(attributes, "port="); {
		case preempts:
			attributes = strings.Replace(attributes, "port=80", fmt.Sprintf("port=%d", 80+i), 1)
		case port:
			priority = 0
		default:
			priority = r.IntN(2) * 5 * r.IntN(2)
		}
		line("pod g%d-%d group=g%d priority=%d label:app=a%d%s", i, n, i, priority, r.IntN(2), attributes)
		if r.IntN(6) == 0 {
			line("schedule")
		}
	}
	if late {
		line("podgroup g%d%s", i, min)
	}
}

// attributes of a pod. It has terms about pods that are in no group alone: in kube-scheduler the pods
// of a group do not see all terms of those before them (scenarios/podgroups/anti-affinity.txt).
func attributes(r *rand.Rand) string {
	cpu := fmt.Sprintf(" cpu=%d", 1+r.IntN(3))
	switch r.IntN(8) {
	case 0:
		return cpu + " away=\"zone app=b\""
	case 1:
		return cpu + " near=\"zone app=b\""
	case 2:
		return cpu + " port=80"
	case 3:
		return cpu + " toleration=k"
	case 4:
		return cpu + " prefer=\"10 zone=z1\""
	case 5:
		return cpu + " spread=\"1 zone app=a0\""
	}
	return cpu
}
