package dynamicresources

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"strconv"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// The result of a search for devices follows from what it can see of the node: in
// the allocator's order, which devices each request may take, and what of them
// claims and counters are held against. Nodes that are equal in that share the
// answer of one search, whatever their devices are called, and whatever else they
// offer: a claim that is seen for the first time costs a search for each kind of
// node that it can tell apart.

// found is the result of a search for devices on a node: the verdict, and the raw score of what the
// claims would get if the node fits.
type found struct {
	verdict framework.Verdict
	score   int64
}

const (
	// mostFound bounds the results kept for one search, and its kinds of devices. With more,
	// all of the search are dropped.
	mostFound = 1 << 10
	// mostSearches bounds the searches that are kept. With more, all are dropped.
	mostSearches = 256
)

// search is a set of claims to be allocated on a node, with results for nodes whose devices
// the search cannot tell apart. Pods share a search if their open claims request the same,
// whatever the claims' names. It also holds scratch for the node at hand.
type search struct {
	key      []byte          // all that the claims request
	requests [][]alternative // of all claims; each request with its alternatives
	// allocatesAll is set if a request has AllocationMode All, which includes taken
	// devices, or the search is opaque.
	allocatesAll bool
	// opaque is set if numbers do not say whether devices meet a request: this version does
	// not know its allocation mode, it has derived attributes, or the allocator may fail at
	// the capacity that it requests.
	opaque      bool
	constrained bool // a claim has constraints between devices
	constrains  bool // the last claim added has constraints
	// attributes are those that constraints compare.
	attributes []resourcev1.FullyQualifiedName
	// ordered is set if the order of devices matters. Otherwise only so many devices of a
	// kind matter as requests can use.
	ordered bool
	most    int64 // the most devices that all requests together take, AllocationMode All left out
	// alternatives is the number of alternatives of all requests together.
	alternatives int
	admin        bool // a request has admin access, which includes taken devices

	byKey map[string]found // results, by what the search reads of a node's devices
	kinds map[string]int32 // numbers of kinds of devices, by what the search reads of them
	// list holds, for each device of the node that some request may take, its kind's number.
	// wanted holds which requests may take it, as bits. A device that claims can share is in
	// wanted as often as the requests may take it.
	list   []int32
	wanted []uint64
	simple []uint64 // as wanted, but only for devices without shares, counters and capacity held
	kind   []byte   // scratch: the kind of one device, as bytes
	// allFails is set if a selector fails with an error on a device of the node, in a
	// request for all devices.
	allFails bool
	inNumbers
	// values holds, by device.content, the number for a device's values of attributes; 0: not
	// computed yet.
	values     []int32
	generation uint64 // of inventories, to which values belongs
}

// alternative is one way to meet a request: the request itself, or a subrequest of
// FirstAvailable.
type alternative struct {
	*deviceSelection
	count int64 // devices requested
	all   bool  // AllocationMode All: all devices that match, whatever count is
	admin bool  // admin access: it may have devices that are taken
	// constrained is set if its claim has constraints between devices.
	constrained bool
	// matching is the number of the node's devices that it may take, simple how many of
	// them are in search.simple.
	matching, simple int64
}

// searchFor returns the search for the open claims, those to be allocated: one that is kept, or a
// new one.
func (pl *plugin) searchFor(t *table.Table, open []*resourcev1.ResourceClaim) *search {
	all, alternatives := search{byKey: map[string]found{}, kinds: map[string]int32{}}, false
	for _, c := range open {
		all.key = append(all.key, 'c')
		all.constrain(&c.Spec.Devices)
		for i := range c.Spec.Devices.Requests {
			r := &c.Spec.Devices.Requests[i]
			all.requests, all.key = append(all.requests, nil), append(all.key, 'r')
			if e := r.Exactly; e != nil {
				all.add(pl.selections.of(t, e.DeviceClassName, e.Selectors, e.Tolerations, e.Capacity), e.AllocationMode, e.Count, e.DerivedAttributes)
				if e.AdminAccess != nil {
					all.requests[len(all.requests)-1][0].admin = *e.AdminAccess
					all.admin = all.admin || *e.AdminAccess
					all.key = strconv.AppendBool(all.key, *e.AdminAccess)
				}
			}
			for j := range r.FirstAvailable {
				if r.Exactly != nil {
					break
				}
				e := &r.FirstAvailable[j]
				alternatives, all.key = true, append(all.key, 'f') // what it gets is rated
				all.add(pl.selections.of(t, e.DeviceClassName, e.Selectors, e.Tolerations, e.Capacity), e.AllocationMode, e.Count, e.DerivedAttributes)
			}
		}
	}
	// Of several requests with alternatives, which of them are met depends on the
	// devices that come first.
	all.ordered = all.ordered || all.allocatesAll || alternatives && len(all.requests) > 1
	if known := pl.searches[string(all.key)]; known != nil {
		return known
	}
	if pl.searches == nil || len(pl.searches) >= mostSearches {
		pl.searches = map[string]*search{}
	}
	pl.searches[string(all.key)] = &all
	return &all
}

