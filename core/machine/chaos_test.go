package machine

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/berth-scheduler/berth/core/object"
)

// chaos is a world in which anything may happen at any time.
type chaos struct {
	*world
	t *rapid.T
}

func (c *chaos) pick(n int) int { return rapid.IntRange(0, n-1).Draw(c.t, "pick") }

func oneOf[T any](c *chaos, list ...T) T { return list[c.pick(len(list))] }

func (c *chaos) podName() string  { return fmt.Sprint("p", c.pick(8)) }
func (c *chaos) nodeName() string { return fmt.Sprint("n", c.pick(3)) }

// some picks a pod that the API has, nil when it has none.
func (c *chaos) some(of func(*object.Pod) bool) *object.Pod {
	var pods []*object.Pod
	for _, key := range slices.Sorted(maps.Keys(c.pods)) {
		if of(c.pods[key]) {
			pods = append(pods, c.pods[key])
		}
	}
	if len(pods) == 0 {
		return nil
	}
	return oneOf(c, pods...)
}

func anyPod(*object.Pod) bool     { return true }
func pending(p *object.Pod) bool  { return p.NodeName == "" }
func bound(p *object.Pod) bool    { return p.NodeName != "" && !p.Terminal }
func gatedPod(p *object.Pod) bool { return len(p.Gates) > 0 }
func ofOthers(p *object.Pod) bool { return p.SchedulerName != scheduler && p.NodeName == "" }
func (c *chaos) create() {
	name := c.podName()
	if c.pods["ns/"+name] != nil {
		return
	}
	c.setPod(c.pod(name, oneOf[int64](c, 0, 10, 10, 20, 40), func(p *object.Pod) {
		p.Priority = int32(c.pick(3))
		if c.pick(3) == 0 {
			managed(p)
		}
		p.Labels = map[string]string{"zone": oneOf(c, "", "", "", "a", "b")}
		switch c.pick(8) {
		case 0:
			p.Gates = []string{"gate"}
		case 1:
			p.SchedulerName = "another"
		}
	}))
}

func (c *chaos) delete() {
	if p := c.some(anyPod); p != nil {
		if c.pick(2) == 0 {
			c.change(p, func(p *object.Pod) { p.Terminating = true })
			return
		}
		c.deletePod(p.Key())
	}
}

func (c *chaos) remove() { c.finish() }

func (c *chaos) recreate() {
	if p := c.some(anyPod); p != nil {
		c.deletePod(p.Key())
		c.setPod(c.pod(p.Name, oneOf[int64](c, 10, 20)))
	}
}

// bindElsewhere is another scheduler at work, on its own pods or on ours.
func (c *chaos) bindElsewhere() {
	p := c.some(pending)
	if c.pick(3) > 0 {
		p = c.some(ofOthers)
	}
	if p != nil && len(p.Gates) == 0 && !p.Terminating {
		c.change(p, func(p *object.Pod) { p.NodeName = c.nodeName() })
	}
}

func (c *chaos) complete() {
	if p := c.some(bound); p != nil {
		c.change(p, func(p *object.Pod) { p.Terminal = true })
	}
}

func (c *chaos) ungate() {
	if p := c.some(gatedPod); p != nil {
		c.change(p, func(p *object.Pod) { p.Gates = nil })
	}
}

func (c *chaos) relabel() {
	if p := c.some(pending); p != nil {
		c.change(p, func(p *object.Pod) { p.Labels = map[string]string{"zone": oneOf(c, "", "a", "b")} })
	}
}

func (c *chaos) changeNode() {
	name := c.nodeName()
	if c.nodes[name] != nil && c.pick(4) == 0 {
		c.deleteNode(name)
		return
	}
	c.setNode(c.node(name, oneOf[int64](c, 20, 40, 60), func(n *object.Node) { n.Labels["zone"] = oneOf(c, "a", "b") }))
}

// resync tells again what was told last.
func (c *chaos) resync() {
	if keys := slices.Sorted(maps.Keys(c.told)); len(keys) > 0 {
		p := c.told[oneOf(c, keys...)]
		c.tell(podNews{p.Key(), p.UID, p})
	}
}

func (c *chaos) watch() {
	switch {
	case len(c.podNews) > 0 && (len(c.nodeNews) == 0 || c.pick(2) == 0):
		c.tellPod()
	case len(c.nodeNews) > 0:
		c.tellNode()
	}
}

