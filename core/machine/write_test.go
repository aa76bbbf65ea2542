package machine

import (
	"slices"
	"testing"
	"time"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/queue"
)

// What is being written for a pod is given to nobody else, whatever becomes of
// the pod, before it is known what became of the write.
func TestWhatIsBeingWrittenIsKept(t *testing.T) {
	ends := map[string]func(*story, *object.Pod){
		"it goes":                   func(s *story, p *object.Pod) { s.deletePod(p.Key()) },
		"another binds it":          func(s *story, p *object.Pod) { s.change(p, func(p *object.Pod) { p.NodeName = "m" }) },
		"another binds it as we do": func(s *story, p *object.Pod) { s.change(p, func(p *object.Pod) { p.NodeName = "n" }) },
		"an attempt that is called off": func(s *story, p *object.Pod) {
			for _, m := range []*Machine{s.m, s.twin} {
				c := m.pods.byUID[p.UID].binding
				m.bindings.fail(c.attempt, m.bindings.permitRejection(c, "Moody", "called off"))
			}
		},
	}
	for name, end := range ends {
		for how, fate := range map[string]fate{"done": fine, "refused": refused} {
			t.Run(name+", "+how, func(t *testing.T) {
				s := newStory(t)
				p := s.pod("p", 40)
				s.given(s.node("n", 40), p)
				s.cycle("PreBind", writes)
				s.given(s.node("m", 40))
				end(s, p)
				s.tellAll()
				if count(s, "Unreserve p") != 0 {
					t.Error("what was reserved is given back while it is being written")
				}
				s.answer(slices.IndexFunc(s.requests, func(e Effect) bool { _, ok := e.(Write); return ok }), fate)
				kept := name == "another binds it as we do" && fate == fine
				if n := count(s, "Unreserve p"); (n == 0) != kept {
					t.Errorf("given back %d times", n)
				}
				s.settle()
				s.tick(time.Minute)
				s.settle()
				s.checkRest()
			})
		}
	}
}

// An attempt that fails takes back first what it wrote. Its pod is not tried
// again before that is done, and its room stays taken.
func TestRevertWrites(t *testing.T) {
	for how, fate := range map[string]fate{"done": fine, "refused": refused} {
		t.Run(how, func(t *testing.T) {
			s := newStory(t)
			p := s.pod("p", 40)
			s.given(s.node("n", 40), p)
			s.cycle("", "")
			s.moody.moods["RevertWrites"] = writes
			s.reply(refused)
			s.did("Write for p-1")
			s.where(p, queue.InFlight)
			s.used(40)
			if n := count(s, "Unreserve p"); n != 0 {
				t.Errorf("given back %d times before it is written", n)
			}
			s.reply(fate)
			s.where(p, queue.ErrorBackoff)
			s.used(0)
			if n := count(s, "Unreserve p"); n != 1 {
				t.Errorf("given back %d times", n)
			}
			s.settle()
			s.runs(p, "n")
			s.checkRest()
		})
	}
}

// The reply to a write shows the object before the watch does, which is not
// heard on what is older, and brings back nothing that is gone.
func TestRepliesShowObjects(t *testing.T) {
	m := New(options(&moody{moods: map[string]mood{}}))
	volume := func(version string) object.Object {
		return &object.PersistentVolume{Meta: object.Meta{Kind: object.PersistentVolumes, Name: "v", UID: "uid", Version: version}}
	}
	reply := func(version string) Event { return WriteReply{UID: "p", Shown: []object.Object{volume(version)}} }
	gone := ObjectGone{Kind: object.PersistentVolumes, Name: "v"}
	for _, test := range []struct {
		event Event
		want  string
	}{
		{reply("3"), ""}, {ObjectSet{volume("3")}, "3"}, {reply("5"), "5"}, {ObjectSet{volume("4")}, "5"},
		{ObjectSet{volume("5")}, "5"}, {reply("4"), "5"}, {ObjectSet{volume("6")}, "6"}, {gone, ""}, {reply("7"), ""},
	} {
		m.Step(time.Unix(0, 0), test.event)
		got := ""
		if o := m.Table().Objects().Named(object.PersistentVolumes, "", "v"); o != nil {
			got = o.Head().Version
		}
		if got != test.want {
			t.Errorf("after %s: version %q, want %q", show(test.event), got, test.want)
		}
	}
}

// A pod that goes while things are taken back for it is gone.
func TestGoneWhileReverting(t *testing.T) {
	s := newStory(t)
	p := s.pod("p", 40)
	s.given(s.node("n", 40), p)
	s.moody.moods["RevertWrites"] = writes
	s.cycle("Permit", rejects)
	s.where(p, queue.InFlight)
	s.deletePod(p.Key())
	s.tellAll()
	s.where(p, queue.Nowhere)
	s.used(0)
	s.reply(fine)
	s.settle()
	s.checkRest()
}
