package foresight

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/index/priorities"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/profile"
	"github.com/berth-scheduler/berth/core/queue"
	"github.com/berth-scheduler/berth/core/quota"
	"github.com/berth-scheduler/berth/core/recovered"
	"github.com/berth-scheduler/berth/core/sums"
	"github.com/berth-scheduler/berth/core/table"
)

// Foresight implements queue.Foresight: it asks the plugins that rejected a pod for their
// verdict as of now. All fields must be set.
type Foresight struct {
	Table    *table.Table
	Profiles map[string]*profile.Profile // by scheduler name
	// Extended reports whether extenders filter nodes for the pod.
	Extended func(*object.Pod) bool
	// Grouped reports whether the pod is tried with its pod group. A node that had room for
	// one such pod before an event may have room for two now.
	Grouped func(*object.Pod) bool
	// FoundNoVictims reports whether preemption in the pod's last attempt found no victims
	// (see NoVictims).
	FoundNoVictims func(*object.Pod) bool
	// NominatedTo returns the pods nominated to the node, sorted by descending priority.
	NominatedTo func(node string) []*object.Pod
	// Panicked is called with a contained panic of a plugin, on the stack of the panic.
	Panicked func(*recovered.Panic)
}

// Class implements queue.Foresight. It appends the key to the buffer key. The key is that of the
// pod's template, with a mark if preemption found no victims in its last attempt. It is empty
// (the pod has no peers) if the pod has extenders, hosted plugins, a nomination or claims of
// devices. It is empty, too, if a plugin that rejected the pod has a PostFilter but no RejectPod:
// that PostFilter may read more than hints do. In that case the class still has a size; in the
// cases before it has none.
func (f *Foresight) Class(key []byte, e *queue.Entry) queue.Class {
	p, of := e.Pod, f.Profiles[e.Pod.SchedulerName]
	if of == nil || of.Host != nil || p.API != nil || e.NominatedNode() != "" || len(p.Claims) > 0 {
		return queue.Class{Key: key}
	}
	c := queue.Class{}
	c.SizedBy, c.Size = f.size(of, e)
	for name := range e.RejectedBy() {
		if pl := of.Plugins[name]; pl != nil && pl.PostFilterMay != nil && pl.RejectPod == nil {
			c.Key = key
			return c
		}
	}
	if c.Key = p.AppendTemplate(key); f.FoundNoVictims(p) {
		c.Key = append(c.Key, 1)
	}
	return c
}

// question answers whether one event could help pods.
type question struct {
	*Foresight
	event      *framework.Event
	row        table.Row // of the node that the event is about
	about      bool      // the event is about one node
	measurable bool      // sizes can exclude pods; otherwise TooLarge returns false
	// nominated are the pods nominated to the row that are not placed, sorted by descending
	// priority.
	nominated []*object.Pod
	// largest caches what TooLarge computes, an entry for each priority that it was asked
	// about, in no order: the largest requests of a pod of that priority that fit on the row
	// if all pods of lower priority leave.
	largest []queue.Size
}

// About returns a Question by which the queue asks, for pod after pod, whether the event
// could help. It finds the node that the event is about, once for all pods.
func (f *Foresight) About(event *framework.Event) queue.Question {
	q := &question{Foresight: f, event: event}
	if q.row, q.about = f.rowOf(event); q.about {
		q.nominated, q.measurable = f.nominatedNowhere(q.row), q.measures()
	}
	return q
}