func (c *chaos) reply() {
	if len(c.requests) == 0 {
		return
	}
	i := c.pick(len(c.requests))
	if p, ok := c.requests[i].(PatchStatus); ok { // those of one pod keep their order
		i = slices.IndexFunc(c.requests, func(r Effect) bool {
			q, ok := r.(PatchStatus)
			return ok && q.Pod.UID == p.Pod.UID
		})
	}
	c.answer(i, oneOf(c, fine, fine, fine, fine, refused, lost, vanished, delayed))
}

func (c *chaos) arrive() {
	if len(c.late) > 0 {
		c.world.arrive(c.pick(len(c.late)))
	}
}

// mood sets what the plugins do in the next step.
func (c *chaos) mood() {
	if c.pick(2) > 0 {
		return
	}
	points := map[string][]mood{
		"PreEnqueue": {fails, rejects, panics}, "PreFilter": {fails, rejects, panics}, "PreScore": {fails, panics},
		"Reserve": {fails, rejects, pends, panics}, "PreBind": {fails, rejects, writes, writes, panics}, "Bind": {passes, panics},
		"WaitNotice":   {waits, panics},
		"WritesDone":   {fails, waits, waits, panics},
		"Permit":       {waits, waits, waits, allows, expels, fails, rejects, panics},
		"RevertWrites": {writes, writes, panics}, "Unreserve": {panics}, "PostBind": {panics}, "Filter": {panics}, "Explain": {panics}, "Score": {panics},
		"NormalizeScore": {panics}, "PostFilter": {panics}, "Sign": {panics}, "Epoch": {panics},
	}
	for range 1 + c.pick(2) {
		point := oneOf(c, slices.Sorted(maps.Keys(points))...)
		c.moody.moods[point] = oneOf(c, points[point]...)
	}
}

func (c *chaos) decide() { c.step(ScheduleOne{}) }

func (c *chaos) pass() { c.tick(time.Duration(c.pick(8)) * time.Second) }

type action struct {
	weight int
	do     func()
}

func (c *chaos) actions() map[string]action {
	return map[string]action{
		"create": {3, c.create}, "delete": {1, c.delete}, "remove": {1, c.remove}, "recreate": {1, c.recreate},
		"bind elsewhere": {1, c.bindElsewhere}, "complete": {1, c.complete}, "ungate": {1, c.ungate}, "relabel": {1, c.relabel},
		"change node": {2, c.changeNode}, "watch": {6, c.watch}, "resync": {1, c.resync}, "relist": {1, c.relist},
		"reply": {5, c.reply}, "arrive": {1, c.arrive}, "decide": {5, c.decide}, "pass": {2, c.pass},
	}
}

// TestChaos: whatever goes wrong, each step leaves the machine whole (the
// world sees to it), and when nothing goes wrong any more the cluster comes to
// rest with each pod where it should be.
func TestChaos(t *testing.T) {
	longer(t)
	rapid.Check(t, func(t *rapid.T) {
		c := &chaos{world: newWorld(t), t: t}
		actions := map[string]func(*rapid.T){}
		for name, action := range c.actions() {
			for i := range action.weight {
				actions[fmt.Sprint(name, " ", i)] = func(t *rapid.T) {
					c.t = t
					c.mood()
					action.do()
					clear(c.moody.moods)
				}
			}
		}
		t.Repeat(actions)
		c.rest()
		c.leave()
	})
}

// rest lets everything come to rest after the plugins' moods and, of some
// nodes, the annotations changed: that is what they wait for.
func (c *chaos) rest() {
	c.Helper()
	clear(c.moody.waiting)
	clear(c.twinMoody.waiting)
	if len(c.nodes) == 0 { // without one pods back off for ever
		c.setNode(c.node("n0", 20))
	}
	c.settle()
	for _, name := range slices.Sorted(maps.Keys(c.nodes)) {
		n := *c.nodes[name]
		n.Annotations = map[string]string{"mood": "good"}
		c.setNode(&n)
	}
	c.settle()
	c.checkRest()
}

// longer has rapid take 100 steps a run where nobody says how many.
func longer(t *testing.T) {
	steps := flag.Lookup("rapid.steps")
	if before := steps.Value.String(); before == steps.DefValue {
		_ = flag.Set("rapid.steps", "100")
		t.Cleanup(func() { _ = flag.Set("rapid.steps", before) })
	}
}
