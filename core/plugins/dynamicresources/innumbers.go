package dynamicresources

import resourcev1 "k8s.io/api/resource/v1"

// Where numbers say all of the devices that requests may take, the search is done in
// numbers, to find out which nodes share an answer: those where it ends alike. It
// looks at requests, alternatives and devices in the allocator's order.

// inNumbers is the scratch of a search for devices on one node that compares the numbers
// which inventories gave to equal contents, instead of evaluating selectors.
type inNumbers struct {
	devices []*device // that some request may take
	matches []byte    // deviceMatch values, those of the first device first, one for each alternative
	unusual bool      // a device is or can be shared: a search by numbers is not possible
	// taken holds, by device, whether the search has taken it, and left what remains of
	// the pools' counters.
	taken []bool
	left  []poolCounters
	steps int // devices looked at
	// chosen is the alternative of each request, from 1; 0: not reached yet.
	chosen []byte
}

// poolCounters is what is left of the counters of a pool.
type poolCounters struct {
	pool int16 // device.pool
	left []amount
}

// amount is how much of a shared counter (KEP-4815, partitionable devices) is left in a pool
// or consumed by a device.
type amount struct {
	counter int32 // the number that the counter's set and name got
	n       int64
}

// outcome is how a search for devices ends that compares only numbers. tooLong leaves the
// node to the allocator.
type outcome byte

const (
	notFound      outcome = iota + 1 // the requests cannot all be met
	allMet                           // all requests are met
	selectorFails                    // a selector fails with an error
	tooLong                          // too many steps, or numbers do not express the search
)

// mostSteps bounds a search by numbers. Longer ones are left to the allocator.
const mostSteps = 512

// clearDevices removes all devices, before those of another node are added.
func (n *inNumbers) clearDevices() {
	n.devices, n.matches, n.unusual = n.devices[:0], n.matches[:0], false
}

// add adds a device; kind holds its match for each alternative. shared is set if several claims may
// have parts of it. That, or a share that a claim holds, sets unusual.
func (n *inNumbers) add(d *device, kind []byte, shared bool) {
	n.devices, n.matches = append(n.devices, d), append(n.matches, kind...)
	n.unusual = n.unusual || shared || d.held != 0
}

// appendOutcome runs the search by numbers on the devices that were added. It appends how the
// search ends and, if all requests are met, by which alternatives. known is false, and key as it
// was, if numbers do not tell that.
func (s *search) appendOutcome(key []byte, i *inventories) (ended []byte, known bool) {
	n := &s.inNumbers
	if n.unusual || s.opaque || s.admin || s.mostTaken() > resourcev1.AllocationResultsMaxSize || !n.readCounters(i) {
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

// mostTaken returns the most devices of the node that the requests may take together, those of
// AllocationMode All included.
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

// readCounters sets left to what is left of the counters that the devices consume. It returns false
// if numbers do not tell that.
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

// meet tries to meet the requests from index q on, each by its first alternative that lets the rest
// be met. at is the index of request q's first alternative among all alternatives.
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

// place is a state of the search: an alternative of a request, the next device to look at, and how
// many devices the alternative still needs.
type place struct {
	q, j, at int   // request, alternative, and the request's first alternative among all
	left     int64 // devices still needed; in takeAll: taken so far
	from     int   // index of the next device
}

// take searches devices for the request and alternative of p, in order and with backtracking, then
// goes on to the next request. The devices stay taken if all requests are met. It returns tooLong
// after mostSteps, or if a claim with constraints may take a device.
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

// takeAll takes every device that matches, for a request for all devices, then goes on to the next
// request. It returns notFound if one of them cannot be taken or no device matches, and tooLong
// after mostSteps or for a claim with constraints.
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
// back (-1). It returns false, and changes nothing, if a counter of the pool would
// become negative.
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
