package whatif

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/explain"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/plugins/names"
	ours "github.com/berth-scheduler/berth/core/resource"
	"github.com/berth-scheduler/berth/core/sums"
	"github.com/berth-scheduler/berth/core/table"
	"github.com/berth-scheduler/berth/edge/workload"
	"github.com/berth-scheduler/berth/sim"
)

// An adder adds pending pods to the cluster of its session.
type adder interface {
	// add adds the pods of one round and returns them, by namespace/name. If admission
	// refuses one it adds no more, and says why.
	add() (pods []string, refused string, err error)
	// scheduler returns the schedulerName of the pods.
	scheduler() string
}

// fitting adds pods, round after round, until one finds no place.
type fitting struct {
	*session
	adders []adder // a round adds the pods of all
	// alike: the rounds may be added many at once, as a pod that finds a place finds it
	// whichever came before it.
	alike bool

	added  []string // namespace/name, without the probe
	last   []string // of the last rounds
	lastBy map[string]adder
	batch  int // rounds that are added at once
	// rounds are those all of whose pods found a place, finished these pods.
	rounds   int
	finished []string
	probe    string // a pod more that shows what nodes lack, "" before it is added
	stop     stop
	nearest  *Shortage
	refused  string // why admission refuses the next, "" as long as it does not
	err      error
}

// stop is why a pod found no place.
type stop struct {
	why   string
	pod   string // namespace/name
	tells int    // how much it tells (telling)
}

// Shortage is what a node lacks for a pod that nothing else keeps off it.
type Shortage struct {
	Node  string
	Lacks map[v1.ResourceName]resource.Quantity
}

// maxBatch is the most rounds that are added at once.
const maxBatch = 4096

// play runs the cluster. begin chooses what is added and makes the changes. It returns the
// notices for the user.
func (f *fitting) play(in sim.Input, begin func() error) ([]string, error) {
	known := pendingPods(f.set, in)
	f.batch = 1
	for _, p := range f.running {
		f.there[p.Key()] = true
	}
	in.Decided = f.decided
	in.Machine.Explain = func(p *object.Pod) bool { return p.Key() == f.probe }
	in.Begin = func(w *sim.World) error {
		f.cluster, f.world = w.Cluster, w
		if err := begin(); err != nil {
			return err
		}
		for _, p := range w.Cluster.Pods() {
			f.there[p.Key()] = true
		}
		return f.checkProfiles(in.NoProfile)
	}
	in.Idle = func(*sim.World) bool { return f.evictAllowed() || f.more() }
	in.Evicted = f.evicted
	run, err := sim.Run(in)
	if err = errors.Join(err, f.err); err != nil {
		return nil, err
	}
	switch {
	case f.stop.why != "":
	case f.refused != "":
		f.stop.why = f.refused
	case run.Cut != "":
		f.stop.why = "it was not tried: " + run.Cut
	}
	for _, pod := range append(f.added, f.probe) {
		known[pod] = true
	}
	return append(endlessNotices(run), f.stuckNotices(run, known)...), nil
}

// stuckNotices name the pods that are pending at the end and are not known to be: those that
// were evicted, by preemptor, and the others. They leave out what the question adds.
func (f *fitting) stuckNotices(run *sim.Result, known map[string]bool) (notices []string) {
	preemptors := map[string]string{}
	for _, e := range run.Evicted {
		preemptors[e.Pod] = e.For
	}
	stuck := map[string][]string{}  // by preemptor, "" for none
	for pod := range run.Unplaced { // any order: they are sorted
		if f.there[pod] && !known[pod] {
			stuck[preemptors[pod]] = append(stuck[preemptors[pod]], pod)
		}
	}
	for _, preemptor := range slices.Sorted(maps.Keys(stuck)) {
		pods := stuck[preemptor]
		is, stays := "is", "stays"
		if len(pods) > 1 {
			is, stays = "are", "stay"
		}
		switch names := firstNames(pods); {
		case preemptor != "":
			notices = append(notices, fmt.Sprintf("%s: %s evicted for %s, and %s pending", names, is, preemptor, stays))
		case f.changed:
			notices = append(notices, names+": without a node after the changes; what-if says why")
		default:
			notices = append(notices, fmt.Sprintf("%s: %s pending", names, stays))
		}
	}
	return notices
}

