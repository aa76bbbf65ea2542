package whatif

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// PricedShape is a shape of nodes, as add-nodes takes it, and what one node costs.
type PricedShape struct {
	Shape string
	Price Price // 0: none is given, which the only shape may do
}

// Price is in millionths of a unit that the user chooses.
type Price int64

const (
	millionths = 1_000_000
	maxPrice   = 1_000_000 // units; those of all nodes that are tried fit into an int64
	maxShapes  = 8
)

// String returns the price in units.
func (p Price) String() string { return strconv.FormatFloat(p.Units(), 'f', -1, 64) }

// Units returns the price in units.
func (p Price) Units() float64 { return float64(p) / millionths }

// ParseShapes reads shapes, each of which may have the attribute price=NUMBER. Of several,
// each has one.
func ParseShapes(words []string) ([]PricedShape, error) {
	if len(words) > maxShapes {
		return nil, fmt.Errorf("--nodes-like: %d shapes are given; at most %d", len(words), maxShapes)
	}
	var shapes []PricedShape
	for _, word := range words {
		s, err := parseShape(word)
		if err == nil && s.Price == 0 && len(words) > 1 {
			err = fmt.Errorf("%s: has no price; of several shapes each needs one, such as %s,price=0.25", word, word)
		}
		if err != nil {
			return nil, fmt.Errorf("--nodes-like: %w", err)
		}
		shapes = append(shapes, s)
	}
	return shapes, nil
}

func parseShape(word string) (s PricedShape, err error) {
	var rest []string
	for _, part := range strings.Split(word, ",") {
		value, ok := strings.CutPrefix(part, "price=")
		switch {
		case !ok:
			rest = append(rest, part)
		case s.Price != 0:
			return s, fmt.Errorf("%s: has two prices", word)
		default:
			if s.Price, err = parsePrice(value); err != nil {
				return s, fmt.Errorf("%s: %w", part, err)
			}
		}
	}
	if s.Shape = strings.Join(rest, ","); s.Shape == "" {
		err = fmt.Errorf("%q: names no node and no attribute of one, such as cpu=8,memory=32Gi", word)
	}
	return s, err
}

func parsePrice(text string) (Price, error) {
	units, err := strconv.ParseFloat(text, 64)
	price := Price(0)
	if err == nil && units > 0 && units <= maxPrice {
		price = Price(math.Round(units * millionths))
	}
	if price < 1 {
		return 0, fmt.Errorf("is no price from %s to %d, such as 0.25", Price(1), maxPrice)
	}
	return price, nil
}

// Bounds of the search for a cheaper set of nodes.
const (
	maxTried      = 300
	maxCandidates = 10_000
)

// errTried ends a search for a cheaper set that tries too many.
var errTried = errors.New("enough sets of nodes are tried")

// A cutError says why a run, or the search, ended too early.
type cutError string

func (e cutError) Error() string { return string(e) }

// cheapest looks for the cheapest set of nodes that is enough, given how many pods are pending
// without nodes. It reports whether no set is cheaper than the best that it played. If more
// nodes never place fewer pods, no set is enough that is part of one that is not. So the
// largest sets that are cheaper than the best so far decide whether there is a better one.
func (s *nodeSearch) cheapest(pending int) (proven bool, err error) {
	s.least = pending
	s.most = min(max(pending, 1), maxAdded/len(s.shapes)) // a node that helps places at least one pod
	starts, err := s.starts()
	if err != nil {
		return false, err
	}
	for _, start := range starts {
		if err := s.shrink(start.counts, start.keep); err != nil {
			return false, err
		}
	}
	for {
		better, all, err := s.cheaper(s.best().counts)
		if err != nil || !better {
			return all && !s.refuted(), err
		}
	}
}

// start is a set from which nodes are taken away, those of the shape to keep last.
type start struct {
	counts []int
	keep   int
}

// starts returns the largest sets that are enough: those of one shape, and, for each other
// shape, that of all shapes.
func (s *nodeSearch) starts() (list []start, err error) {
	for i := range s.shapes {
		alone := make([]int, len(s.shapes))
		alone[i] = s.most
		list = append(list, start{alone, i})
	}
	all := slices.Repeat([]int{s.most}, len(s.shapes))
	played := make([]*outcome, len(list))
	for i := range list {
		if played[i], err = s.play(list[i].counts); err != nil {
			return nil, err
		}
	}
	together, err := s.play(all)
	if err != nil {
		return nil, err
	}
	var mixed []start
	for i, r := range played {
		if len(r.unplaced) > s.least && len(together.unplaced) == s.least {
			mixed = append(mixed, start{slices.Clone(all), i})
		}
	}
	list = slices.DeleteFunc(list, func(x start) bool { return len(played[x.keep].unplaced) > s.least })
	return append(list, mixed...), nil
}

// cheaper looks for a set that costs less than the best and is enough, those that differ least
// from the best first. It reports whether it played one, and if not, whether there is none.
func (s *nodeSearch) cheaper(best []int) (better, none bool, err error) {
	candidates, all := s.candidates(s.price(best) - 1)
	distance := func(counts []int) (sum int) {
		for i, n := range counts {
			sum += max(n-best[i], best[i]-n)
		}
		return sum
	}
	slices.SortStableFunc(candidates, func(x, y []int) int { return distance(x) - distance(y) })
	for _, counts := range candidates {
		enough, err := s.enough(counts)
		if err != nil {
			return false, false, err
		}
		if enough {
			return true, false, s.shrink(counts, -1)
		}
	}
	return false, all, nil
}

// candidates returns the largest sets that cost at most so much, and whether it returns all
// of them.
func (s *nodeSearch) candidates(most Price) (list [][]int, all bool) {
	counts := make([]int, len(s.shapes))
	var choose func(shape int, left Price) bool
	choose = func(shape int, left Price) bool { // the dearest first
		if shape == 0 {
			counts[0] = s.affordable(0, left)
			list = append(list, slices.Clone(counts))
			return len(list) < maxCandidates
		}
		for n := range s.affordable(shape, left) + 1 {
			counts[shape] = n
			if !choose(shape-1, left-Price(n)*s.shapes[shape].Price) {
				return false
			}
		}
		return true
	}
	if most < 0 {
		return nil, true
	}
	all = choose(len(s.shapes)-1, most)
	return list, all
}

// affordable is how many nodes of the shape cost at most so much.
func (s *nodeSearch) affordable(shape int, most Price) int {
	return int(min(most/max(s.shapes[shape].Price, 1), Price(s.most)))
}

// shrink takes nodes away from the set as long as the rest is enough: of the dearest shape
// first, and of the shape to keep (-1 for none) last.
func (s *nodeSearch) shrink(counts []int, keep int) error {
	for i := range slices.Backward(s.shapes) {
		if i != keep {
			if err := s.shrinkShape(counts, i); err != nil {
				return err
			}
		}
	}
	if keep >= 0 {
		if err := s.shrinkShape(counts, keep); err != nil {
			return err
		}
	}
	s.shrunk = true
	return nil
}

// shrinkShape takes nodes of one shape away from the set.
func (s *nodeSearch) shrinkShape(counts []int, shape int) error {
	low, high := 0, counts[shape] // with high it is enough
	for low < high {
		counts[shape] = (low + high) / 2
		enough, err := s.enough(counts)
		switch {
		case err != nil:
			return err
		case enough:
			high = counts[shape]
		default:
			low = counts[shape] + 1
		}
	}
	counts[shape] = high
	return nil
}

func (s *nodeSearch) price(counts []int) (sum Price) {
	for i, n := range counts {
		sum += Price(n) * s.shapes[i].Price
	}
	return sum
}
