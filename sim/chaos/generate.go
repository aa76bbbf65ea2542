package chaos

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/berth-scheduler/berth/sim/scenario"
)

// Generate returns the story of a seed: a small cluster, in which things happen
// for about a minute, and faults.
func Generate(seed uint64) *scenario.Story { return generate(seed, nil) }

func generate(seed uint64, w with) *scenario.Story {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 0x6265727468)), with: w, spaces: map[int]string{}} // #nosec G404 -- a seed is to give the same plan
	g.line("seed %d", seed)
	if g.with.has(withExtenders) {
		g.line("extender%s", g.word("", "", " binds"))
	}
	if words := g.batchOf(); words != "" {
		g.line("batch %s", words)
	}
	g.line("replicas %d", g.pick(1, 2, 2, 2, 3))
	for range 1 + g.IntN(4) {
		g.node()
	}
	if g.with.has(withBudgets) {
		g.budget()
	}
	for range 3 {
		if g.with.has(withQuotas) {
			g.quota()
		}
	}
	g.early = g.IntN(3) == 0 // faults from the start
	if g.early {
		g.fault()
	}
	g.line("advance %dms", g.pick(50, 400, 2000))
	for range 6 + g.IntN(12) {
		g.happen()
		g.line("advance %dms", g.pick(1, 30, 200, 700, 1500, 4000))
	}
	if g.IntN(4) == 0 {
		g.refusedEvictions()
	}
	s, err := scenario.Parse(fmt.Sprintf("seed-%d", seed), g.text.String())
	if err != nil {
		panic(err) // the generator's own words
	}
	return s
}

type generator struct {
	*rand.Rand
	text        strings.Builder
	nodes, pods int
	gated       []string
	early       bool
	saved       bool // a backup was made
	with        with
	claims      int
	devices     int // claims of them
	stores      int // volumes
	groups      int
	groupKind   string
	member      member         // what the pods of the last group have in common
	spaces      map[int]string // the namespaces of pods, with a slash, by number
}

func (g *generator) line(format string, args ...any) { fmt.Fprintf(&g.text, format+"\n", args...) }

func (g *generator) pick(of ...int) int { return of[g.IntN(len(of))] }

func (g *generator) word(of ...string) string { return of[g.IntN(len(of))] }

func (g *generator) node() {
	g.nodes++
	if g.with.has(withLimits) {
		g.line("limit n%d %d", g.nodes, g.pick(1, 2, 3))
	}
	if g.with.has(withDevices) {
		g.line("devices n%d %d", g.nodes, g.pick(0, 1, 2, 3))
	}
	words := fmt.Sprintf("node n%d cpu=%d pods=%d label:zone=%s", g.nodes, g.pick(1, 2, 2, 4), g.pick(3, 110, 110), g.word("a", "b"))
	if g.with.has(withExtenders) && g.IntN(3) > 0 {
		words += " label:" + licenceLabel + "=" + licenceValue
	}
	if g.with.has(withConstraints) {
		words += " label:" + hostLabel + fmt.Sprint("=n", g.nodes)
	}
	g.line("%s", words)
}

func (g *generator) someNode() string { return fmt.Sprint("n", 1+g.IntN(g.nodes)) }
func (g *generator) somePod() string {
	n := 1 + g.IntN(max(g.pods, 1))
	return fmt.Sprint(g.spaces[n], "p", n)
}

func (g *generator) pod() {
	g.pods++
	if g.with.has(withQuotas) {
		g.spaces[g.pods] = g.namespace()
	}
	words := fmt.Sprintf("pod %sp%d cpu=%s", g.spaces[g.pods], g.pods, g.word("500m", "500m", "1", "1", "2"))
	switch g.IntN(10) {
	case 0, 1:
		words += fmt.Sprintf(" priority=%d", g.pick(10, 10, 100))
	case 2:
		words += " selector:zone=" + g.word("a", "b")
	case 3:
		words += " gate=wait"
		g.gated = append(g.gated, fmt.Sprint(g.spaces[g.pods], "p", g.pods))
	case 4:
		words += " scheduler=another"
	}
	if g.volumes() && g.IntN(5) > 0 {
		words += " claim=" + g.claim()
	}
	if g.with.has(withDevices) && g.IntN(5) > 0 {
		words += " device=" + g.deviceClaim()
	}
	if g.with.has(withExtenders) && g.IntN(3) > 0 {
		words += " " + licence + "=1"
	}
	if g.with.has(withConstraints) {
		words += g.constraint()
	}
	if g.with.has(withBudgets) {
		words += " label:app=" + g.word("a", "b") + g.word("", "", " priority=10", " priority=100")
	}
	g.line("%s", words)
}

