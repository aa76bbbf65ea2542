package noderesources

import (
	v1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/draw"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/headroom"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/resource"
	"github.com/berth-scheduler/berth/core/table"
)

// A verdict is a set of bits: too many pods, one for each resource that is
// short, and two about them.
const (
	tooManyPods framework.Verdict = 1
	// noOwnBit: the check has no bit of its own, because the pod requests more
	// resources than there are bits. Its code is mixed into those of the
	// others instead, and Explain looks at the row again.
	noOwnBit framework.Verdict = 1 << 62
	// unresolvable: the pod requests more than the whole node has.
	unresolvable framework.Verdict = 1 << 63
)

// The bits of the first and of the last check.
const (
	firstResource = 1
	lastResource  = 61
)

// check is one resource that the pod requests.
type check struct {
	name    v1.ResourceName
	request int64 // positive
	column  table.Resource
	known   bool // the column existed when the check was made
	flag    framework.Verdict
	code    framework.Verdict // of a crowded check
	// delegated: nodes that offer none do not count, a device class does.
	delegated bool
}

// preFilter lists what the pod requests: CPU, memory, ephemeral storage, then
// the others by name.
func (ig ignored) preFilter(t *table.Table, p *object.Pod) framework.PreFilterResult {
	return framework.PreFilterResult{State: ig.checks(t, &p.Demand.Requests)}
}

func (ig ignored) checks(t *table.Table, requests *resource.Vector) []check {
	var list []check
	add := func(name v1.ResourceName, request int64) {
		if request <= 0 {
			return
		}
		c := check{name: name, request: request}
		c.column, c.known = t.Column(name)
		c.delegated = ig.delegates(t, name)
		if bit := firstResource + len(list); bit <= lastResource {
			c.flag = 1 << bit
		} else {
			c.flag, c.code = noOwnBit, hashBits(name)
		}
		list = append(list, c)
	}
	add(v1.ResourceCPU, requests.MilliCPU)
	add(v1.ResourceMemory, requests.Memory)
	add(v1.ResourceEphemeralStorage, requests.EphemeralStorage)
	for _, s := range requests.Scalars {
		if !ig.has(s.Name) {
			add(s.Name, s.Value)
		}
	}
	return list
}

// hashBits returns bits, among firstResource..lastResource, that differ between two
// resources with near certainty.
func hashBits(name v1.ResourceName) framework.Verdict {
	return framework.Verdict(draw.Hash(string(name))) & (1<<(lastResource+1) - 1<<firstResource)
}

// filter rejects rows on which a requested amount is not free, or that take no further
// pod.
func filter(in *framework.Input, rows []table.Row, out []framework.Verdict) {
	checks := in.State.([]check)
	if onlyBasic(checks) {
		filterBasic(in.Table, checks, rows, out)
		return
	}
	filterGeneral(in.Table, checks, rows, out)
}

// onlyBasic reports whether the checks are exactly CPU and memory.
func onlyBasic(checks []check) bool {
	return len(checks) == 2 && checks[0].column == table.CPU && checks[1].column == table.Memory
}

// joinPass adds the filter to a pass, if it checks CPU and memory only. It returns false
// otherwise.
func joinPass(in *framework.Input, p *headroom.Pass) bool {
	checks := in.State.([]check)
	if !onlyBasic(checks) {
		return false
	}
	p.JoinFit(headroom.Of(checks[0].request, checks[1].request))
	return true
}

// filterBasic filters by CPU and memory, the only requests of most pods. It checks blocks
// of rows at once, since mostly all of them fit.
func filterBasic(t *table.Table, checks []check, rows []table.Row, out []framework.Verdict) {
	column, requests := t.Headroom(), headroom.Of(checks[0].request, checks[1].request)
	for from := 0; from < len(rows); from += 64 {
		to := min(from+64, len(rows))
		if requests.FitAll(column, rows[from:to]) {
			clear(out[from:to]) // framework.Fits
		} else {
			filterGeneral(t, checks, rows[from:to], out[from:to])
		}
	}
}

func filterGeneral(t *table.Table, checks []check, rows []table.Row, out []framework.Verdict) {
	count, allowed := t.PodCount(), t.AllowedPods()
	for i, r := range rows {
		out[i] = framework.Fits
		if count[r] >= allowed[r] {
			out[i] = tooManyPods
		}
	}
	for i := range checks {
		checks[i].run(t, rows, out)
	}
}

func (c *check) run(t *table.Table, rows []table.Row, out []framework.Verdict) {
	column, ok := c.find(t)
	switch {
	case !ok && c.delegated:
		return
	case !ok:
		for i := range out {
			out[i] = c.short(out[i]) | unresolvable
		}
		return
	}
	allocatable, used, request, delegated := t.Allocatable(column), t.Used(column), c.request, c.delegated
	for i, r := range rows {
		switch a := allocatable[r]; {
		case delegated && a <= 0:
		case request > a:
			out[i] = c.short(out[i]) | unresolvable
		case request > a-used[r]: // a is positive and used never negative: no overflow
			out[i] = c.short(out[i])
		}
	}
}

// find returns the resource's column, which may be younger than the check.
func (c *check) find(t *table.Table) (table.Resource, bool) {
	if c.known {
		return c.column, true
	}
	return t.Column(c.name)
}

func (c *check) short(v framework.Verdict) framework.Verdict { return (v | c.flag) ^ c.code }

func explain(in *framework.Input, row table.Row, v framework.Verdict) decision.Blocker {
	b := decision.Blocker{Code: decision.Unschedulable}
	if v&unresolvable != 0 {
		b.Code = decision.UnschedulableAndUnresolvable
	}
	add := func(resource v1.ResourceName, reason string) {
		b.Insufficient, b.Reasons = append(b.Insufficient, resource), append(b.Reasons, reason)
	}
	if v&tooManyPods != 0 {
		add(v1.ResourcePods, "Too many pods")
	}
	checks := in.State.([]check)
	for i := range checks {
		c := &checks[i]
		short := v&c.flag != 0
		if v&noOwnBit != 0 {
			var alone [1]framework.Verdict
			c.run(in.Table, []table.Row{row}, alone[:])
			short = alone[0] != framework.Fits
		}
		if short {
			add(c.name, "Insufficient "+string(c.name))
		}
	}
	return b
}