// constrain adds the constraints of a claim to the search. The claim's requests are added
// afterwards. For a distinct attribute the order of devices matters: the allocator takes a device
// whose attribute is a list only as the first.
func (s *search) constrain(c *resourcev1.DeviceClaim) {
	if s.constrains = len(c.Constraints) > 0; !s.constrains {
		return
	}
	s.constrained = true
	s.key = append(s.key, c.String()...) // they name requests
	for i := range c.Constraints {
		for _, a := range []*resourcev1.FullyQualifiedName{c.Constraints[i].MatchAttribute, c.Constraints[i].DistinctAttribute} {
			if a != nil {
				s.attributes = append(s.attributes, *a)
			}
		}
		s.ordered = s.ordered || c.Constraints[i].MatchAttribute == nil
	}
}

// add adds an alternative to the last request: the devices that by selects, with the allocation
// mode, count and derived attributes of the request. It updates the search's key and bounds.
func (s *search) add(by *deviceSelection, mode resourcev1.DeviceAllocationMode, count int64, derived []resourcev1.DeviceDerivedAttribute) {
	last := &s.requests[len(s.requests)-1]
	most := int64(0) // of those before
	for _, a := range *last {
		most = max(most, a.count)
	}
	exact, all := mode == resourcev1.DeviceAllocationModeExactCount, mode == resourcev1.DeviceAllocationModeAll
	*last = append(*last, alternative{deviceSelection: by, count: count, all: all, constrained: s.constrains})
	s.alternatives++
	s.key = strconv.AppendQuote(strconv.AppendQuote(strconv.AppendInt(append(s.key, 'a'), count, 36), string(mode)), by.key)
	for i := range derived {
		s.key = strconv.AppendQuote(append(s.key, 'd'), derived[i].String())
	}
	opaque := !exact && !all || len(derived) > 0 || by.absurd
	s.allocatesAll, s.opaque = s.allocatesAll || !exact || opaque, s.opaque || opaque
	s.most += max(0, min(count, resourcev1.AllocationResultsMaxSize+1)-most)
}

// prepared returns the search for what is to be allocated on the node (all), kept by the extended
// resources that the node lacks, for which a claim is made; nil if nothing is to be allocated.
// alike is false, and all nil, if results cannot be shared between nodes: there are more than 64
// extended resources.
func (pl *plugin) prepared(in *framework.Input, n *object.Node) (all *search, alike bool) {
	s, lacking := in.State.(*state), uint64(0)
	if e := s.extended; e != nil {
		if len(e.resources) > 64 {
			return nil, false
		}
		for i, r := range e.resources {
			if r.class != "" && n.Allocatable.Of(r.name) == 0 {
				lacking |= 1 << i
			}
		}
	}
	all, known := s.known.searches[lacking]
	if !known {
		if open, _ := s.openOn(n); len(open) > 0 {
			all = pl.searchFor(in.Table, open)
		}
		s.known.searches[lacking] = all
	}
	return all, true
}

// allocateAlike returns the result of searching the node's devices for the pod's claims. It reuses
// the result of another node if the search cannot tell the two apart; the error is nil then. Else
// it runs the allocator.
func (pl *plugin) allocateAlike(in *framework.Input, row table.Row, n *object.Node) (found, error) {
	if s := in.State.(*state); !s.alone || !pl.alone(in.Table, s) { // nodes are asked about concurrently
		return pl.searchOn(in, n)
	}
	all, alike := pl.prepared(in, n)
	if alike && all == nil {
		return found{}, nil
	}
	var v *inventory
	if alike {
		v = pl.inventories.of(in.Table, row)
	}
	if v == nil {
		return pl.searchOn(in, n)
	}
	pl.key = pl.appendInventoryKey(binary.AppendUvarint(pl.key[:0], v.generation), all, v)
	if f, known := all.byKey[string(pl.key)]; known {
		return f, nil
	}
	f, err := pl.searchOn(in, n)
	if len(all.kinds) > mostFound || len(all.byKey) >= mostFound {
		clear(all.kinds)
		clear(all.byKey)
	} else if !errors.Is(err, errSteps) {
		all.byKey[string(pl.key)] = f
	}
	return f, err
}