// CouldHelp reports whether the event could help a rejected pod, though queueing hints say
// that it may. It could not if a plugin rejects the pod as a whole, or if the event is
// about one node, and what kept the pod off each node still does.
//
// Suppose that NodeResourcesFit alone rejected a pod of 500 CPUs. A pod of 1 CPU leaves a
// node. The hint says Queue, as CPUs became free. But the verdict on other nodes does not
// depend on this one, and here the plugin still rejects the pod. Whatever makes it fit
// here later is an event about this node again, and the plugin is asked again.
//
// Each plugin that rejected the pod either answers by the node alone, or its own hint has
// to say that the event does not help: then it lets the pod onto no other node than
// before. On the node of the event one of the first kind has to reject the pod, or all of
// them have to answer as they did before.
//
// Pods nominated to the node count as placed there, as in an attempt. Each end of a
// nomination is an event about the node.
//
// If others have a lower priority, the pod must not be able to preempt them either. Its
// last attempt found that it could preempt nobody, on any node, because of the same
// plugins (NoVictims). So it may preempt somebody on this node alone now, and all this
// has to hold there whoever leaves. A pod with an ElasticQuota may preempt pods of any
// priority, so the hints decide.
func (q *question) CouldHelp(e *queue.Entry) (could bool) {
	p, of := e.Pod, q.Profiles[e.Pod.SchedulerName]
	if of == nil || q.event.Resource == framework.WildCard || e.NominatedNode() != "" || q.Extended(p) || q.othersMakeRoom(of, p) || quota.Of(q.Table).Queue(p.Namespace) != nil {
		return true
	}
	plugin := ""
	defer func() {
		if r := recover(); r != nil { // a plugin's
			q.Panicked(recovered.From(fmt.Sprintf("asking plugin %q whether a node helps a pod", plugin), r))
			could = true
		}
	}()
	for name := range e.RejectedBy() {
		if plugin = name; rejectsAsAWhole(of, of.Plugins[name], q.Table, p) {
			return false
		}
	}
	preempts := q.preempts(of, p) && priorities.Of(q.Table).LowestOfAll() < p.Priority
	if !q.about || preempts && !q.FoundNoVictims(p) {
		return true
	}
	nominated := atLeast(q.nominated, p.Priority)
	rejectsOn := func(pl *framework.Plugin) (in *framework.Input, now, whoeverGoes bool) {
		plugin = pl.Name
		in, now = rejectsOn(pl, q.Table, p, q.row, nominated)
		return in, now, now && (!preempts || rejectsWithoutLower(pl, in, q.row, nominated))
	}
	rejected, helped := false, false // on the node, whoever goes from it
	var others []*framework.Plugin   // that the event does not concern
	for name, pending := range e.RejectedBy() {
		pl := of.Plugins[name]
		plugin = name
		if pl == nil || pending {
			return true
		}
		concerned := mayHelp(pl, p, q.event)
		if judgesGroups(pl) && !concerned {
			continue
		}
		if !answersByNode(pl, q.Table, p, q.event) {
			if concerned || !hintsCover(pl, q.event) {
				return true
			}
			continue
		}
		if !concerned {
			others = append(others, pl)
			continue
		}
		if rejected {
			continue
		}
		in, now, whoeverGoes := rejectsOn(pl)
		rejected = whoeverGoes
		helped = helped || !rejected && (q.Grouped(p) || mayHaveHelped(pl, in, q.row, nominated, q.event, now))
	}
	return !rejected && helped && !slices.ContainsFunc(others, func(pl *framework.Plugin) bool {
		_, _, whoeverGoes := rejectsOn(pl)
		return whoeverGoes
	})
}

// mayHaveHelped reports whether the plugin may accept the row now though it did not before
// the event. rejects is true if it rejects the pod now as long as pods of lower priority
// stay. It returns true if that is not known.
func mayHaveHelped(pl *framework.Plugin, in *framework.Input, row table.Row, nominated []*object.Pod, event *framework.Event, rejects bool) bool {
	left := event.OldPod
	switch {
	case event.Resource != framework.AssignedPod || event.NewPod != nil || left == nil:
		return true // how the node was before is not known
	case pl.Locality == framework.NodeOnly, rejects && left.Priority < in.Pod.Priority:
		return false // without those of lower priority the node is as before
	case in.Sums == nil || slices.ContainsFunc(in.Sums, func(s sums.Sum) bool { return s.Delegated }):
		return true // devices may have become free
	}
	below := framework.Nobody
	if rejects {
		below = in.Pod.Priority
	}
	before, known := pl.Exchanged(in, row, below, append(slices.Clip(nominated), left))
	return !known || before != framework.Fits
}