// checkProfiles returns an error if no profile has the schedulerName of a pod that is added.
func (f *fitting) checkProfiles(noProfile func(string) string) error {
	for _, a := range f.adders {
		if name := a.scheduler(); !f.world.HasProfile(name) && noProfile != nil && f.refused == "" {
			return errors.New(noProfile(name))
		}
	}
	return nil
}

// decided records why a pod that was added was not placed. What preemption says of it does
// not count: these pods evict nobody.
func (f *fitting) decided(d *decision.Decision) {
	if d.Result == decision.ResultScheduled || d.Result == decision.ResultWaiting {
		return
	}
	if pod := d.Pod.String(); pod == f.probe {
		f.nearest = shortage(f.world.Machine.Table(), f.cluster.Pod(pod), d.Nodes)
	} else if telling(d) > f.stop.tells && slices.Contains(f.last, pod) {
		plain := *d
		plain.PostFilter = nil
		f.stop = stop{strings.TrimSpace(explain.Message(&plain)), pod, telling(d)}
	}
}

// telling returns how much the decision explains, from 1 to 3. A gated pod explains least. Next
// comes a pod that fits by itself but whose group does not. Any other pod explains most.
func telling(d *decision.Decision) int {
	switch {
	case d.Result == decision.ResultGated:
		return 1
	case d.GroupStatus != nil:
		return 2
	}
	return 3
}

// shortage returns what the node lacks that lacks least of the pod's requests, among those
// where nothing else blocks the pod; nil if there is none.
func shortage(t *table.Table, p *object.Pod, nodes []decision.Node) (least *Shortage) {
	best := 0.0
	for i := range nodes {
		n := &nodes[i]
		row, ok := t.Find(n.Name)
		if !ok || len(n.Blockers) != 1 || n.Blockers[0].Plugin != names.NodeResourcesFit || len(n.Blockers[0].Insufficient) == 0 {
			continue
		}
		s, sum := &Shortage{n.Name, map[v1.ResourceName]resource.Quantity{}}, 0.0
		for _, name := range n.Blockers[0].Insufficient {
			want := p.Demand.Requests.Of(name)
			if name == v1.ResourcePods {
				want = 1
			}
			_, free := sums.Free(t, name, row)
			s.Lacks[name] = *ours.Quantity(name, want-free)
			sum += float64(want-free) / float64(max(want, 1))
		}
		if least == nil || sum < best {
			least, best = s, sum
		}
	}
	return least
}

// more adds the pods of the next rounds, if all before found a place. If not it adds one
// more, which shows what nodes lack.
func (f *fitting) more() bool {
	switch {
	case f.err != nil || f.refused != "" || f.probe != "" || len(f.adders) == 0:
		return false
	case f.placed(f.last) < len(f.last):
		return f.addProbe()
	case len(f.last) > 0:
		f.rounds, f.finished = f.rounds+f.batch, f.added
		f.stop = stop{} // it has a place now
		if f.alike {
			f.batch = min(2*f.batch, maxBatch)
		}
	}
	if len(f.added) >= workload.MaxPods {
		f.stop.why = fmt.Sprintf("it was not tried: %d are enough", len(f.added))
		return false
	}
	f.last, f.lastBy = nil, map[string]adder{}
	for range f.batch {
		if f.addRound(); f.refused != "" || f.err != nil {
			break
		}
	}
	return f.err == nil
}

func (f *fitting) addRound() {
	for _, a := range f.adders {
		pods, refused, err := a.add()
		for _, key := range pods {
			f.lastBy[key] = a
		}
		f.last, f.added = append(f.last, pods...), append(f.added, pods...)
		if f.refused, f.err = refused, err; refused != "" || err != nil {
			return
		}
	}
}

// addProbe adds a pod like the one that found no place.
func (f *fitting) addProbe() bool {
	a := f.lastBy[f.stop.pod]
	if a == nil || inOwnGroup(a) { // by itself it would wait for its group
		return false
	}
	pods, _, err := a.add()
	if f.err = err; len(pods) == 0 || err != nil {
		return false
	}
	f.probe = pods[0]
	return true
}

// inOwnGroup reports whether each round of the adder is a pod group.
func inOwnGroup(a adder) bool {
	switch a := a.(type) {
	case *copier:
		return a.group != ""
	case *ordinals:
		return a.group != ""
	}
	return false
}

// placed counts the pods that have a node.
func (f *fitting) placed(pods []string) (n int) {
	for _, key := range pods {
		if p := f.cluster.Pod(key); p != nil && p.NodeName != "" {
			n++
		}
	}
	return n
}
