package why

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/plugins/names"
	"github.com/berth-scheduler/berth/edge/terminal"
)

// Observed is what the cluster itself said last of a pod that waits.
type Observed struct {
	// From is record, condition or event.
	From    string     `json:"from"`
	Time    *time.Time `json:"time"`
	Reason  string     `json:"reason"`
	Message string     `json:"message"`
	// Agrees is false where the answer does not come to that.
	Agrees bool `json:"agrees"`

	moved string // what has changed since, where the answer differs for that
}

// mostSaid bounds what is quoted of the cluster's messages, in bytes.
const mostSaid = 4 << 10

// bounded returns the message, or its beginning.
func bounded(message string) string {
	if len(message) > mostSaid {
		return strings.ToValidUTF8(message[:mostSaid], "") + "..."
	}
	return message
}

// observe finds what the cluster said last of the pod, and whether the answer agrees.
func (c *Cluster) observe(a *Answer, p *v1.Pod) {
	if p.Spec.NodeName != "" {
		return
	}
	o := c.latest(p)
	if o == nil {
		return
	}
	o.Message = bounded(o.Message)
	o.Agrees, o.moved = a.agreesWith(o)
	a.Observed = o
}

// latest returns the newest of the scheduler's record, the pod's FailedScheduling events and its
// PodScheduled condition if that is False, nil if there is none.
func (c *Cluster) latest(p *v1.Pod) *Observed {
	var last *Observed
	take := func(o Observed, t time.Time) {
		if o.Time = pointer(t.UTC()); last == nil || o.Time != nil && (last.Time == nil || o.Time.After(*last.Time)) {
			last = &o
		}
	}
	if r := c.Record; r != nil {
		take(Observed{From: "record", Reason: r.Reason, Message: r.Message}, r.Time)
	}
	for _, e := range c.indexEvents().rejections[types.NamespacedName{Namespace: p.Namespace, Name: p.Name}] {
		if e.UID == "" || e.UID == string(p.UID) {
			take(Observed{From: "event", Reason: e.Reason, Message: e.Message}, e.Last)
		}
	}
	if s := NotScheduled(p); s != nil && (s.Message != "" || s.Reason != "") {
		take(Observed{From: "condition", Reason: s.Reason, Message: s.Message}, s.LastTransitionTime.Time)
	}
	return last
}

// NotScheduled returns the pod's condition PodScheduled if it is False, else nil.
func NotScheduled(p *v1.Pod) *v1.PodCondition {
	for i := range p.Status.Conditions {
		if c := &p.Status.Conditions[i]; c.Type == v1.PodScheduled && c.Status == v1.ConditionFalse {
			return c
		}
	}
	return nil
}

// Said is what a scheduler's record says of the last attempt for a pod.
type Said struct {
	Time            time.Time
	Reason, Message string
}

// agreesWith reports whether the answer comes to what was said, or would have: moved says what
// has changed since.
func (a *Answer) agreesWith(o *Observed) (agrees bool, moved string) {
	said := parseSaid(o.Message)
	switch {
	case o.Reason == v1.PodReasonSchedulingGated:
		if a.Verdict != Gated {
			return true, "since then its gates were removed"
		}
		return true, ""
	case a.Verdict == InProgress, a.WaitsForGroup(), a.Verdict == Gated && strings.Contains(o.Message, a.Message), strings.Contains(o.Message, "deleting pod"):
		return true, ""
	case a.Verdict == Gated, a.Verdict == Failed, o.Reason == v1.PodReasonSchedulerError, !said.parsed, said.foreign():
		return a.Message != "" && o.Message == a.Message, ""
	case a.Verdict == WouldBePlaced:
		switch {
		case said.part:
			return true, "it was tried with its group, in one topology domain"
		case said.nodes != a.NodesTotal:
			return true, fmt.Sprintf("since then the number of nodes changed from %d to %d", said.nodes, a.NodesTotal)
		case said.load() >= max(1, a.NodesFeasible): // the others may be rejected still
			return true, "since then room came"
		}
		return false, ""
	}
	if said.part || said.nodes != a.NodesTotal || a.blockedBy(said) {
		return true, ""
	}
	return false, ""
}

// blockedBy reports whether one of the plugins that were said to reject nodes does so here.
func (a *Answer) blockedBy(said saidReasons) bool {
	if len(a.Groups) == 0 || a.Verdict == Preempting {
		return true
	}
	for _, reason := range said.reasons {
		for i := range a.Groups {
			if slices.ContainsFunc(a.Groups[i].Blockers, func(b Blocker) bool { return slices.Contains(wordsOf(reason).plugins, b.Plugin) }) {
				return true
			}
		}
	}
	return false
}

// saidReasons is kube-scheduler's message about an attempt, taken apart.
type saidReasons struct {
	parsed  bool // it is such a message
	part    bool // it is about the nodes of one topology domain
	nodes   int
	reasons []string
	counts  []int // of nodes, by reason
}

var (
	available  = regexp.MustCompile(`^(\d+)/(\d+) nodes (of [^:]+ )?are available(: |\.?$)`)
	counted    = regexp.MustCompile(`(^|, )\d+ `)
	afterwards = regexp.MustCompile(`\.? (preemption:|no new claims to deallocate|still not schedulable)`)
)

