package engine

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/profile"
	"github.com/berth-scheduler/berth/core/resource"
	"github.com/berth-scheduler/berth/core/table"
)

// site is what a synthetic plugin may look at: one node and the pods there.
type site struct {
	node *object.Node
	pods []*object.Pod
}

// rule is a synthetic plugin in its plainest form. The engine runs it as a
// kernel over rows, the naive evaluation asks it node by node.
type rule struct {
	name     string
	locality framework.Locality
	reads    []string // labels of the pod that it looks at

	prepare func(p *object.Pod) framework.PreFilterResult // PreFilter
	reject  func(p *object.Pod, at site) framework.Verdict
	explain func(v framework.Verdict) decision.Blocker

	preScore  func(p *object.Pod) framework.PreScoreResult
	score     func(p *object.Pod, at site) int64
	normalize func(raw, low, high int64) int64
	weight    int64

	// For one that looks at whole zones: what is there, by zone, of the pod's
	// app, and how many feasible nodes.
	rejectZone func(p *object.Pod, zone string, pods map[string]int) framework.Verdict
	scoreZone  func(p *object.Pod, zone string, pods, feasible map[string]int) int64

	epoch func() uint64

	hosted bool // it runs as a hosted plugin
}

var zones = []string{"a", "b", "c", "d"}

// census counts the pods of the pod's app by zone.
func census(p *object.Pod, sites []site) map[string]int {
	pods := map[string]int{}
	for _, at := range sites {
		for _, q := range at.pods {
			if q.Labels["app"] == p.Labels["app"] {
				pods[at.node.Labels["zone"]]++
			}
		}
	}
	return pods
}

func sitesOf(t *table.Table) (sites []site) {
	for r := range table.Row(t.Rows()) {
		if t.Node(r) != nil {
			sites = append(sites, siteOf(t, r))
		}
	}
	return sites
}

// counts is the state of a rule that looks at whole zones.
type counts struct {
	pods, feasible map[string]int
	revision       uint64
}

func syncZones(in *framework.Input) {
	if c := in.State.(*counts); c.pods == nil || c.revision != in.Table.Revision() {
		c.pods, c.revision = census(in.Pod, sitesOf(in.Table)), in.Table.Revision()
	}
}

// zoneCells gives each zone a number.
func zoneCells(in *framework.Input, rows []table.Row, out []int64) {
	for i := range out {
		if n := in.Table.Node(rows[i]); n != nil {
			out[i] = int64(slices.Index(zones, n.Labels["zone"]))
		}
	}
}

func (ru *rule) byZones(pl *framework.Plugin) {
	if ru.rejectZone != nil {
		pl.PreFilter = func(*table.Table, *object.Pod) framework.PreFilterResult {
			return framework.PreFilterResult{State: &counts{}}
		}
		pl.CellFilter = &framework.CellFilter{Sync: syncZones, Cells: zoneCells, Filter: func(in *framework.Input, cell int64) framework.Verdict {
			return ru.rejectZone(in.Pod, zones[cell], in.State.(*counts).pods)
		}}
		pl.Explain = func(_ *framework.Input, _ table.Row, v framework.Verdict) decision.Blocker {
			return ru.explain(v)
		}
	}
	if ru.scoreZone != nil {
		pl.PreScore = func(*table.Table, *object.Pod) framework.PreScoreResult {
			return framework.PreScoreResult{State: &counts{}}
		}
		pl.CellScore = &framework.CellScore{Sync: syncZones, Cells: zoneCells,
			FeasibleNodes: func(in *framework.Input, nodes []framework.CellCount) {
				feasible := map[string]int{}
				for _, c := range nodes {
					feasible[zones[c.Cell]] += c.Nodes
				}
				in.State.(*counts).feasible = feasible
			},
			Score: func(in *framework.Input, cell int64) int64 {
				c := in.State.(*counts)
				return ru.scoreZone(in.Pod, zones[cell], c.pods, c.feasible)
			}}
	}
}

func siteOf(t *table.Table, r table.Row) site {
	s := site{node: t.Node(r)}
	for _, pl := range t.Pods(r) {
		s.pods = append(s.pods, pl.Pod)
	}
	return s
}

// sign appends the labels that the rule reads and the pod's amounts.
func (ru *rule) sign(key []byte, _ *table.Table, p *object.Pod) []byte {
	parts := []string{fmt.Sprint(p.Demand.Usage)}
	for _, label := range ru.reads {
		parts = append(parts, p.Labels[label])
	}
	return append(key, strings.Join(parts, "|")...)
}

