package whatif_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/berth-scheduler/berth/sim/whatif"
)

// fitNodes finds the cheapest set of nodes of the shapes.
func fitNodes(t *testing.T, text string, shapes ...string) *whatif.NodesFit {
	t.Helper()
	set, in := cluster(t, text)
	priced, err := whatif.ParseShapes(shapes)
	if err != nil {
		t.Fatal(err)
	}
	r, err := whatif.FitNodes(set, in, options, nil, priced)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Of several shapes the cheapest set of nodes is found that places what any number places.
func TestFitNodesOfShapes(t *testing.T) {
	pods := func(n, cpu int) (text string) {
		for i := range n {
			text += pod(fmt.Sprintf("p%d-%d", cpu, i), "", cpu, "")
		}
		return text
	}
	for name, c := range map[string]struct {
		text, shapes, want string
	}{
		"both":                            {pods(9, 2), "cpu=4,price=1 cpu=8,price=1.9", "[1 2] for 4.8, 9 placed, 0 not"},
		"one shape alone":                 {pods(9, 2), "cpu=4,price=1 cpu=8,price=2.1", "[5 0] for 5, 9 placed, 0 not"},
		"two kinds of pods":               {pods(1, 7) + pods(4, 1), "cpu=2,price=1 cpu=8,price=5", "[2 1] for 7, 5 placed, 0 not"},
		"a shape that helps nobody":       {pods(3, 3), "cpu=2,price=0.1 cpu=4,price=1", "[0 3] for 3, 3 placed, 0 not"},
		"shapes that help different pods": {pods(1, 2) + pod("q", "", 1, "nodeSelector: {pool: x}, "), "cpu=1,price=1,label:pool=x cpu=2,price=2", "[1 1] for 3, 2 placed, 0 not"},
		"what no node helps stays":        {pods(2, 2) + pods(1, 9), "cpu=2,price=1 cpu=4,price=1.5", "[0 1] for 1.5, 2 placed, 1 not"},
		"nothing helps":                   {pods(1, 9), "cpu=2,price=1 cpu=4,price=1.5", "[0 0] for 0, 0 placed, 1 not"},
		"nothing is missing":              {node("a", "") + pods(2, 2), "cpu=2,price=1 cpu=4,price=1.5", "[0 0] for 0, 0 placed, 0 not"},
	} {
		t.Run(name, func(t *testing.T) {
			r := fitNodes(t, c.text, strings.Fields(c.shapes)...)
			if got := fmt.Sprintf("%v for %s, %d placed, %d not", r.Counts, r.Price(), r.Placed, len(r.Unplaced)); got != c.want || !r.Proven {
				t.Errorf("got %s, proven %t, want %s", got, r.Proven, c.want)
			}
		})
	}
}

// Nodes of a shape that makes the others worse are left out: a spread over zones counts the
// zone of nodes that are too small. That more nodes can place fewer pods is known then, so
// nothing is proven.
func TestFitNodesWhereMoreAreWorse(t *testing.T) {
	text := strings.Replace(node("a", ""), "cpu: 4", "cpu: 1", 1)
	for i := range 5 {
		text += pod(fmt.Sprint("p", i), "", 1, "topologySpreadConstraints: [{maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: web}}}], ")
	}
	r := fitNodes(t, text, "cpu=4,zone=a,price=1", "cpu=500m,zone=b,price=0.5")
	if got := fmt.Sprintf("%v for %s, %d placed, %d not, proven %t", r.Counts, r.Price(), r.Placed, len(r.Unplaced), r.Proven); got != "[1 0] for 1, 4 placed, 0 not, proven false" {
		t.Error(got)
	}
}

// Many shapes are each tried alone, also where the search ends before it is over: the dearest is
// the best for its size here. The order in which they are given does not matter.
func TestFitNodesInEachOrder(t *testing.T) {
	text, shapes := "", []string{}
	for i := range 40 {
		text += pod(fmt.Sprint("p", i), "", 1+i%3, "")
	}
	for i := range 8 {
		shapes = append(shapes, fmt.Sprintf("cpu=%d,price=%d", 3+i, 100+i*(30-i)))
	}
	alone := fitNodes(t, text, shapes[7])
	given := fitNodes(t, text, shapes...)
	slices.Reverse(shapes)
	reversed := fitNodes(t, text, shapes...)
	if given.Proven || given.Price() > alone.Price() || given.Price() != reversed.Price() || len(given.Unplaced) > 0 {
		t.Errorf("%v for %s, proven %t, reversed %v for %s, the dearest alone %s", given.Counts, given.Price(), given.Proven, reversed.Counts, reversed.Price(), alone.Price())
	}
	slices.Reverse(reversed.Counts)
	if !slices.Equal(given.Counts, reversed.Counts) {
		t.Errorf("%v, reversed %v", given.Counts, reversed.Counts)
	}
}

// What is said to be the cheapest is: of pods of one size, no set that costs less places as
// many, whichever the prices are.
func TestFitNodesIsCheapest(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		text, pods := "", 1+random.IntN(6)
		for i := range pods {
			text += pod(fmt.Sprint("p", i), "", 2, "")
		}
		sizes, prices, shapes := []int{2, 4, 7}, [3]int{}, []string{}
		for i, size := range sizes {
			prices[i] = 1 + random.IntN(5*size)
			shapes = append(shapes, fmt.Sprintf("cpu=%d,price=%d", size, prices[i]))
		}
		cheapest := 1 << 30
		for a := range pods + 1 {
			for b := range pods + 1 {
				for c := range pods + 1 {
					if a+2*b+3*c >= pods {
						cheapest = min(cheapest, a*prices[0]+b*prices[1]+c*prices[2])
					}
				}
			}
		}
		r := fitNodes(t, text, shapes...)
		if got := int(r.Price().Units()); got != cheapest || !r.Proven || len(r.Unplaced) > 0 {
			t.Errorf("%d pods, %v: %v for %d, proven %t; the cheapest is %d", pods, shapes, r.Counts, got, r.Proven, cheapest)
		}
	}
}

