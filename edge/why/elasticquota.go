package why

import (
	"cmp"
	"math"
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/quota"
	"github.com/berth-scheduler/berth/core/resource"
)

// elasticQuota is the kind of a Workload whose pods are those of an ElasticQuota and its parts.
const elasticQuota = "elasticquota"

// Quota is how it stands with an ElasticQuota.
type Quota struct {
	Quota string `json:"quota"` // NAMESPACE/NAME
	// Parent is the ElasticQuota that this one is a part of, Parts are those that are a part of it.
	Parent string   `json:"parent,omitempty"`
	Parts  []string `json:"parts,omitempty"`
	// Faults say what of the object is wrong, and what counts instead.
	Faults []string `json:"faults,omitempty"`
	// Unwritten is set if the status has no amounts.
	Unwritten bool `json:"unwritten,omitempty"`
	// Resources are those that its min or max lists, by name; nil if another ElasticQuota of the
	// namespace counts.
	Resources []QuotaResource `json:"resources"`
}

// QuotaResource is how much of a resource an ElasticQuota guarantees, allows and uses. Amounts are
// quantities.
type QuotaResource struct {
	Name string `json:"name"`
	Used string `json:"used"`          // with its parts
	Min  string `json:"min,omitempty"` // "": nothing is guaranteed
	Max  string `json:"max,omitempty"` // "": it has no bound of its own
	// Status is what the status says is used, where that is another amount.
	Status string `json:"status,omitempty"`
	// Borrows is what is used above Min. Lends is what is not used of it.
	Borrows string `json:"borrows,omitempty"`
	Lends   string `json:"lends,omitempty"`
	// LentAtLeast and LentAtMost bound how much of Lends others use. They differ if others lend, too.
	LentAtLeast string `json:"lentAtLeast,omitempty"`
	LentAtMost  string `json:"lentAtMost,omitempty"`
	// Borrowers are ElasticQuotas beside this one that use more than their min, and by how much, the
	// most first, if this one lends. Lenders use less than theirs, if this one borrows.
	Borrowers []QuotaShare `json:"borrowers,omitempty"`
	Lenders   []QuotaShare `json:"lenders,omitempty"`
	// Free is the most that a pod may request to be within all quotas now. Limit says which one
	// a pod would exceed that requests more. Both are "" if none bounds it.
	Free  string `json:"free,omitempty"`
	Limit string `json:"limit,omitempty"`
	// Reclaims is the most that a pod may request to have pods of Borrowers make room for it. It is
	// "" if strict disruption budgets keep all of these.
	Reclaims string `json:"reclaims,omitempty"`
}

// QuotaShare is what an ElasticQuota has borrowed, or has to lend.
type QuotaShare struct {
	Quota  string `json:"quota"`
	Amount string `json:"amount"`

	value int64
}

// quotas returns the keys of all ElasticQuotas; none for nil, as whoever asks may not read the
// cluster then.
func quotas(m *machine.Machine) (keys []Workload) {
	if m == nil {
		return nil
	}
	for _, o := range m.Table().Objects().List(object.ElasticQuotas) {
		keys = append(keys, Workload{elasticQuota, o.Head().Namespace, o.Head().Name})
	}
	return keys
}

// IsQuota reports whether the scope is the pods of an ElasticQuota.
func (s *Scope) IsQuota() bool { return s.Workload != nil && s.Workload.Kind == elasticQuota }

// Check returns an error if the scope's ElasticQuota does not exist. It also returns one if the
// scope's pod group name stands for groups of several APIs in the namespace.
func (s *Scope) Check(c *Cluster) error {
	switch {
	case s.Workload == nil:
		return nil
	case s.IsQuota() && !c.knows(*s.Workload):
		return c.noSuchWorkload(*s.Workload)
	}
	return checkOneGroup(c, *s.Workload)
}

// isOfQuota reports whether pods of the namespace use what the ElasticQuota guarantees.
func isOfQuota(m *machine.Machine, namespace string, w Workload) bool {
	if m == nil {
		return namespace == w.Namespace
	}
	for q := quota.Of(m.Table()).Queue(namespace); q != nil; q = q.Parent() {
		if q.Quota.Namespace == w.Namespace && q.Quota.Name == w.Name {
			return true
		}
	}
	return false
}