// rowOf returns the row of the one node that the event is about: of a node, an assigned
// pod, a CSINode or a VolumeAttachment. If a nomination ended it is the node nominated. It
// returns false for an event about no single node.
func (f *Foresight) rowOf(e *framework.Event) (table.Row, bool) {
	switch {
	case e.Resource == framework.Node && e.NewNode != nil:
		return f.Table.Find(e.NewNode.Name)
	case e.Resource == framework.AssignedPod && e.NewPod != nil:
		return f.Table.Find(e.NewPod.NodeName)
	case e.Resource == framework.AssignedPod && e.OldPod != nil:
		return f.Table.Find(cmp.Or(e.OldPod.NodeName, e.OldPod.NominatedNode))
	}
	switch o := cmp.Or(e.NewObject, e.OldObject).(type) {
	case *object.CSINode:
		return f.Table.Find(o.Name)
	case *object.VolumeAttachment:
		return f.Table.Find(o.Node)
	}
	return 0, false
}

// preempts reports whether a PostFilter plugin of the profile may evict other pods for the
// pod, so that an event may help by what it lets preemption do.
func (f *Foresight) preempts(of *profile.Profile, p *object.Pod) bool {
	return slices.ContainsFunc(of.PostFilter, func(pl *framework.Plugin) bool { return pl.Remedy(f.Table, p) == framework.Preemption })
}

// othersMakeRoom reports whether a PostFilter plugin of the profile may do something else
// than preempt for the pod.
func (f *Foresight) othersMakeRoom(of *profile.Profile, p *object.Pod) bool {
	return slices.ContainsFunc(of.PostFilter, func(pl *framework.Plugin) bool {
		return pl.Remedy(f.Table, p) == framework.OtherRemedy
	})
}

// NoVictims reports whether a preemption that found no victims on any node failed only
// because of plugins in rejectedBy. found are its reasons over all nodes; those without a plugin
// do not count, and none at all means false. If so preemption need not be tried again on other
// events: each event that may change the answer of these plugins reaches the pod by their hints.
func NoVictims(rejectedBy []string, found []decision.Tally) bool {
	return len(found) > 0 && !slices.ContainsFunc(found, func(t decision.Tally) bool {
		return t.Plugin != "" && !slices.Contains(rejectedBy, t.Plugin) // "": nobody could go, or it would not help
	})
}

// answersByNode reports whether the verdict of the plugin's filter on a node depends only
// on that node, its pods, and objects whose changes are events. Assumed changes of claims
// are not events, so a pod that shares a claim with the event's pod excludes that.
func answersByNode(pl *framework.Plugin, t *table.Table, p *object.Pod, event *framework.Event) bool {
	if pl.Filter == nil || pl.CellFilter != nil || pl.Epoch != nil || pl.Permit != nil || pl.Reserve != nil {
		return false
	}
	if pl.Locality != framework.NodeOnly && pl.Locality != framework.NodeAndPods {
		return false
	}
	return !signsObjects(pl, t, p) || !sharesClaims(p, event.OldPod)
}

// sharesClaims reports whether p and other have a PersistentVolumeClaim in common; false if other
// is nil.
func sharesClaims(p, other *object.Pod) bool {
	return other != nil && other.Namespace == p.Namespace && slices.ContainsFunc(p.Volumes, func(v object.Volume) bool { return v.Claimed && other.UsesPVC(v.Claim, true) })
}

// hintsCover reports whether the hints of a plugin that does not answer by the node alone
// cover everything that the event may change in its verdicts. Assumed changes of volumes
// and claims are no events.
func hintsCover(pl *framework.Plugin, event *framework.Event) bool {
	left := event.OldPod
	return pl.CellFilter != nil || pl.Filter != nil && pl.Locality != framework.Anything && (left == nil || len(left.Claims) == 0 && !left.HasPVCs(true))
}

// judgesGroups reports whether the plugin rejects pod groups alone, and no node. What it counts
// changes with its own events.
func judgesGroups(pl *framework.Plugin) bool {
	return pl.PodGroup != nil && pl.PodGroup.PlacementFeasible != nil && pl.Filter == nil && pl.CellFilter == nil
}

// mayHelp reports whether one of the plugin's own hints says that the event may help the
// pod. An event that matches and has no hint may.
func mayHelp(pl *framework.Plugin, p *object.Pod, event *framework.Event) bool {
	return slices.ContainsFunc(pl.EventsToRegister, func(w framework.ClusterEventWithHint) bool {
		return w.Matches(event) && (w.QueueingHintFn == nil || w.QueueingHintFn(p, event))
	})
}

