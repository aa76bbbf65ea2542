package engine_test

import (
	"fmt"
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/engine"
)

// filling is how many equal pods were placed, and why the next one was not.
type filling struct {
	pods    int
	tallies []decision.Tally
	by      []string
}

// fill compares how many equal pods fit beside each other, and why one more does not, with what
// comes of placing them one after the other.
func (w *soak) fill(t *testing.T) {
	p, by, most := pickOne(w.Rand, w.pool...), w.profiles[0], 1+w.IntN(60)
	if w.nominated.NominatedNode(p.UID) != "" {
		return // it counts against the pods after it
	}
	o := w.kept.Decide(w.request(w.kept, by, p), w.nominated)
	n, known := o.Capacity(most)
	if !known {
		return
	}
	holds := 0
	for _, r := range w.All() {
		holds += min(most, o.Holds(r))
	}
	if holds < n {
		w.fail(t, fmt.Sprintf("pod %+v: %d fit, and the nodes hold at most %d", p, n, holds))
	}
	got := filling{pods: n}
	if n < most {
		if !o.Fill(most) {
			return
		}
		node := w.name()
		was := w.nominated.byNode[node]
		w.nominated.add(w.stock.pod(""), node)
		got.tallies, got.by = o.Tallies(), o.RejectedBy() // of the nominations before
		if w.nominated.drop(node); was != nil {
			w.nominated.byNode[node] = was
		}
	}
	w.sum.fillings++
	want := filling{}
	mark := w.Checkpoint()
	for ; want.pods < most; want.pods++ {
		equal := *p
		equal.Name = fmt.Sprint("equal-", want.pods)
		equal.UID = types.UID(equal.Name)
		o := w.plain.Decide(engine.For(by, &equal), w.nominated)
		if o.Row < 0 {
			want.tallies, want.by = o.Tallies(), o.RejectedBy()
			break
		}
		w.AddPod(&equal, w.Name(o.Row))
	}
	w.Undo(mark)
	if !reflect.DeepEqual(got, want) {
		w.fail(t, fmt.Sprintf("pod %+v, at most %d:\ngot  %+v\nwant %+v", p, most, got, want))
	}
	w.settled(t)
}