// appendInventoryKey appends what of the node's inventory the result of the search depends on. That
// is the alternatives that are chosen, or that the search fails, if this is simple to tell; else
// how a search in numbers ends; else the kinds of the devices that may be taken. Nodes with equal
// keys have equal results.
func (pl *plugin) appendInventoryKey(key []byte, s *search, v *inventory) []byte {
	failing := pl.readDevices(s, v)
	fails := failing < len(s.requests)
	if !s.allocatesAll && s.most <= resourcev1.AllocationResultsMaxSize {
		if fails && s.endsBefore(failing) {
			return append(key, 0, 0)
		}
		if taken, plain := s.appendChosenAlternatives(key); plain && !fails {
			return taken
		}
	}
	if !s.allFails {
		if ended, known := s.appendOutcome(key, &pl.inventories); known {
			return ended
		}
	}
	ordered := s.ordered || fails // the search ends at what fails
	if !ordered {
		slices.Sort(s.list)
	}
	again := int64(0)
	for i, kind := range s.list {
		if again++; i == 0 || kind != s.list[i-1] {
			again = 1
		}
		if ordered || again <= s.most {
			key = binary.AppendUvarint(key, uint64(kind)+1) // #nosec G115 -- counted from 0
		}
	}
	return key
}

// readDevices lists the devices of the node with inventory v that the requests may take, in s, and
// counts them by alternative. It returns the index of the first request of which a selector fails
// with an error, or the number of requests if none does.
func (pl *plugin) readDevices(s *search, v *inventory) (first int) {
	for _, r := range s.requests {
		for j := range r {
			r[j].matching, r[j].simple = 0, 0
		}
	}
	s.list, s.wanted, s.simple, first = s.list[:0], s.wanted[:0], s.simple[:0], len(s.requests)
	s.inNumbers.clearDevices()
	s.allFails = false
	for d := range pl.inventories.devicesOn(v) {
		kind, wanted, parts := s.kind[:0], uint64(0), false
		for q, r := range s.requests {
			for j := range r {
				m := r[j].matches(pl, d)
				if !s.allocatesAll && (m == untolerated || d.taken && !r[j].admin || m == matched && r[j].spent(d)) || d.elsewhere && m != failing {
					m = rejected
				}
				kind = append(kind, byte(m))
				if m == failing {
					first = min(first, q)
					s.allFails = s.allFails || r[j].all
				}
				if m != rejected {
					wanted |= 1 << min(q, 63)
					parts = parts || r[j].capacity != nil
				}
			}
		}
		if wanted == 0 {
			continue
		}
		shared := d.measured && (parts || !d.undivided)
		simple := !shared && d.held == 0 && d.draws == 0
		s.count(kind, simple)
		s.inNumbers.add(d, kind, shared)
		s.kind = s.appendRest(kind, &pl.inventories, d)
		if simple {
			s.simple = append(s.simple, wanted)
		}
		s.list, s.wanted = append(s.list, s.kindOf(s.kind)), append(s.wanted, wanted)
		for n := int64(1); shared && n < s.most; n++ {
			s.wanted = append(s.wanted, wanted)
		}
	}
	return first
}

// spent reports whether the alternative cannot have the device because it requests no capacity,
// which means all, and other claims have some of that.
func (a *alternative) spent(d *device) bool { return d.partial && a.capacity == nil }

// count counts a device for the alternatives that may take it, in matching and simple. kind begins
// with its match for each of them; simple is set if the device belongs in s.simple.
func (s *search) count(kind []byte, simple bool) {
	at := 0
	for _, r := range s.requests {
		for j := range r {
			if deviceMatch(kind[at]) != rejected {
				r[j].matching++
				if simple {
					r[j].simple++
				}
			}
			at++
		}
	}
}

// endsBefore reports whether the allocator surely gives up before it reaches the request with this
// index, since the requests before it cannot all be met. It is false if that is not known.
func (s *search) endsBefore(request int) bool {
	for _, r := range s.requests[:request] {
		if !slices.ContainsFunc(r, func(a alternative) bool { return a.matching >= a.count }) {
			return true
		}
	}
	return !s.enough(s.wanted, request, true)
}