// A search that is not over after many sets, or whose time is up, gives the cheapest set so
// far and does not say that it is the cheapest of all.
func TestFitNodesIsBounded(t *testing.T) {
	text := ""
	for i := range 40 {
		text += pod(fmt.Sprint("p", i), "", 1+i%3, "")
	}
	shapes := []string{"cpu=3,price=1", "cpu=5,price=1.61", "cpu=7,price=2.27", "cpu=8,price=2.61"}
	r := fitNodes(t, text, shapes...)
	if r.Proven || r.Tried != 300 || len(r.Unplaced) > 0 {
		t.Errorf("proven %t, %d tried, %d pending", r.Proven, r.Tried, len(r.Unplaced))
	}
	priced, err := whatif.ParseShapes(shapes)
	if err != nil {
		t.Fatal(err)
	}
	for asked, known := range map[int]bool{0: false, 200: true} {
		set, in := cluster(t, text)
		in.Stop = func() bool { asked--; return asked < 0 }
		r, err := whatif.FitNodes(set, in, options, nil, priced)
		switch {
		case !known && err == nil, known && err != nil:
			t.Errorf("%+v, %v", r, err)
		case known && (r.Proven || r.Tried >= 300 || len(r.Unplaced) > 0 || !strings.Contains(fmt.Sprint(r.Notices), "cut: the time was up")):
			t.Errorf("proven %t, %d tried, %d pending, %v", r.Proven, r.Tried, len(r.Unplaced), r.Notices)
		}
	}
}

// A shape that cannot be read is an error that names the flag, the value and the reason.
func TestParseShapes(t *testing.T) {
	for words, want := range map[string]string{
		"cpu=1 cpu=2,price=1":           "--nodes-like: cpu=1: has no price; of several shapes each needs one, such as cpu=1,price=0.25",
		"cpu=1,price=0":                 "--nodes-like: price=0: is no price from 0.000001 to 1000000, such as 0.25",
		"cpu=1,price=-1":                "--nodes-like: price=-1: is no price from 0.000001 to 1000000, such as 0.25",
		"cpu=1,price=NaN":               "--nodes-like: price=NaN: is no price from 0.000001 to 1000000, such as 0.25",
		"cpu=1,price=1e9":               "--nodes-like: price=1e9: is no price from 0.000001 to 1000000, such as 0.25",
		"cpu=1,price=cheap":             "--nodes-like: price=cheap: is no price from 0.000001 to 1000000, such as 0.25",
		"cpu=1,price=1,price=2":         "--nodes-like: cpu=1,price=1,price=2: has two prices",
		"price=1":                       `--nodes-like: "price=1": names no node and no attribute of one, such as cpu=8,memory=32Gi`,
		strings.Repeat("a,price=1 ", 9): "--nodes-like: 9 shapes are given; at most 8",
	} {
		if _, err := whatif.ParseShapes(strings.Fields(words)); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", words, err, want)
		}
	}
}