// parseSaid takes a message apart.
func parseSaid(message string) (said saidReasons) {
	if message == "no nodes available to schedule pods" {
		return saidReasons{parsed: true, reasons: []string{message}, counts: []int{0}}
	}
	head := available.FindStringSubmatch(message)
	if head == nil {
		return said
	}
	said.parsed, said.part = true, head[3] != ""
	_, _ = fmt.Sscan(head[2], &said.nodes) // too large a number is none of a cluster's
	rest := message[len(head[0]):]
	if at := afterwards.FindStringIndex(rest); at != nil {
		rest = rest[:at[0]]
	}
	if rest = strings.TrimSuffix(rest, "."); rest == "" {
		return said
	}
	at := counted.FindAllStringIndex(rest, -1)
	if len(at) == 0 || at[0][0] > 0 {
		said.reasons, said.counts = []string{rest}, []int{said.nodes}
		return said
	}
	for i := range at {
		end := len(rest)
		if i+1 < len(at) {
			end = at[i+1][0]
		}
		nodes := 0
		_, _ = fmt.Sscan(strings.TrimPrefix(rest[at[i][0]:at[i][1]], ", "), &nodes)
		said.reasons, said.counts = append(said.reasons, rest[at[i][1]:end]), append(said.counts, nodes)
	}
	return said
}

// foreign reports whether a reason is of no plugin that is known here.
func (s saidReasons) foreign() bool {
	return slices.ContainsFunc(s.reasons, func(reason string) bool { return wordsOf(reason).plugins == nil })
}

// load returns how many nodes were rejected for reasons that may go when pods go or come.
func (s saidReasons) load() (nodes int) {
	for i, reason := range s.reasons {
		if wordsOf(reason).load {
			nodes += s.counts[i]
		}
	}
	return nodes
}

// words are how reasons of plugins are known.
type words struct {
	text    string
	plugins []string
	load    bool // pods that go or come may change it
}

var reasonWords = []words{
	{"Insufficient ", []string{names.NodeResourcesFit, names.DynamicResources}, true},
	{"Too many pods", []string{names.NodeResourcesFit}, true},
	{"untolerated taint", []string{names.TaintToleration}, false},
	{"were unschedulable", []string{names.NodeUnschedulable}, false},
	{"node affinity/selector", []string{names.NodeAffinity}, false},
	{"requested node name", []string{names.NodeName}, false},
	{"free ports", []string{names.NodePorts}, true},
	{"affinity rules", []string{names.InterPodAffinity}, true},
	{"topology spread constraints", []string{names.PodTopologySpread}, true},
	{"volume node affinity conflict", []string{names.VolumeBinding}, false},
	{"volume zone", []string{names.VolumeZone}, false},
	{"PersistentVolumeClaim", []string{names.VolumeBinding, names.VolumeRestrictions, names.VolumeZone, names.NodeVolumeLimits}, false},
	{"persistentvolumeclaim", []string{names.VolumeBinding, names.VolumeRestrictions, names.VolumeZone, names.NodeVolumeLimits}, false},
	{"persistent volume", []string{names.VolumeBinding}, false},
	{"non-existent pv", []string{names.VolumeBinding}, false},
	{"enough free storage", []string{names.VolumeBinding}, true},
	{"max volume count", []string{names.NodeVolumeLimits}, true},
	{"no available disk", []string{names.VolumeRestrictions}, true},
	{"allocate all claims", []string{names.DynamicResources}, true},
	{"resourceclaim", []string{names.DynamicResources}, true},
	{"no nodes available to schedule pods", []string{}, false},
}

func wordsOf(reason string) words {
	for _, w := range reasonWords {
		if strings.Contains(reason, w.text) {
			return w
		}
	}
	return words{}
}

// where says where it was said, and when.
func (o *Observed) where() string {
	text := map[string]string{"record": "the scheduler's last attempt", "condition": "condition PodScheduled", "event": "event " + o.Reason}[o.From]
	if o.From != "event" && o.Reason != "" {
		text += ", " + o.Reason
	}
	if o.Time != nil {
		text += ", " + clock(*o.Time)
	}
	return text
}

// Disagrees reports whether the cluster said something last that the answer does not come to.
func (a *Answer) Disagrees() bool { return a.Observed != nil && !a.Observed.Agrees }

// quotedName is a name in a message, such as the pod's.
var quotedName = regexp.MustCompile(`"[^"]*"`)

// refused is what the cluster said last where the answer does not come to it, and "" else. Names
// of pods are left out: many pods are told the same.
func (a *Answer) refused() string {
	if !a.Disagrees() {
		return ""
	}
	return quotedName.ReplaceAllStringFunc(strings.TrimSpace(a.Observed.Message), func(name string) string {
		if _, pod, _ := strings.Cut(a.Pod, "/"); name == `"`+pod+`"` || name == `"`+a.Pod+`"` {
			return `"..."`
		}
		return name
	})
}

// observedFirst is what the text leads with where the answer does not come to it.
func (a *Answer) observedFirst(b *strings.Builder) {
	if a.Disagrees() {
		terminal.Fprintf(b, "%s waits, and the cluster said last: %s (%s)\n", a.Pod, strings.TrimSpace(a.Observed.Message), a.Observed.where())
		b.WriteString("By what is known here, without the policies, webhooks, extenders and plugins of that cluster, it comes to something else:\n\n")
	}
}

// observedSince says what was said before the cluster changed.
func (a *Answer) observedSince(b *strings.Builder) {
	if o := a.Observed; o != nil && o.moved != "" {
		terminal.Fprintf(b, "\nThe cluster said last: %s (%s); %s.\n", strings.TrimSuffix(strings.TrimSpace(o.Message), "."), o.where(), o.moved)
	}
}