func (ru *rule) plugin() *framework.Plugin {
	pl := &framework.Plugin{
		Name:        ru.name,
		SignPlugin:  framework.SignPlugin{Locality: ru.locality, Sign: ru.sign},
		ScorePlugin: framework.ScorePlugin{NormalizeScore: ru.normalize},
	}
	if ru.epoch != nil {
		pl.Epoch = func(*table.Table) uint64 { return ru.epoch() }
	}
	if ru.prepare != nil {
		pl.PreFilter = func(_ *table.Table, p *object.Pod) framework.PreFilterResult { return ru.prepare(p) }
	}
	if ru.preScore != nil {
		pl.PreScore = func(_ *table.Table, p *object.Pod) framework.PreScoreResult { return ru.preScore(p) }
	}
	if ru.reject != nil {
		pl.Filter = func(in *framework.Input, rows []table.Row, out []framework.Verdict) {
			for i := range out {
				out[i] = 99 // what stands on rows without a node is ignored
				if r := rows[i]; in.Table.Node(r) != nil {
					out[i] = ru.reject(in.Pod, siteOf(in.Table, r))
				}
			}
		}
		pl.Explain = func(_ *framework.Input, _ table.Row, v framework.Verdict) decision.Blocker {
			return ru.explain(v)
		}
	}
	if ru.score != nil {
		pl.Score = func(in *framework.Input, rows []table.Row, out []int64) {
			for i := range out {
				out[i] = -1 << 62
				if r := rows[i]; in.Table.Node(r) != nil {
					out[i] = ru.score(in.Pod, siteOf(in.Table, r))
				}
			}
		}
	}
	ru.byZones(pl)
	if ru.hosted {
		ru.host(pl)
	}
	return pl
}

func buildProfile(rules []*rule) *profile.Profile {
	p := &profile.Profile{Name: "test", Plugins: map[string]*framework.Plugin{}}
	for _, ru := range rules {
		pl := ru.plugin()
		p.Plugins[ru.name] = pl
		if pl.Hosted != nil {
			p.Host = pl.Hosted.Host
		}
		if pl.PreFilter != nil {
			p.PreFilter = append(p.PreFilter, pl)
		}
		if pl.Filter != nil || pl.CellFilter != nil {
			p.Filter = append(p.Filter, pl)
		}
		if pl.Score != nil || pl.CellScore != nil || pl.ScoresRows() {
			p.Score = append(p.Score, profile.Scorer{Plugin: pl, Weight: ru.weight})
		}
	}
	return p
}

// number reads a label as a number, 0 where it is none.
func number(labels map[string]string, key string) int64 {
	n, _ := strconv.ParseInt(labels[key], 10, 64)
	return n
}

func always(code decision.Code, reason string) func(framework.Verdict) decision.Blocker {
	return func(framework.Verdict) decision.Blocker {
		return decision.Blocker{Code: code, Reasons: []string{reason}}
	}
}

func when(rejected bool) framework.Verdict {
	if rejected {
		return 1
	}
	return framework.Fits
}

// prepareBy reads from a pod's label what PreFilter answers: "skip", a status,
// or the only nodes, "n1,n2".
func prepareBy(label string) func(*object.Pod) framework.PreFilterResult {
	return func(p *object.Pod) framework.PreFilterResult {
		status := func(code decision.Code, err error) framework.PreFilterResult {
			return framework.PreFilterResult{Status: &decision.Status{Code: code, Reasons: []string{label}, Err: err}}
		}
		switch v := p.Labels[label]; v {
		case "":
			return framework.PreFilterResult{}
		case "skip":
			return framework.PreFilterResult{Skip: true}
		case "unschedulable":
			return status(decision.Unschedulable, nil)
		case "unresolvable":
			return status(decision.UnschedulableAndUnresolvable, nil)
		case "error":
			return status(decision.Error, errors.New("broken"))
		case "none":
			return framework.PreFilterResult{NodeNames: []string{}}
		default:
			return framework.PreFilterResult{NodeNames: strings.Split(v, ",")}
		}
	}
}

// switchboard is a world outside of nodes and pods, with an epoch.
type switchboard struct {
	closed map[string]bool // zones
	epoch  uint64
}