// constraint is what a pod says of where it may be beside others.
func (g *generator) constraint() string {
	who, key := g.word("app=a", "app=b"), g.word(zoneLabel, hostLabel)
	words := " label:app=" + g.word("a", "b")
	switch g.IntN(8) {
	case 0, 1:
		words += g.word(" port=8080", " port=8080", " port=8081")
	case 2, 3:
		words += fmt.Sprintf(" \"away=%s %s\"", key, who)
	case 4:
		words += fmt.Sprintf(" \"near=%s %s\"", key, who)
	case 5, 6:
		words += fmt.Sprintf(" \"spread=%d %s %s\"", g.pick(1, 1, 2), key, who)
	}
	return words
}

// budget is a disruption budget, or changes one.
func (g *generator) budget() {
	g.line("budget %s %d", g.word("a", "b"), g.pick(0, 0, 1, 2))
}

func (g *generator) volumes() bool { return g.with.has(withVolumes) || g.with.has(withLimits) }

// claim is the name of a claim, a new one or one that others use.
func (g *generator) claim() string {
	if g.claims > 0 && g.IntN(4) == 0 {
		return fmt.Sprint("c", 1+g.IntN(g.claims))
	}
	g.claims++
	kind := g.word(madeClass, madeClass, localClass)
	g.line("claim c%d %s", g.claims, kind)
	if kind == localClass && g.IntN(4) > 0 {
		g.stores++
		g.line("volume v%d %s", g.stores, g.word("a", "b"))
	}
	return fmt.Sprint("c", g.claims)
}

// deviceClaim is the name of a claim of a device, a new one or one that others use.
func (g *generator) deviceClaim() string {
	if g.devices == 0 || g.IntN(4) > 0 {
		g.devices++
		g.line("device-claim d%d", g.devices)
		return fmt.Sprint("d", g.devices)
	}
	return fmt.Sprint("d", 1+g.IntN(g.devices))
}

// alter changes what the additions to the story brought.
func (g *generator) alter() {
	switch g.with[g.IntN(len(g.with))] {
	case withLimits:
		g.line("limit %s %d", g.someNode(), g.pick(1, 2, 3))
	case withDevices:
		g.line("devices %s %d", g.someNode(), g.pick(0, 1, 2, 3))
	case withExtenders:
		g.line("update node %s %s", g.someNode(), g.word("label:"+licenceLabel+"="+licenceValue, "-label:"+licenceLabel))
	case withConstraints:
		g.line("update node %s label:%s=%s", g.someNode(), zoneLabel, g.word("a", "b"))
	case withBudgets:
		g.budget()
	case withClocks:
		g.line("clock %s by=%s", g.word("a", "a", "b", "c"), g.word("-1h", "-20s", "-3s", "3s", "20s", "1h"))
	}
}

// happen is one thing that happens.
func (g *generator) happen() {
	if g.batchHappens() {
		return
	}
	if len(g.with) > 0 && !g.with.has(withVolumes) && g.IntN(8) == 0 {
		g.alter()
		return
	}
	switch n := g.IntN(100); {
	case n < 35:
		for range g.pick(1, 1, 2, 4) {
			g.pod()
		}
	case n < 56:
		g.fault()
	case n < 60:
		g.succession()
	case n < 67:
		g.line("delete pod %s", g.somePod())
	case n < 70 && g.pods > 0: // another one of the same name
		p := g.somePod()
		g.line("delete pod %s", p)
		g.line("advance %dms", g.pick(5, 3500))
		g.line("again pod %s cpu=%s", p, g.word("500m", "1"))
	case n < 74:
		g.line("update node %s %s", g.someNode(), g.word("unschedulable", "-unschedulable", "-unschedulable", "label:zone=a", "cpu=4"))
	case n < 77:
		g.node()
	case n < 79:
		g.line("delete node %s", g.someNode())
	case n < 82 && len(g.gated) > 0:
		g.line("update pod %s -gate", g.gated[g.IntN(len(g.gated))])
	case n < 85:
		g.line("bind %s %s", g.somePod(), g.someNode())
	case n < 88:
		g.line("crash %s", g.word("leader", "leader", "a", "b"))
		if g.IntN(2) == 0 {
			g.line("advance %dms", g.pick(1, 900, 16000))
			g.line("start all")
		}
	case n < 91:
		g.line("terminate %s", g.word("leader", "leader", "a"))
		if g.IntN(2) == 0 {
			g.line("advance %dms", g.pick(600, 22000))
			g.line("start all")
		}
	case n < 92:
		g.line("suspend %s for=%dms", g.word("leader", "leader", "a", "b"), g.pick(3000, 13500, 17000, 22000))
	case n < 93:
		g.line("compact")
	case n < 95:
		g.line("cut all")
	case n < 96:
		g.line("delete lease kube-scheduler")
	case n < 98 && !g.saved:
		g.line("backup")
		g.saved = true
	case n >= 98 && g.saved:
		g.line("restore%s", g.word("", "", " ahead=5", " ahead=1000000"))
	}
}

