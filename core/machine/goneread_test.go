package machine

import (
	"testing"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/queue"
)

// lagging is a story of a pod that was bound and deleted: a read has said so, as the
// reply to the binding was lost, and the watch has not.
func lagging(t *testing.T) (*story, *object.Pod) {
	s := newStory(t)
	p := s.pod("p", 30)
	s.given(s.node("n", 40), p)
	s.cycle("", "")
	s.reply(lost)
	s.change(p, func(p *object.Pod) { p.Terminating = true })
	s.deletePod(p.Key())
	s.reply(fine)
	s.used(0)
	if s.m.Knows(p.NamespacedName()) || s.m.pods.byUID[p.UID] == nil {
		t.Error("it is known still, or forgotten")
	}
	return s, p
}

// What a watch that lags tells of a pod that a read has shown to be gone brings it
// not back: it takes no room, and is evicted for nobody. Another read asks each time.
func TestOldNewsOfAPodThatIsGone(t *testing.T) {
	s, p := lagging(t)
	s.tellPod() // bound
	s.did("ReadPod p-1")
	high := s.pod("high", 40, func(p *object.Pod) { p.Priority = 1 })
	s.pods[high.Key()] = high
	s.tell(podNews{high.Key(), high.UID, high})
	s.used(0)
	s.cycle("", "")
	s.did("AttemptDone high-3: Scheduled n", "Bind high-3 to n")
	s.answer(0, fine) // the read
	s.tellPod()       // terminating
	s.did("ReadPod p-1")
	s.answer(1, fine)
	s.did()
	s.tellPod() // gone
	s.settle()
	s.runs(high, "n")
	s.checkRest()
	if s.m.pods.byUID[p.UID] != nil {
		t.Error("it is remembered for good")
	}
}

// A read that failed says nothing, and one that was sent before the pod was shown
// again does not say the last word: etcd may have been restored from a backup.
func TestGonePodComesBack(t *testing.T) {
	s, p := lagging(t)
	s.tellPod()
	s.reply(refused)
	s.did("ReadPod p-1")
	s.step(Rewound{})
	s.podNews = nil
	seen := s.requests
	again := *p
	s.setPod(&again)
	s.tellPod()
	s.did()
	s.requests = nil
	s.step(ReadReply{UID: p.UID})
	s.did("ReadPod p-1")
	if len(seen) != 1 {
		t.Errorf("on their way are %q", shown(seen))
	}
	s.reply(fine)
	s.where(p, queue.Active)
	s.settle()
	s.runs(p, "n")
	s.checkRest()
}

// Another pod under the name of one that is gone is another pod.
func TestGonePodMadeAnew(t *testing.T) {
	s, p := lagging(t)
	anew := s.pod("p", 40)
	s.podNews = nil
	s.given(anew)
	if s.m.pods.byUID[p.UID] != nil {
		t.Error("the one before is remembered")
	}
	s.settle()
	s.runs(anew, "n")
	s.checkRest()
}