// quotaRules returns the rules of the first profile that counts ElasticQuotas; nil if none does.
func quotaRules(m *machine.Machine) *framework.QuotaRules {
	for _, name := range m.Profiles() {
		if rules := m.Profile(name).Quotas; rules != nil {
			return rules
		}
	}
	return nil
}

// noQuotas says why no ElasticQuota counts; "" if they do, or that is not known.
func noQuotas(c *Cluster) string {
	if c.Machine == nil || quotaRules(c.Machine) != nil {
		return ""
	}
	text := "no profile of the configuration used here enables the plugin CapacityScheduling, so no ElasticQuota counts"
	if c.NoProfile != nil { // the machine is not the scheduler
		text += ": give --config FILE of the scheduler, or --daemon auto"
	}
	return text
}

// newQuota returns how it stands with the ElasticQuota; nil if there is none.
func newQuota(m *machine.Machine, w Workload) *Quota {
	var o *object.ElasticQuota
	for _, other := range m.Table().Objects().List(object.ElasticQuotas) {
		if h := other.Head(); h.Namespace == w.Namespace && h.Name == w.Name {
			o = other.(*object.ElasticQuota)
		}
	}
	if o == nil {
		return nil
	}
	queues := quota.Of(m.Table())
	out := &Quota{Quota: o.Key(), Faults: queues.Faults(o), Unwritten: len(o.Used) == 0, Resources: []QuotaResource{}}
	q := queues.Queue(o.Namespace)
	if q == nil || q.Quota.Name != o.Name {
		return out
	}
	beside := &besides{m: m, queues: queues, q: q, unlistedZero: quotaRules(m).UnlistedZero, nominated: nominatedPods(m)}
	for _, other := range queues.Queues() {
		switch {
		case other.Parent() == q:
			out.Parts = append(out.Parts, other.Quota.Key())
		case other != q && other.Parent() == q.Parent():
			beside.others = append(beside.others, other)
		}
	}
	if q.Parent() != nil {
		out.Parent = q.Parent().Quota.Key()
	}
	for _, used := range q.Used() {
		r := beside.resource(used)
		if is, _ := o.Used.Of(used.Name); !out.Unwritten && is != used.Value {
			r.Status = amountText(used.Name, is)
		}
		out.Resources = append(out.Resources, r)
	}
	return out
}

// nominatedPods returns the pods that are nominated to nodes.
func nominatedPods(m *machine.Machine) quota.Nominated {
	n := m.Nominator()
	return quota.Nominated{All: func(yield func(*object.Pod) bool) {
		for _, node := range n.NominatedNodes() {
			if _, known := m.Table().Find(node); !known {
				continue
			}
			for _, p := range n.NominatedTo(node) {
				if !yield(p) {
					return
				}
			}
		}
	}}
}

// besides asks how a queue stands to the others that have the same parent.
type besides struct {
	m            *machine.Machine
	queues       *quota.Index
	q            *quota.Queue
	others       []*quota.Queue
	unlistedZero bool
	nominated    quota.Nominated
}

// resource returns how it stands with a resource that the queue lists.
func (b *besides) resource(used object.Amount) QuotaResource {
	name := used.Name
	r := QuotaResource{Name: string(name), Used: amountText(name, used.Value)}
	least, guaranteed := b.q.Quota.Min.Of(name)
	if guaranteed {
		r.Min = amountText(name, least)
	}
	if most, bounded := b.q.Quota.Max.Of(name); bounded {
		r.Max = amountText(name, most)
	}
	borrowers, lenders := b.shares(name)
	switch spare := resource.Sub(least, used.Value); {
	case guaranteed && spare > 0:
		borrowed, others := total(borrowers), total(lenders)
		r.Lends, r.Borrowers = amountText(name, spare), borrowers
		r.LentAtLeast, r.LentAtMost = amountText(name, min(spare, max(0, resource.Sub(borrowed, others)))), amountText(name, min(spare, borrowed))
	case spare < 0 && (guaranteed || b.unlistedZero):
		r.Borrows, r.Lenders = amountText(name, resource.Sub(used.Value, least)), lenders
	}
	free := largest(func(n int64) bool { return b.exceeded(name, n) == nil })
	if free < math.MaxInt64 {
		r.Free = amountText(name, free)
		r.Limit = limitText(b.exceeded(name, free+1), b.q)
	}
	if len(r.Borrowers) > 0 {
		// the borrowers are beside the queue, so its own min decides
		entitled := largest(func(n int64) bool { return b.queues.Reclaim(b.ask(name, n), nil).EntitledTo(b.q) })
		if most, bounded := b.mayGo(name); bounded {
			entitled = min(entitled, resource.Add(free, most))
		}
		if entitled > free || entitled > 0 && !b.strict() {
			r.Reclaims = amountText(name, entitled)
		}
	}
	return r
}

