package replay

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/edge/decode"
	"github.com/berth-scheduler/berth/edge/recording"
	"github.com/berth-scheduler/berth/sim/generate"
)

// gangConfig places groups from labels under elastic quotas.
const gangConfig = `
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    multiPoint: {enabled: [{name: Coscheduling}, {name: CapacityScheduling}]}
    queueSort: {enabled: [{name: Coscheduling}], disabled: [{name: "*"}]}
    postFilter: {disabled: [{name: DefaultPreemption}]}
  pluginConfig:
  - {name: CoschedulingLabels, args: {prefixes: [gang.example.com]}}
`

// gangWorld is a world in which labels put most pods into groups, some of which contradict
// themselves, and in which pods get the labels of other groups, wherever they are by then.
func gangWorld(t *testing.T, seed uint64) *generate.World {
	t.Helper()
	w, err := generate.Cluster("preemption", seed)
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(seed, 3))
	w.Config = gangConfig
	label := func(p *v1.Pod, group int) {
		labels := map[string]string{"gang.example.com/name": fmt.Sprint("gang-", group), "gang.example.com/min-available": fmt.Sprint(1 + group%3)}
		if random.IntN(20) == 0 {
			labels["gang.example.com/min-available"] = "7"
		}
		for key, value := range p.Labels { // any order: into a map
			if _, is := labels[key]; !is {
				labels[key] = value
			}
		}
		p.Labels = labels
	}
	var changes []generate.Change
	for i, p := range w.Pending {
		if i%4 > 0 {
			label(p, i/6)
		}
		if random.IntN(3) == 0 {
			other := p.DeepCopy()
			if label(other, i/6+1); random.IntN(2) == 0 {
				other.Labels = nil
			}
			changes = append(changes, generate.Change{After: min(i+1+random.IntN(8), len(w.Pending)-1), Verb: generate.Update, Pod: other})
		}
	}
	for i, namespace := range []string{"default", "team-a"} {
		q := func(least string) *decode.ElasticQuota {
			return &decode.ElasticQuota{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "q", UID: types.UID(namespace), CreationTimestamp: metav1.NewTime(begin)},
				Spec:       decode.ElasticQuotaSpec{Min: decode.Quantities{v1.ResourceCPU: decode.QuantityText(least)}, Max: decode.Quantities{v1.ResourceCPU: "40"}},
			}
		}
		w.Objects = append(w.Objects, q("3"))
		changes = append(changes, generate.Change{After: 5 + 6*i, Verb: generate.Update, Other: q("9")})
	}
	w.Changes = append(w.Changes, changes...)
	slices.SortStableFunc(w.Changes, func(a, b generate.Change) int { return cmp.Compare(a.After, b.After) })
	return &w
}

// podGroupWorld is a world in which PodGroups put most pods into gangs, and some of these come
// late, or get another minimum.
func podGroupWorld(t *testing.T, seed uint64) *generate.World {
	t.Helper()
	w, err := generate.Cluster("preemption", seed)
	if err != nil {
		t.Fatal(err)
	}
	w.Config, w.Gates = "", map[string]bool{"GenericWorkload": true}
	w.Changes = slices.DeleteFunc(w.Changes, func(c generate.Change) bool { return c.Pod != nil }) // they name no groups
	for i, p := range w.Pending {
		name, pods := fmt.Sprint("gang-", i/6), len(w.Pending)-i/6*6
		p.Namespace, p.Spec.Priority, p.Spec.PreemptionPolicy = "default", new(int32(i/6*10)), nil
		if i%4 > 0 {
			p.Spec.SchedulingGroup = &v1.PodSchedulingGroup{PodGroupName: &name}
		}
		if i%6 > 0 {
			continue
		}
		g := func(least int32) *schedulingv1beta1.PodGroup {
			return &schedulingv1beta1.PodGroup{
				ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name), CreationTimestamp: metav1.NewTime(begin)},
				Spec: schedulingv1beta1.PodGroupSpec{Priority: new(int32(i / 6 * 10)),
					SchedulingPolicy: schedulingv1beta1.PodGroupSchedulingPolicy{Gang: &schedulingv1beta1.GangSchedulingPolicy{MinCount: least}}},
			}
		}
		if i%12 > 0 {
			w.Objects = append(w.Objects, g(4))
		}
		w.Changes = append(w.Changes, generate.Change{After: min(i+3, i+pods-1), Verb: generate.Update, Other: g(2)})
	}
	slices.SortStableFunc(w.Changes, func(a, b generate.Change) int { return cmp.Compare(a.After, b.After) })
	return &w
}

// saved counts what snapshots of a record have of groups and quotas.
type saved struct{ groups, members, quotas int }

func (s *saved) read(t *testing.T, dir string) {
	t.Helper()
	r, err := recording.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for {
		e, err := r.Next()
		if err != nil {
			return // the end
		}
		if e.Snapshot == nil {
			continue
		}
		s.groups += len(e.Snapshot.Queue.Groups)
		if e.Snapshot.Quotas != nil {
			s.quotas++
		}
		for i := range e.Snapshot.Pods {
			if e.Snapshot.Pods[i].Group != nil {
				s.members++
			}
		}
	}
}

// A record of groups and of elastic quotas is replayed as it was, wherever it begins, and also
// if names are redacted. Each group is tried at the same time. A placed pod stays in its group
// after its labels have changed. The change of a quota wakes the same pods.
func TestGroupsAreExact(t *testing.T) {
	decisions, has := 0, saved{}
	for seed := range 6 * *worlds {
		world, dir, names := gangWorld, t.TempDir(), (*recording.Names)(nil)
		if seed%3 == 2 {
			world = podGroupWorld
		}
		if seed%2 > 0 {
			names = recording.NewNames([]byte("key"))
		}
		w := world(t, seed)
		playTo(t, w, dir, names, func(u *recording.Tuning) { u.Segment, u.Flush = 24000, 0 }, true)
		for segments := segmentsIn(t, dir); len(segments) > 0; segments = segments[1:] {
			x := exactly(t, dir)
			if x.Different > 0 || x.Same+x.Unverified != x.Decisions || len(x.Notes) > 0 {
				t.Fatalf("seed %d from %s on: %d steps of %d are different, %d of %d decisions the same; %v; the first: %+v", seed, filepath.Base(segments[0]), x.Different, x.Steps, x.Same, x.Decisions, x.Notes, x.First)
			}
			decisions += x.Decisions
			has.read(t, dir)
			if len(segments) > 1 {
				if err := os.Remove(segments[0]); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if t.Logf("%d decisions, %+v", decisions, has); decisions < 100 || has.groups == 0 || has.members == 0 || has.quotas == 0 {
		t.Errorf("%d decisions and %+v in snapshots say little", decisions, has)
	}
}
