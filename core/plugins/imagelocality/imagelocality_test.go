package imagelocality

import (
	"fmt"
	"maps"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
	"github.com/berth-scheduler/berth/scheduler/plugintest"
)

const mib = 1 << 20

func node(name string, images ...object.Image) *object.Node {
	return &object.Node{Name: name, Images: images}
}

func image(bytes int64, names ...string) object.Image {
	return object.Image{Names: names, Bytes: bytes}
}

func pod(images ...string) *object.Pod {
	return &object.Pod{Images: images}
}

// A node scores by the size of the pod's images that it has, scaled by how many nodes
// have them.
func TestScores(t *testing.T) {
	tb := plugintest.Table(
		node("none"),
		node("small", image(10*mib, "small:1")),
		node("one", image(500*mib, "large:1", "large@sha256:1")),
		node("both", image(500*mib, "large:1"), image(5000*mib, "vast:1")),
	)
	for _, c := range []struct {
		name string
		pod  *object.Pod
		want map[string]int64
	}{
		{"unknown image", pod("other:1"), map[string]int64{"none": 0, "small": 0, "one": 0, "both": 0}},
		{"below the least", pod("small:1"), map[string]int64{"none": 0, "small": 0, "one": 0, "both": 0}},
		{"scaled by half of the nodes", pod("large:1"), map[string]int64{"none": 0, "small": 0, "one": 23, "both": 23}},
		{"on a quarter of the nodes", pod("large@sha256:1"), map[string]int64{"none": 0, "small": 0, "one": 10, "both": 0}},
		{"twice in the pod", pod("large:1", "large:1"), map[string]int64{"none": 0, "small": 0, "one": 24, "both": 24}},
		{"several images, of which one is there", pod("large:1", "a:1", "b:1", "c:1"), map[string]int64{"none": 0, "small": 0, "one": 5, "both": 5}},
		{"at most 100", pod("vast:1"), map[string]int64{"none": 0, "small": 0, "one": 0, "both": 100}},
		{"names are compared as they are", pod("large"), map[string]int64{"none": 0, "small": 0, "one": 0, "both": 0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := plugintest.Ask(t, New(), tb, c.pod).Scores; !maps.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

var known = rapid.SampledFrom([]string{"a:1", "b:1", "c:1", "d:1"})

func drawTable(t *rapid.T) (*table.Table, map[string]map[string]bool, map[string]int64) {
	sizes, on := map[string]int64{}, map[string]map[string]bool{}
	size := rapid.OneOf(rapid.Int64Range(0, 3000*mib), rapid.Just(int64(math.MaxInt64)))
	tb := table.New()
	for i := range rapid.IntRange(1, 5).Draw(t, "nodes") {
		n := node(fmt.Sprint(i))
		on[n.Name] = map[string]bool{}
		for _, name := range rapid.SliceOfNDistinct(known, 0, 3, rapid.ID).Draw(t, "images") {
			if _, ok := sizes[name]; !ok {
				sizes[name] = size.Draw(t, "size")
			}
			on[n.Name][name] = true
			n.Images = append(n.Images, image(sizes[name], name))
		}
		tb.SetNode(n)
	}
	return tb, on, sizes
}

func drawPod(t *rapid.T, what string) *object.Pod {
	images := rapid.SliceOfN(known, 1, 4).Draw(t, what)
	return pod(images...)
}

// Scoring all nodes at once gives each node what a look at it alone gives.
func TestScoreEqualsOneNodeAtATime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tb, on, sizes := drawTable(t)
		p, want := drawPod(t, "pod"), map[string]int64{}
		for node := range on { // any order: into a map
			sum := 0.0
			for _, name := range p.Images {
				have := 0
				for _, images := range on { // any order: a count
					if images[name] {
						have++
					}
				}
				if on[node][name] {
					sum += math.Floor(float64(sizes[name]) * (float64(have) / float64(len(on))))
				}
			}
			full := float64(len(p.Images)) * 1000 * mib
			sum = math.Min(math.Max(sum, 23*mib), full)
			want[node] = int64(100 * (sum - 23*mib) / (full - 23*mib))
		}
		if got := plugintest.Ask(t, New(), tb, p).Scores; !maps.Equal(got, want) {
			t.Fatalf("got  %v\nwant %v", got, want)
		}
	})
}

// Pods of equal signature get equal scores.
func TestEqualPartsEqualScores(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tb, _, _ := drawTable(t)
		a, b := drawPod(t, "a"), drawPod(t, "b")
		b.Images = a.Images[:min(len(a.Images), rapid.IntRange(1, 4).Draw(t, "images of b"))]
		if string(sign(nil, nil, a)) != string(sign(nil, nil, b)) {
			return
		}
		if x, y := plugintest.Ask(t, New(), tb, a).Scores, plugintest.Ask(t, New(), tb, b).Scores; !maps.Equal(x, y) {
			t.Fatalf("signature %q: %v and %v", string(sign(nil, nil, a)), x, y)
		}
	})
}

// Pods that differ in images have signatures that differ.
func TestPartsDiffer(t *testing.T) {
	pods := []*object.Pod{pod("a:1"), pod("a:1", "a:1"), pod("b:1"), pod("a:1", "b:1"), pod(`a:1""b:1`), pod()}
	seen := map[string]*object.Pod{}
	for _, p := range pods {
		if other := seen[string(sign(nil, nil, p))]; other != nil {
			t.Errorf("%v and %v: both %q", p.Images, other.Images, string(sign(nil, nil, p)))
		}
		seen[string(sign(nil, nil, p))] = p
	}
}

// Scores of other rows change when a node comes, goes or pulls an image; the
// epoch must tell, and must not where only labels change.
func TestEpoch(t *testing.T) {
	tb, pl := plugintest.Table(node("a", image(500*mib, "x:1")), node("b")), New()
	epoch := pl.Epoch(tb)
	changed := func() bool {
		old := epoch
		epoch = pl.Epoch(tb)
		return epoch != old
	}
	relabelled := node("b")
	relabelled.Labels = map[string]string{"l": "v"}
	if tb.SetNode(relabelled); changed() {
		t.Error("a label counts")
	}
	if tb.SetNode(node("b", image(500*mib, "x:1"))); !changed() {
		t.Error("an image does not count")
	}
	if tb.SetNode(node("c")); !changed() {
		t.Error("a node does not count")
	}
	if tb.RemoveNode("c"); !changed() {
		t.Error("a node's end does not count")
	}
}

// Score allocates nothing.
func TestKernelAllocatesNothing(t *testing.T) {
	tb := plugintest.Table(node("a", image(500*mib, "x:1")), node("b"))
	in, out, pl := &framework.Input{Table: tb, Pod: pod("x:1")}, make([]int64, 2), New()
	if n := testing.AllocsPerRun(10, func() { pl.Score(in, in.Table.All()[0:2], out) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// BenchmarkScore5000 measures Score on 5000 nodes, for an image that none has and one
// that half of them have.
func BenchmarkScore5000(b *testing.B) {
	tb := table.New()
	for i := range 5000 {
		n := node(fmt.Sprint(i))
		if i%2 == 0 {
			n.Images = []object.Image{image(500*mib, "half:1")}
		}
		tb.SetNode(n)
	}
	for _, name := range []string{"nowhere:1", "half:1"} {
		b.Run(name, func(b *testing.B) {
			in, out, pl := &framework.Input{Table: tb, Pod: pod(name)}, make([]int64, 5000), New()
			for b.Loop() {
				pl.Score(in, in.Table.All(), out)
			}
		})
	}
}
