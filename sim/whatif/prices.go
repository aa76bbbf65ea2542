package whatif

import (
	"cmp"
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

// cheapest looks for the cheapest set of nodes that is enough. It returns the cheapest that
// it found, and whether no cheaper one is enough. If more nodes never place fewer pods, no set
// is enough that is part of one that is not. So the largest sets that are cheaper than the best
// so far decide whether there is a better one. Those that differ least from the best come first.
func (s *nodeSearch) cheapest() (best []int, proven bool, err error) {
	for i := range s.shapes {
		counts := make([]int, len(s.shapes))
		for j := range counts {
			counts[j] = s.most
		}
		err := s.shrink(counts, i)
		if err != nil && best == nil { // it is not known how few nodes are enough
			return nil, false, err
		}
		if best == nil || s.price(counts) < s.price(best) {
			best = counts
		}
		if err != nil {
			return best, false, err
		}
		s.bounded = true
	}
	for {
		better, proven, err := s.cheaper(best)
		if better != nil {
			best = better
		}
		if better == nil || err != nil {
			return best, proven, err
		}
	}
}

// cheaper returns a set that costs less than the best and is enough, nil if none is found.
func (s *nodeSearch) cheaper(best []int) (better []int, proven bool, err error) {
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
			return nil, false, err
		}
		if enough {
			return counts, false, s.shrink(counts, -1)
		}
	}
	return nil, all, nil
}

// candidates returns the largest sets that cost at most so much, and whether it returns all
// of them.
func (s *nodeSearch) candidates(most Price) (list [][]int, all bool) {
	order := s.byPrice()
	last := order[len(order)-1]
	counts := make([]int, len(s.shapes))
	var choose func(at int, left Price) bool
	choose = func(at int, left Price) bool {
		if order[at] == last {
			counts[last] = s.affordable(last, left)
			list = append(list, slices.Clone(counts))
			return len(list) < maxCandidates
		}
		i := order[at]
		for n := range s.affordable(i, left) + 1 {
			counts[i] = n
			if !choose(at+1, left-Price(n)*s.shapes[i].Price) {
				return false
			}
		}
		return true
	}
	if most < 0 {
		return nil, true
	}
	all = choose(0, most)
	return list, all
}

// affordable is how many nodes of the shape cost at most so much.
func (s *nodeSearch) affordable(shape int, most Price) int {
	return int(min(most/max(s.shapes[shape].Price, 1), Price(s.most)))
}

// byPrice returns the shapes, the dearest first.
func (s *nodeSearch) byPrice() []int {
	order := make([]int, len(s.shapes))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(x, y int) int { return cmp.Compare(s.shapes[y].Price, s.shapes[x].Price) })
	return order
}

// shrink takes nodes away from the set as long as the rest is enough: of the dearest shape
// first, and of the shape to keep (-1 for none) last. On an error what is left is enough, too.
func (s *nodeSearch) shrink(counts []int, keep int) error {
	order := slices.DeleteFunc(s.byPrice(), func(i int) bool { return i == keep })
	if keep >= 0 {
		order = append(order, keep)
	}
	for _, i := range order {
		low, high := 0, counts[i] // with high it is enough
		for low < high {
			counts[i] = (low + high) / 2
			enough, err := s.enough(counts)
			switch {
			case err != nil:
				counts[i] = high
				return err
			case enough:
				high = counts[i]
			default:
				low = counts[i] + 1
			}
		}
		counts[i] = high
	}
	return nil
}

func (s *nodeSearch) price(counts []int) (sum Price) {
	for i, n := range counts {
		sum += Price(n) * s.shapes[i].Price
	}
	return sum
}