// rules are all kinds of plugins at once, in the order of the profile.
func rules(sb *switchboard) []*rule {
	linear := func(raw, low, high int64) int64 {
		if low == high {
			return 100
		}
		return 100 * (raw - low) / (high - low)
	}
	return []*rule{
		{name: "Zone", reads: []string{"zone", "pin"}, prepare: prepareBy("pin"),
			reject: func(p *object.Pod, at site) framework.Verdict {
				return when(p.Labels["zone"] != "" && p.Labels["zone"] != at.node.Labels["zone"])
			},
			explain: always(decision.UnschedulableAndUnresolvable, "another zone")},
		{name: "Room", locality: framework.NodeAndPods,
			reject: func(p *object.Pod, at site) (v framework.Verdict) {
				var cpu, memory int64
				for _, q := range at.pods {
					cpu += q.Demand.Usage.MilliCPU
					memory += q.Demand.Usage.Memory
				}
				if cpu+p.Demand.Usage.MilliCPU > at.node.Allocatable.MilliCPU {
					v |= 1
				}
				if memory+p.Demand.Usage.Memory > at.node.Allocatable.Memory {
					v |= 2
				}
				return v
			},
			explain: func(v framework.Verdict) decision.Blocker {
				var reasons []string
				if v&1 != 0 {
					reasons = append(reasons, "no cpu")
				}
				if v&2 != 0 {
					reasons = append(reasons, "no memory")
				}
				return decision.Blocker{Code: decision.Unschedulable, Reasons: reasons}
			}},
		{name: "Apart", locality: framework.NodeAndPods, reads: []string{"app", "alone", "set"}, prepare: prepareBy("set"),
			reject: func(p *object.Pod, at site) framework.Verdict {
				return when(p.Labels["alone"] != "" && slices.ContainsFunc(at.pods, func(q *object.Pod) bool { return q.Labels["app"] == p.Labels["app"] }))
			},
			explain: always(decision.Unschedulable, "not alone")},
		{name: "Switch", reads: []string{"zone"}, epoch: func() uint64 { return sb.epoch },
			reject:  func(_ *object.Pod, at site) framework.Verdict { return when(sb.closed[at.node.Labels["zone"]]) },
			explain: always(decision.UnschedulableAndUnresolvable, "closed")},
		{name: "Door", reads: []string{"zone"}, epoch: func() uint64 { return sb.epoch }, // PreFilter alone
			prepare: func(p *object.Pod) framework.PreFilterResult {
				if zone := p.Labels["zone"]; zone != "" && sb.closed[zone] {
					return framework.PreFilterResult{Status: &decision.Status{Code: decision.Unschedulable, Reasons: []string{"shut"}}}
				}
				return framework.PreFilterResult{}
			}},
		{name: "Spread", locality: framework.Domains, reads: []string{"app", "spread"},
			rejectZone: func(p *object.Pod, zone string, pods map[string]int) framework.Verdict {
				if p.Labels["spread"] == "" {
					return framework.Fits
				}
				return framework.Verdict(max(0, pods[zone]-2)) // told apart by how many are too many
			},
			explain: func(v framework.Verdict) decision.Blocker {
				return decision.Blocker{Code: decision.Unschedulable, Reasons: []string{fmt.Sprint("too many by ", v)}}
			}},
		{name: "Crowd", locality: framework.Domains, weight: 2, reads: []string{"app", "picky"}, normalize: linear,
			scoreZone: func(p *object.Pod, zone string, pods, feasible map[string]int) int64 {
				if p.Labels["picky"] != "" && zone == "d" {
					return framework.NoScore
				}
				return int64(10*pods[zone] - feasible[zone]) // a feasible node has its zone weighed
			}},
		{name: "Together", locality: framework.NodeAndPods, reads: []string{"app", "friend"},
			reject: func(p *object.Pod, at site) framework.Verdict { // nominated pods must not be needed
				friend := p.Labels["friend"]
				return when(friend != "" && !slices.ContainsFunc(at.pods, func(q *object.Pod) bool { return q.Labels["app"] == friend }))
			},
			explain: always(decision.Unschedulable, "no friend")},
		{name: "Free", locality: framework.NodeAndPods, weight: 2, // final, by room
			score: func(_ *object.Pod, at site) int64 { return max(0, 100-20*int64(len(at.pods))) }},
		{name: "Rank", weight: 3, normalize: linear, reads: []string{"unranked"}, // normalised, by node
			preScore: func(p *object.Pod) framework.PreScoreResult {
				return framework.PreScoreResult{Skip: p.Labels["unranked"] != ""}
			},
			score: func(_ *object.Pod, at site) int64 { return number(at.node.Labels, "rank") }},
		{name: "Company", locality: framework.NodeAndPods, weight: 1, reads: []string{"app", "shy"}, // normalised, by pods, reversed
			preScore: func(p *object.Pod) framework.PreScoreResult {
				if p.Labels["shy"] == "error" {
					return framework.PreScoreResult{Status: &decision.Status{Code: decision.Error, Err: errors.New("too shy")}}
				}
				return framework.PreScoreResult{Skip: p.Labels["shy"] == "skip"}
			},
			score: func(p *object.Pod, at site) (n int64) {
				for _, q := range at.pods {
					if q.Labels["app"] == p.Labels["app"] {
						n += 1000 // a wide range, too wide for a table
					}
				}
				return n
			},
			normalize: func(raw, low, high int64) int64 { return 100 - linear(raw, low, high) }},
		{name: "Label", weight: 1, reads: []string{"wild"}, // final, by node; out of range where the node says so
			score: func(p *object.Pod, at site) int64 {
				if p.Labels["wild"] != "" {
					return number(at.node.Labels, "score") * 2
				}
				return min(100, number(at.node.Labels, "score"))
			}},
		{name: "Stretch", weight: 1, reads: []string{"stretch"}, // normalised to what is out of range
			score: func(_ *object.Pod, at site) int64 { return number(at.node.Labels, "rank") / 5 },
			preScore: func(p *object.Pod) framework.PreScoreResult {
				return framework.PreScoreResult{Skip: p.Labels["stretch"] == ""}
			},
			normalize: func(raw, low, high int64) int64 { return linear(raw, low, high) + (high-low)/4 }},
	}
}

