package why

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/match"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// mostAnchors bounds how many pods are tried as the one that a pod wants to be near.
const mostAnchors = 200

// waitForLoad reports for each pod whether load alone explains what blocks it on some
// node: it would fit after some set of pods is removed. Removing all of them is best
// for every plugin but one: the pods that required pod affinity asks for must stay. Once
// the context ends it returns those of the first pods.
func waitForLoad(ctx context.Context, m *machine.Machine, pods []*object.Pod) []bool {
	t := m.Table()
	waits := make([]bool, len(pods))
	if len(pods) == 0 {
		return waits
	}
	defer restore(t, removeOwnedClaims(t, pods))
	mark := t.Checkpoint()
	defer t.Undo(mark)
	placed := removeAll(t)
	for i, p := range pods {
		if ctx.Err() != nil {
			return waits[:i]
		}
		waits[i] = t.Live() == 0 || m.AdmitsWithout(p) || admitsNear(ctx, m, p, placed)
	}
	return waits
}

// admitsNear reports whether a pod with required pod affinity fits where only pods are
// that it asks for.
func admitsNear(ctx context.Context, m *machine.Machine, p *object.Pod, placed []table.Placed) bool {
	if p.Affinity == nil || len(p.Affinity.Affinity) == 0 {
		return false
	}
	t := m.Table()
	var anchors []table.Placed
	for _, pl := range placed {
		if ctx.Err() != nil {
			return false
		}
		if slices.ContainsFunc(p.Affinity.Affinity, func(term match.PodTerm) bool {
			return term.MatchesPlaced(pl.Pod.Namespace, t.Namespaces().Labels(pl.Pod.Namespace), pl.Pod.Labels)
		}) {
			anchors = append(anchors, pl)
		}
	}
	return anchored(ctx, m, p, anchors)
}

// anchored tries the pod with all anchors placed, then with each alone.
func anchored(ctx context.Context, m *machine.Machine, p *object.Pod, anchors []table.Placed) bool {
	t := m.Table()
	try := func(list []table.Placed) bool {
		mark := t.Checkpoint()
		defer t.Undo(mark)
		for i := range list {
			t.AddPod(list[i].Pod, t.Name(list[i].Row))
		}
		return m.AdmitsWithout(p)
	}
	if len(anchors) > 0 && try(anchors) {
		return true
	}
	for i := range anchors[:min(mostAnchors, len(anchors))] {
		if ctx.Err() != nil {
			break
		}
		if try(anchors[i : i+1]) {
			return true
		}
	}
	return false
}

// removeAll takes all pods off the table and returns them, by name.
func removeAll(t *table.Table) (placed []table.Placed) {
	for _, r := range t.All() {
		for _, pl := range t.Pods(r) {
			placed = append(placed, table.Placed{Pod: pl.Pod, Row: pl.Row})
		}
	}
	for i := range placed {
		t.RemovePod(placed[i].Pod.UID)
	}
	slices.SortFunc(placed, func(a, b table.Placed) int { return compareKeys(a.Pod, b.Pod) })
	return placed
}

// removeOwnedClaims takes away the claims for devices that go with the pods which
// they were made for, where a pod at hand wants devices.
func removeOwnedClaims(t *table.Table, pods []*object.Pod) (removed []object.Object) {
	own := map[types.UID]bool{}
	for _, p := range pods {
		if len(p.Claims)+len(p.Extended) > 0 {
			own[p.UID] = true
		}
	}
	if len(own) == 0 {
		return nil
	}
	for _, o := range t.Objects().List(object.ResourceClaims) {
		c := o.(*object.ResourceClaim)
		if owner := metav1.GetControllerOfNoCopy(c.API); owner != nil && owner.Kind == "Pod" && !own[owner.UID] {
			t.Objects().Remove(c.Kind, c.Namespace, c.Name)
			removed = append(removed, o)
		}
	}
	return removed
}

func restore(t *table.Table, removed []object.Object) {
	for _, o := range removed {
		t.Objects().Set(o)
	}
}