// strict reports whether budgets are strict in a profile that counts ElasticQuotas.
func (b *besides) strict() bool {
	return slices.ContainsFunc(b.m.Profiles(), func(name string) bool {
		p := b.m.Profile(name)
		return p.Quotas != nil && p.StrictBudgets
	})
}

// mayGo returns how much of the resource is used by pods of the others that strict budgets let go
// together. It returns false if budgets are not strict.
func (b *besides) mayGo(name v1.ResourceName) (sum int64, bounded bool) {
	if !b.strict() {
		return 0, false
	}
	t, left := b.m.Table(), map[*object.Budget]int32{}
	var budgets []*object.Budget
	for _, budget := range b.m.Budgets() {
		strict := *budget
		strict.Strict = true
		budgets, left[&strict] = append(budgets, &strict), budget.Allowed
	}
	for _, row := range t.All() {
		for _, pl := range t.Pods(row) {
			q, p := b.queues.Queue(pl.Pod.Namespace), pl.Pod
			for q != nil && !slices.Contains(b.others, q) {
				q = q.Parent()
			}
			counts := func(budget *object.Budget) bool { return budget.Counts(p) }
			if q == nil || slices.ContainsFunc(budgets, func(budget *object.Budget) bool { return counts(budget) && left[budget] <= 0 }) {
				continue
			}
			for _, budget := range budgets {
				if counts(budget) {
					left[budget]--
				}
			}
			sum = resource.Add(sum, p.Demand.Usage.Of(name))
		}
	}
	return sum, true
}

// shares returns which of the others use more and less of the resource than their min, the most
// first.
func (b *besides) shares(name v1.ResourceName) (borrowers, lenders []QuotaShare) {
	for _, other := range b.others {
		least, guaranteed := other.Quota.Min.Of(name)
		used, _ := other.Used().Of(name)
		share := QuotaShare{Quota: other.Quota.Key(), value: resource.Sub(used, least)}
		switch {
		case !guaranteed && !b.unlistedZero:
		case share.value > 0:
			borrowers = append(borrowers, share)
		case share.value < 0:
			share.value = -share.value
			lenders = append(lenders, share)
		}
	}
	for _, shares := range [][]QuotaShare{borrowers, lenders} {
		for i := range shares {
			shares[i].Amount = amountText(name, shares[i].value)
		}
		slices.SortStableFunc(shares, func(a, b QuotaShare) int { return cmp.Compare(b.value, a.value) })
	}
	return borrowers, lenders
}

func total(shares []QuotaShare) (sum int64) {
	for _, s := range shares {
		sum = resource.Add(sum, s.value)
	}
	return sum
}

// ask returns the question for a pod of the queue's namespace that requests the amount of the
// resource, and before which each nominated pod counts.
func (b *besides) ask(name v1.ResourceName, amount int64) *quota.Ask {
	p := &object.Pod{Namespace: b.q.Quota.Namespace, Priority: math.MinInt32}
	switch u := &p.Demand.Usage; name {
	case v1.ResourceCPU:
		u.MilliCPU = amount
	case v1.ResourceMemory:
		u.Memory = amount
	case v1.ResourceEphemeralStorage:
		u.EphemeralStorage = amount
	default:
		u.Scalars = []resource.Scalar{{Name: name, Value: amount}}
	}
	return &quota.Ask{Pod: p, Nominated: b.nominated, UnlistedZero: b.unlistedZero}
}

// exceeded returns the limit that a pod would exceed which requests the amount; nil for none.
func (b *besides) exceeded(name v1.ResourceName, amount int64) *quota.Excess {
	return b.queues.Exceeded(b.ask(name, amount))
}

// largest returns the largest amount that passes; 0 if 1 does not. Smaller ones pass, too.
func largest(passes func(int64) bool) int64 {
	low, high := int64(0), int64(math.MaxInt64)
	if passes(high) {
		return high
	}
	for high-low > 1 {
		if middle := low + (high-low)/2; passes(middle) {
			low = middle
		} else {
			high = middle
		}
	}
	return low
}
