package machine

import (
	"testing"
	"time"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/profile"
	"github.com/berth-scheduler/berth/core/queue"
)

// newPendingPostFilter is a machine whose PostFilter plugin says that its result comes
// later. Pod "a" waits for it, as "v" takes node "n".
func newPendingPostFilter(t *testing.T) *evictionTest {
	p := newEvictions(t)
	p.profiles["s"].PostFilter[0].PostFilter = func(c *framework.PostFilterCall) framework.PostFilterResult {
		p.call = c
		return framework.PostFilterResult{Pending: true}
	}
	p.do(preemptible("v", 0, "n"), preemptible("a", 1, ""), ScheduleOne{})
	if at := p.Entry("a").Place(); at != queue.InFlight || p.Resting() {
		t.Fatalf("the pod that waits for PostFilter is %s, the machine rests: %t", at, p.Resting())
	}
	return p
}

func (p *evictionTest) reply(call uint64, node string) {
	p.do(PostFilterReply{UID: "a", Call: call, Result: framework.PostFilterResult{NominatedNodeName: node, Resolved: node != ""}})
}

// While a PostFilter plugin runs other pods are placed. Its result then counts, once,
// and no reply but the one to its call does.
func TestPostFilterBesideTheLoop(t *testing.T) {
	p := newPendingPostFilter(t)
	first := p.call.Number
	p.do(NodeSet{&object.Node{UID: "m", Name: "m"}}, preemptible("b", 0, ""), ScheduleOne{})
	if pl := p.Table().Pod("b"); pl == nil {
		t.Error("another pod is not placed meanwhile")
	}
	p.reply(first+1, "m")
	if at := p.Entry("a").Place(); at != queue.InFlight {
		t.Errorf("a reply that is not its own brings the pod %s", at)
	}
	p.reply(first, "n")
	if e := p.Entry("a"); e.Place() == queue.InFlight || e.NominatedNode() != "n" {
		t.Errorf("the pod is %s, nominated to %q", e.Place(), e.NominatedNode())
	}
	p.reply(first, "m")
	if got := p.Entry("a").NominatedNode(); got != "n" {
		t.Errorf("a second reply nominates the pod to %q", got)
	}
}

// What became of the cluster while the plugin ran is respected.
func TestPostFilterReplyIsLate(t *testing.T) {
	for name, tc := range map[string]struct {
		meanwhile Event
		queued    bool
	}{
		"the node is gone":             {NodeGone{Name: "n"}, true},
		"the pod is gone":              {PodGone{UID: "a", Namespace: "d", Name: "a"}, false},
		"the pod is bound":             {preemptible("a", 1, "n"), false},
		"the pod is being deleted":     {PodSet{&object.Pod{UID: "a", Namespace: "d", Name: "a", SchedulerName: "s", Terminating: true}}, false},
		"the configuration is another": {Reconfigured{Workers: 1}, true},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPendingPostFilter(t)
			if r, other := tc.meanwhile.(Reconfigured); other {
				r.Profiles = p.options.Profiles
				tc.meanwhile = r
			}
			p.do(tc.meanwhile)
			p.reply(p.call.Number, "n")
			e := p.Entry("a")
			if (e != nil) != tc.queued {
				t.Fatalf("the pod is queued: %t", e != nil)
			}
			if e != nil && (e.Place() == queue.InFlight || e.NominatedNode() != "") {
				t.Errorf("the pod is %s, nominated to %q", e.Place(), e.NominatedNode())
			}
		})
	}
}

// Where the plugin found nothing the next one is asked.
func TestPluginAfterPendingPostFilter(t *testing.T) {
	p := newPendingPostFilter(t)
	first := p.call.Number
	asked := 0
	next := &framework.Plugin{Name: "Next", PostFilter: func(*framework.PostFilterCall) framework.PostFilterResult {
		asked++
		return framework.PostFilterResult{Pending: asked == 1, NominatedNodeName: "n", Resolved: true}
	}}
	p.profiles["s"].PostFilter = append(p.profiles["s"].PostFilter, next)
	p.reply(first, "")
	if at := p.Entry("a").Place(); asked != 1 || at != queue.InFlight {
		t.Fatalf("the next plugin was asked %d times, the pod is %s", asked, at)
	}
	p.reply(first+1, "n")
	if e := p.Entry("a"); e.Place() == queue.InFlight || e.NominatedNode() != "n" {
		t.Errorf("the pod is %s, nominated to %q", e.Place(), e.NominatedNode())
	}
}