// signsObjects reports whether the plugin's answers for the pod depend on other API
// objects, such as its claims.
func signsObjects(pl *framework.Plugin, t *table.Table, p *object.Pod) bool {
	if pl.SignRevision == nil {
		return false
	}
	revision, known := pl.SignRevision(t, p)
	return revision != 0 || !known
}

// rejectsAsAWhole reports whether the plugin's PreFilter rejects the pod now because of
// other API objects, such as a claim that does not exist, so that no event on nodes or
// pods can help. It runs PreFilter only if the plugin's answers depend on such objects.
func rejectsAsAWhole(of *profile.Profile, pl *framework.Plugin, t *table.Table, p *object.Pod) bool {
	if pl == nil || !slices.Contains(of.PreFilter, pl) || !signsObjects(pl, t, p) {
		return false
	}
	s := pl.PreFilter(t, p).Status
	return s != nil && s.Code == decision.UnschedulableAndUnresolvable
}

// atLeast returns those of the pods that have at least the priority. all is sorted by
// descending priority, and the result is a part of it.
func atLeast(all []*object.Pod, priority int32) []*object.Pod {
	n, _ := slices.BinarySearchFunc(all, priority, func(o *object.Pod, priority int32) int {
		if o.Priority >= priority {
			return -1
		}
		return 1
	})
	return all[:n]
}

// nominatedNowhere returns the pods nominated to the row's node that are placed on no node.
// (A hosted plugin may nominate one that is placed.)
func (f *Foresight) nominatedNowhere(row table.Row) []*object.Pod {
	all := f.NominatedTo(f.Table.Name(row))
	placed := func(p *object.Pod) bool { return f.Table.Pod(p.UID) != nil }
	if slices.ContainsFunc(all, placed) {
		return slices.DeleteFunc(slices.Clone(all), placed)
	}
	return all
}

// rejectsOn runs the plugin's PreFilter and reports whether its filter rejects the pod on the row,
// as the row is or with the nominated pods placed. It returns false if PreFilter skips or rejects
// the pod. It also returns the filter's input.
func rejectsOn(pl *framework.Plugin, t *table.Table, p *object.Pod, row table.Row, nominated []*object.Pod) (*framework.Input, bool) {
	in := &framework.Input{Table: t, Pod: p}
	if pl.PreFilter != nil {
		out := pl.PreFilter(t, p)
		if out.Skip || out.Status != nil {
			return in, false
		}
		in.State, in.Rules = out.State, out.Rules
	}
	return in, isRejection(pl, pl.VerdictOn(in, row)) || len(nominated) > 0 && rejectsExchanged(pl, in, row, framework.Nobody, nominated)
}

// rejectsWithoutLower reports whether a plugin that rejects the pod on the row would also
// do so without all pods of lower priority. It returns false if that is unknown.
func rejectsWithoutLower(pl *framework.Plugin, in *framework.Input, row table.Row, nominated []*object.Pod) bool {
	if pl.Locality == framework.NodeOnly || priorities.Of(in.Table).Lowest(row) >= in.Pod.Priority {
		return true
	}
	return rejectsExchanged(pl, in, row, in.Pod.Priority, nominated)
}

// rejectsExchanged reports whether the plugin is sure to reject the pod on the row even if
// the pods there of a priority lower than below left and the pods in came were added. It
// returns false if that is not known, and for a plugin that looks at the node alone.
func rejectsExchanged(pl *framework.Plugin, in *framework.Input, row table.Row, below int32, came []*object.Pod) bool {
	if pl.Locality == framework.NodeOnly {
		return false
	}
	v, known := pl.Exchanged(in, row, below, came)
	return known && isRejection(pl, v)
}

// isRejection reports whether the verdict is a rejection of the node, not an error and not
// Fits.
func isRejection(pl *framework.Plugin, v framework.Verdict) bool {
	return v != framework.Fits && (pl.ErrorsFrom == 0 || v < pl.ErrorsFrom)
}
