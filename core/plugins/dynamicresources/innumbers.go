package dynamicresources

import resourcev1 "k8s.io/api/resource/v1"

// Where numbers say all of the devices that requests may take, the search is done in
// numbers, to find out which nodes share an answer: those where it ends alike. It
// looks at requests, alternatives and devices in the allocator's order.

// inNumbers is the scratch of a search by numbers on one node.
type inNumbers struct {
	devices []*device // that some request may take
	matches []byte    // by alternative and device: whether the device matches
	unusual bool      // one of the devices has capacity left that numbers do not express
	// taken are the devices that the search has taken so far, and left what it has
	// left of counters.
	taken []bool
	left  []poolCounters
	steps int
	// chosen is the alternative of each request, where all are met.
	chosen []byte
}

// poolCounters is what is left of a pool's counters.
type poolCounters struct {
	pool int16
	left []amount
}

// amount is so much of a counter.
type amount struct {
	counter int32 // its number
	n       int64
}

// outcome is how a search ends.
type outcome byte

const (
	notFound outcome = iota + 1
	allMet
	selectorFails
	tooLong // too long a search, or one that numbers cannot express
)

// mostSteps bounds a search in numbers. The rest is left to the allocator.
const mostSteps = 512

func (n *inNumbers) clearDevices() {
	n.devices, n.matches, n.unusual = n.devices[:0], n.matches[:0], false
}

func (n *inNumbers) add(d *device, kind []byte, shared bool) {
	n.devices, n.matches = append(n.devices, d), append(n.matches, kind...)
	n.unusual = n.unusual || shared || d.held != 0
}

// appendOutcome writes how the search ends on the node at hand; false where numbers
// do not say that.
func (s *search) appendOutcome(key []byte, i *inventories) (ended []byte, known bool) {
	n := &s.inNumbers
	if n.unusual || s.unheard || s.admin || s.mostTaken() > resourcev1.AllocationResultsMaxSize || !n.readCounters(i) {
		return key, false
	}
	n.taken, n.chosen, n.steps = n.taken[:0], n.chosen[:0], 0
	for range n.devices {
		n.taken = append(n.taken, false)
	}
	for range s.requests {
		n.chosen = append(n.chosen, 0)
	}
	switch end := s.meet(i, 0, 0); end {
	case tooLong:
		return key, false
	case allMet:
		return append(append(key, 0, byte(end)), n.chosen...), true
	default:
		return append(key, 0, 0, byte(end)), true
	}
}

// mostTaken returns how many devices of the node at hand the requests may take.
func (s *search) mostTaken() int64 {
	if !s.allocatesAll {
		return s.most
	}
	sum := int64(0)
	for _, r := range s.requests {
		most := int64(0)
		for i := range r {
			if most = max(most, r[i].count); r[i].all {
				most = max(most, r[i].matching)
			}
		}
		sum += min(most, resourcev1.AllocationResultsMaxSize+1)
	}
	return sum
}

// readCounters reads what is left of the counters that the devices draw on; false
// where numbers do not say that.
func (n *inNumbers) readCounters(i *inventories) bool {
	n.left = n.left[:0]
	for _, d := range n.devices {
		if d.draws == 0 {
			continue
		}
		left, known := i.amounts[d.counters]
		if _, drawn := i.amounts[d.draws]; !known || !drawn {
			return false
		}
		if k := len(n.left) - 1; k >= 0 && n.left[k].pool == d.pool {
			continue
		}
		room := []amount(nil)
		if k := len(n.left); k < cap(n.left) {
			room = n.left[:k+1][k].left[:0]
		}
		n.left = append(n.left, poolCounters{d.pool, append(room, left...)})
	}
	return true
}

// meet tries to meet the requests from the q-th on. at is the index of that request's
// first alternative among all alternatives.
func (s *search) meet(i *inventories, q, at int) outcome {
	if q == len(s.requests) {
		return allMet
	}
	for j := range s.requests[q] {
		s.inNumbers.chosen[q] = byte(j + 1) // #nosec G115 -- the API allows 8
		take, from := s.take, place{q: q, j: j, at: at, left: s.requests[q][j].count}
		if s.requests[q][j].all {
			take, from.left = s.takeAll, 0
		}
		if end := take(i, from); end != notFound {
			return end
		}
	}
	return notFound
}

// place is where a search in numbers stands: at an alternative, and how many devices
// that still needs, from which one on, or how many it has got of all.
type place struct {
	q, j, at int
	left     int64
	from     int
}

func (s *search) take(i *inventories, p place) outcome {
	if p.left == 0 {
		return s.meet(i, p.q+1, p.at+len(s.requests[p.q]))
	}
	n := &s.inNumbers
	each := s.alternatives
	for ; p.from < len(n.devices); p.from++ {
		if n.steps++; n.steps > mostSteps {
			return tooLong
		}
		switch m := deviceMatch(n.matches[p.from*each+p.at+p.j]); {
		case m == failing && n.taken[p.from] && n.devices[p.from].measured: // it is asked about all the same
			return selectorFails
		case n.taken[p.from], n.devices[p.from].taken, m == rejected, m == untolerated:
			continue
		case m == failing:
			return selectorFails
		case s.requests[p.q][p.j].constrained:
			return tooLong
		}
		d := n.devices[p.from]
		if !n.draw(i, d, 1) {
			continue
		}
		n.taken[p.from] = true
		next := p
		next.left, next.from = p.left-1, p.from+1
		if end := s.take(i, next); end != notFound {
			return end
		}
		n.taken[p.from] = false
		n.draw(i, d, -1)
	}
	return notFound
}

// takeAll takes each device that matches, for a request for all. It fails if one of them
// is taken.
func (s *search) takeAll(i *inventories, p place) outcome {
	n := &s.inNumbers
	for ; p.from < len(n.devices); p.from++ {
		m := deviceMatch(n.matches[p.from*s.alternatives+p.at+p.j])
		if m == rejected {
			continue
		}
		if n.steps++; n.steps > mostSteps || s.requests[p.q][p.j].constrained {
			return tooLong
		}
		d := n.devices[p.from]
		if n.taken[p.from] || d.taken || m != matched || !n.draw(i, d, 1) {
			return notFound
		}
		n.taken[p.from] = true
		next := p
		next.left, next.from = p.left+1, p.from+1
		end := s.takeAll(i, next)
		if end == notFound {
			n.taken[p.from] = false
			n.draw(i, d, -1)
		}
		return end
	}
	if p.left == 0 { // there is none
		return notFound
	}
	return s.meet(i, p.q+1, p.at+len(s.requests[p.q]))
}

// draw subtracts what the device consumes from its pool's counters (sign 1), or adds it
// (-1). It returns false, and changes nothing, if a counter of the pool would be negative
// then, as the allocator sees it.
func (n *inNumbers) draw(i *inventories, d *device, sign int64) bool {
	if d.draws == 0 {
		return true
	}
	for k := range n.left {
		if n.left[k].pool != d.pool {
			continue
		}
		left, overdrawn := n.left[k].left, false
		for _, a := range i.amounts[d.draws] {
			for c := range left {
				if left[c].counter == a.counter {
					left[c].n -= sign * a.n
				}
			}
		}
		for c := range left {
			overdrawn = overdrawn || left[c].n < 0
		}
		if overdrawn && sign > 0 {
			n.draw(i, d, -1)
			return false
		}
	}
	return true
}