// Where a node became free while the plugin ran nobody has to go: the next plugin is
// not asked, and the pod is tried again.
func TestNodeIsFreeAfterPendingPostFilter(t *testing.T) {
	p := newPendingPostFilter(t)
	first := p.call.Number
	next := &framework.Plugin{Name: "Next", PostFilter: func(*framework.PostFilterCall) framework.PostFilterResult {
		t.Error("the next plugin is asked")
		return framework.PostFilterResult{}
	}}
	p.profiles["s"].PostFilter = append(p.profiles["s"].PostFilter, next)
	p.do(NodeSet{&object.Node{UID: "m", Name: "m"}})
	p.reply(first, "")
	if at := p.Entry("a").Place(); at != queue.Backoff && at != queue.Active {
		t.Errorf("the pod is %s", at)
	}
}

// A pod whose PostFilter plugin writes is not tried until that is done: a claim that is
// being released would be gone after the pod was bound.
func TestPostFilterWrites(t *testing.T) {
	for name, tc := range map[string]struct {
		err     error
		message string
	}{
		"the writes are done": {nil, "released"},
		"a write failed":      {errFate, errFate.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			p := newEvictions(t)
			var call uint64
			p.profiles["s"].PostFilter[0].PostFilter = func(c *framework.PostFilterCall) framework.PostFilterResult {
				call = c.Number
				return framework.PostFilterResult{KeepNomination: true, Message: "released", Writes: []framework.Write{{Subresource: "status"}}}
			}
			p.do(preemptible("v", 0, "n"), preemptible("a", 1, ""), ScheduleOne{})
			p.do(NodeSet{&object.Node{UID: "m", Name: "m"}}, WriteReply{UID: "a"}, WriteReply{UID: "a", Call: call + 1}, ScheduleOne{})
			if at := p.Entry("a").Place(); at != queue.InFlight {
				t.Fatalf("the pod is %s before its own write is done", at)
			}
			effects := p.Step(time.Unix(0, 0), WriteReply{UID: "a", Call: call, Err: tc.err})
			if at := p.Entry("a").Place(); at != queue.Backoff && at != queue.Active {
				t.Errorf("the pod is %s, and a node came", at)
			}
			var got []string
			for _, e := range effects {
				if done, ok := e.(AttemptDone); ok {
					got = done.Decision.PostFilter
				}
			}
			if len(got) != 1 || got[0] != tc.message {
				t.Errorf("PostFilter says %q, want %q", got, tc.message)
			}
		})
	}
}

// Another configuration that comes while a PostFilter plugin's writes are under way
// does not have the pod tried before they are done. It is tried again then, and the
// plugins of the old configuration are not asked.
func TestReconfiguredWhilePostFilterWrites(t *testing.T) {
	p := newEvictions(t)
	old := p.profiles["s"]
	var call uint64
	old.PostFilter[0].PostFilter = func(c *framework.PostFilterCall) framework.PostFilterResult {
		call = c.Number
		return framework.PostFilterResult{KeepNomination: true, Message: "released", Writes: []framework.Write{{Subresource: "status"}}}
	}
	old.PostFilter = append(old.PostFilter, &framework.Plugin{Name: "Next", PostFilter: func(*framework.PostFilterCall) framework.PostFilterResult {
		t.Error("a plugin of the old profile is asked")
		return framework.PostFilterResult{}
	}})
	p.do(preemptible("v", 0, "n"), preemptible("a", 1, ""), ScheduleOne{})
	anew := *old
	p.do(Reconfigured{Profiles: []*profile.Profile{&anew}, Workers: 1}, ScheduleOne{})
	if at := p.Entry("a").Place(); at != queue.InFlight || p.Table().Pod("a") != nil {
		t.Fatalf("before the write is done the pod is %s, on %v", at, p.Table().Pod("a"))
	}
	p.do(WriteReply{UID: "a", Call: call})
	if at := p.Entry("a").Place(); at != queue.Backoff && at != queue.Active {
		t.Errorf("the pod is %s", at)
	}
}