// podsByNode lists pods by node.
type podsByNode map[string][]*object.Pod

func (n podsByNode) NominatedTo(node string) []*object.Pod { return n[node] }

func (n podsByNode) Renominated(uint64) ([]string, uint64, bool) { return nil, 0, false }
func (n podsByNode) NominatedNode(uid types.UID) string {
	for node, pods := range n { // any order: a pod is nominated once
		if slices.ContainsFunc(pods, func(p *object.Pod) bool { return p.UID == uid }) {
			return node
		}
	}
	return ""
}
func (n podsByNode) NominatedNodes() []string {
	var nodes []string
	for node := range n {
		nodes = append(nodes, node)
	}
	slices.Sort(nodes)
	return nodes
}

func newPod(uid string, labels map[string]string, milliCPU, memory int64) *object.Pod {
	v := resource.Vector{MilliCPU: milliCPU, Memory: memory}
	return &object.Pod{UID: types.UID(uid), Name: uid, Labels: labels, Demand: resource.Demand{Requests: v, Usage: v, NonZero: v}}
}

func newNode(name string, labels map[string]string, milliCPU, memory int64) *object.Node {
	return &object.Node{Name: name, Labels: labels, Allocatable: resource.Vector{MilliCPU: milliCPU, Memory: memory}, AllowedPods: 110}
}

// answer is all that an Outcome says, in a form to compare and print.
type answer struct {
	rejected string
	node     string
	best     []string // the naive answer alone: node is one of them
	feasible int
	score    int64
	ties     int
	tallies  string
	by       string
	nodes    []decision.Node
	codes    map[string]decision.Code
}

func answerOf(t *table.Table, o *Outcome) answer {
	a := answer{rejected: words(o.Rejected), feasible: o.Feasible, score: o.Score, ties: o.Ties, codes: map[string]decision.Code{}}
	if o.Row >= 0 {
		a.node = t.Name(o.Row)
	}
	var tallies []string
	for _, tally := range o.Tallies() {
		tallies = append(tallies, fmt.Sprintf("%d %v", tally.Nodes, tally.Blocker))
	}
	slices.Sort(tallies)
	a.tallies = strings.Join(tallies, "; ")
	a.by = strings.Join(o.RejectedBy(), " ")
	a.nodes = o.Nodes()
	for r := range table.Row(t.Rows()) {
		if t.Node(r) != nil {
			a.codes[t.Name(r)] = o.Code(r)
		}
	}
	return a
}

func words(s *decision.Status) string {
	if s == nil {
		return ""
	}
	return fmt.Sprintf("%s by %s: %v %v", s.Code, s.Plugin, s.Reasons, s.Err)
}

func byNodeName(a, b decision.Node) int { return cmp.Compare(a.Name, b.Name) }