// succession is a change of the leader while the watch of the next one is behind:
// it knows a pod that waits, and not the one that took the room for it.
func (g *generator) succession() {
	g.pod()
	g.line("advance %dms", g.pick(400, 1500))
	g.line("fault %s replica=%s kind=%s for=%dms by=%dms", g.word("lag", "lag", "freeze"), g.word("a", "b", "b"),
		g.word("pods", "pods", "pods", "nodes"), g.pick(8000, 25000), g.pick(5000, 20000))
	g.pods++
	g.line("pod p%d cpu=%s priority=100", g.pods, g.word("1", "2"))
	g.line("advance %dms", g.pick(1, 100))
	g.node()
	g.line("advance %dms", g.pick(200, 1500))
	g.line("%s leader", g.word("crash", "terminate"))
	if g.IntN(2) == 0 {
		g.line("advance %dms", g.pick(900, 16000))
		g.line("start all")
	}
}

// refusedEvictions is a pod of a high priority, whose victims do not go at once.
func (g *generator) refusedEvictions() {
	g.line("fault %s on=evict for=2500ms share=100%% code=500", g.word("refuse", "refuse", "lost-request"))
	for range g.pick(1, 2) {
		g.pods++
		g.line("pod p%d cpu=%s priority=1000", g.pods, g.word("1", "2"))
	}
	g.line("advance 1500ms")
}

// fault is one of the faults that there are.
func (g *generator) fault() {
	length := fmt.Sprintf("for=%dms", g.pick(800, 3000, 8000, 20000))
	share := fmt.Sprintf("share=%d%%", g.pick(10, 30, 30, 60, 100))
	who := g.word("", "", " replica=leader", " replica=a", " replica=b")
	on := g.word("", " on=bind", " on=bind", " on=bind", " on=evict", " on=status", " on=read", " on=lease", " on=lease", " on=event", " on=list", " on=watch")
	code := g.pick(401, 403, 409, 429, 429, 500, 500, 502, 503, 504)
	if code == 403 && (on == "" || on == " on=status") {
		on = " on=bind" // a status that may not be written is not tried again
	}
	kind := g.word("", " kind=pods", " kind=pods", " kind=nodes")
	if g.volumes() && g.IntN(3) == 0 {
		on, kind = " on=write", g.word(" kind=persistentvolumeclaims", " kind=persistentvolumes")
	}
	if g.with.has(withDevices) && g.IntN(3) == 0 {
		on, kind = " on=write", g.word(" kind="+resourceClaims, " kind="+resourceClaims, " kind="+resourceSlices)
	}
	if g.with.has(withExtenders) && g.IntN(2) == 0 {
		on = " on=extend"
		if g.IntN(3) == 0 {
			g.line("fault lie%s %s %s", who, length, share)
			return
		}
	}
	switch n := g.IntN(100); {
	case n < 12:
		g.line("fault lost-reply%s%s %s %s", who, on, length, share)
	case n < 18:
		g.line("fault lost-request%s%s %s %s", who, on, length, share)
	case n < 22:
		g.line("fault unreachable%s%s %s %s", who, on, length, share)
	case n < 28:
		g.line("fault slow%s%s %s %s by=%dms", who, on, length, share, g.pick(20, 300, 1500))
	case n < 36:
		g.line("fault slow-reply%s%s %s %s by=%dms", who, on, length, share, g.pick(50, 1000, 12000, 40000))
	case n < 41:
		g.line("fault hang%s%s %s %s", who, on, length, share)
	case n < 47:
		g.line("fault hang-reply%s%s %s %s", who, on, length, share)
	case n < 51:
		g.line("fault cut-body%s%s %s %s", who, g.word("", " on=watch", " on=list", " on=read"), length, share)
	case n < 62:
		g.line("fault refuse%s%s %s %s code=%d", who, on, length, share, code)
	case n < 68:
		g.line("fault fail-reply%s%s %s %s code=%d", who, on, length, share, g.pick(408, 500, 502, 503, 504))
	case n < 77:
		g.line("fault freeze%s%s %s", who, kind, length)
	case n < 83:
		g.line("fault lag%s%s %s %s by=%dms", who, kind, length, share, g.pick(100, 1000, 5000))
	case n < 86:
		g.line("fault stale%s %s by=%d", who, length, g.pick(1, 5, 30))
	case n < 90:
		g.line("fault panic%s %s share=%d%%", who, length, g.pick(1, 5, 20))
	default:
		g.line("fault %s%s%s for=20s nth=%d", g.word("crash-at", "crash-after"), who,
			g.word(" on=bind", " on=bind", " on=status", " on=evict", " on=lease", " on=event"), g.pick(1, 1, 2, 3, 5))
		if g.IntN(2) == 0 {
			g.line("advance %dms", g.pick(1500, 6000))
			g.line("start all")
		}
	}
}