// appendChosenAlternatives appends which alternative each request gets, if the numbers of matching
// devices alone decide that. plain is false if they do not, or if claims have constraints: the
// returned key is of no use then. An alternative with too few devices is never chosen; one is
// surely chosen if there are enough devices whatever the other requests take. If a request gets
// none, the key says that the search fails.
func (s *search) appendChosenAlternatives(key []byte) (taken []byte, plain bool) {
	plain, taken = true, append(key, 0)
	for _, r := range s.requests {
		j := slices.IndexFunc(r, func(a alternative) bool { return a.matching >= a.count })
		if j < 0 {
			return append(key, 0, 0), true
		}
		plain = plain && (r[j].simple >= s.most || len(s.requests) == 1 && r[j].simple >= r[j].count)
		taken = append(taken, byte(j+1)) // #nosec G115 -- the API allows 8
	}
	if !plain {
		if !s.enough(s.wanted, len(s.requests), true) {
			return append(key, 0, 0), true
		}
		plain = s.enough(s.simple, len(s.requests), false)
	}
	return taken, plain && !s.constrained
}

// enough reports whether each of the first requests (as many as first says) can have as many
// devices as its smallest alternative wants, each device for one request (a bipartite matching).
// wanted holds for each device the requests that may take it, as bits. It returns unknown where
// this is not computed: for too many devices or requests, for admin access and, if unknown is
// false, for requests with several alternatives.
func (s *search) enough(wanted []uint64, first int, unknown bool) bool {
	var holders [32]uint8 // of devices, from 1
	if len(s.requests) > 64 || len(wanted) > len(holders) {
		return unknown
	}
	for q, r := range s.requests[:first] {
		least := int64(math.MaxInt64)
		for _, a := range r {
			if a.admin || len(r) > 1 && !unknown {
				return unknown
			}
			least = min(least, a.count)
		}
		for ; least > 0; least-- {
			if tried := uint32(0); !holds(wanted, uint8(q), &holders, &tried) { // #nosec G115 -- at most 64
				return false
			}
		}
	}
	return true
}

// holds assigns one more device to the request, for which other requests may have to swap theirs
// (an augmenting path), and reports whether it could. of holds the requests that may take each
// device, as bits; holders the request that has it, plus 1; tried the devices that were looked at,
// as bits.
func holds(of []uint64, request uint8, holders *[32]uint8, tried *uint32) bool {
	for i, wanted := range of {
		if wanted>>request&1 == 0 || *tried>>i&1 == 1 {
			continue
		}
		*tried |= 1 << i
		if holders[i] == 0 || holds(of, holders[i]-1, holders, tried) {
			holders[i] = request + 1
			return true
		}
	}
	return false
}

// appendRest appends to a device's kind, which begins with its matches, what else the allocator
// reads of it: whether it is taken, shares held, counters, capacity, and the attributes that
// constraints compare.
func (s *search) appendRest(kind []byte, i *inventories, d *device) []byte {
	taken := int64(0)
	if d.taken {
		taken = 1
	}
	kind = binary.AppendVarint(binary.AppendVarint(kind, taken), int64(d.held))
	kind = binary.AppendVarint(binary.AppendVarint(binary.AppendVarint(kind, int64(d.draws)), int64(d.counters)), int64(d.pool))
	if d.measured || d.held != 0 {
		kind = binary.AppendVarint(append(kind, 'm'), int64(d.capacity))
	}
	switch {
	case s.opaque:
		kind = binary.AppendVarint(append(kind, 'o'), int64(d.content))
	case s.constrained:
		kind = binary.AppendVarint(append(kind, 'c'), int64(s.valuesOf(i, d.content)))
	}
	return kind
}

// valuesOf returns a number for the values that devices with this content (a device.content) have
// of the attributes that constraints compare: equal for equal values.
func (s *search) valuesOf(i *inventories, content int32) int32 {
	if s.generation != i.generation {
		s.generation, s.values = i.generation, nil
	}
	if n := int(content) + 1 - len(s.values); n > 0 {
		s.values = append(s.values, make([]int32, n)...)
	}
	if s.values[content] == 0 {
		s.values[content] = i.number(i.contents.things[content-1].appendValues(append(i.key[:0], 'a'), s.attributes))
	}
	return s.values[content]
}

// kindOf returns the number of a kind of devices, a new one for a new kind.
func (s *search) kindOf(kind []byte) int32 {
	n, known := s.kinds[string(kind)]
	if !known {
		n = int32(len(s.kinds)) // #nosec G115 -- bounded with the numbers
		s.kinds[string(kind)] = n
	}
	return n
}
