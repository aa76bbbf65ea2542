package faults

import (
	"fmt"
	"net/http"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/lab/proxy"
)

// left tells which of the pods were left waiting once no pod is about to be
// tried. That such a pod fits is shown by a twin, made by again, which is placed.
func (s *stage) left(again func(name string) *corev1.Pod, names ...string) Outcome {
	gated := s.settle()
	where := "unschedulable"
	if gated > 0 {
		where = "gated"
	}
	var waiting, placed []string
	for _, name := range names {
		if s.node(name) == "" {
			waiting = append(waiting, name)
		} else {
			placed = append(placed, name)
		}
	}
	if len(waiting) == 0 {
		return Outcome{What: "placed: " + strings.Join(placed, ", ")}
	}
	for _, name := range waiting {
		s.twin(again(name))
	}
	return Outcome{Shown: true, What: fmt.Sprintf("left waiting (%s): %s; a twin was placed", where, strings.Join(waiting, ", "))}
}

// twin creates the pod, under a new name, until the scheduler places one: it may
// have missed by a moment what makes it fit.
func (s *stage) twin(pod *corev1.Pod) {
	name := pod.Name
	for last := s.twins + 100; s.err == nil; {
		s.twins++
		pod.Name = fmt.Sprintf("%s-twin-%d", name, s.twins)
		s.create(pod)
		bound := false
		s.await("pod "+pod.Name+" to be bound or rejected", func() bool {
			bound = s.node(pod.Name) != ""
			return bound || rejected(s.pod(s.home, pod.Name))
		})
		if bound {
			return
		}
		s.delete(s.home, pod.Name)
		if s.twins == last {
			s.note(fmt.Errorf("pod %s does not fit, and neither does a twin of it", name))
		}
	}
}

// R1. A namespace passes from one team to another. The follower wants to be
// where the second team's database is, the loner where the first team's is not;
// both could now be.
func namespaceLabels(s *stage) Outcome {
	again := func(name string) *corev1.Pod {
		if name == "follower" {
			return newPod(s.home, name, with(term("database", "second")))
		}
		return newPod(s.home, name, without(term("database", "first")))
	}
	s.nodeOf(s.home, "8", false)
	s.namespace(s.other, map[string]string{"team": "first"})
	s.create(newPod(s.other, "database", app("database")))
	s.awaitBound(s.other, "database")
	s.create(again("follower"), again("loner"))
	s.awaitRejected("follower")
	s.awaitRejected("loner")
	s.assign(s.other, "second")
	s.twin(again("follower")) // namespaces have a watch of their own: it shows that the scheduler knows
	return s.left(again, "follower", "loner")
}

// R2. In a namespace of the team a database comes, which the follower wants to
// be with, and a cache goes, which the loner wants to be without.
func partners(s *stage) Outcome {
	again := func(name string) *corev1.Pod {
		if name == "follower" {
			return newPod(s.home, name, with(term("database", "team")))
		}
		return newPod(s.home, name, without(term("cache", "team")))
	}
	s.nodeOf(s.home, "8", false)
	s.namespace(s.other, map[string]string{"team": "team"})
	s.create(newPod(s.other, "cache", app("cache")))
	s.awaitBound(s.other, "cache")
	s.create(again("follower"), again("loner"))
	s.awaitRejected("follower")
	s.awaitRejected("loner")
	s.delete(s.other, "cache")
	s.create(newPod(s.other, "database", app("database")))
	s.awaitBound(s.other, "database")
	s.mark()
	return s.left(again, "follower", "loner")
}

// R3. The first of a group runs on a node that the second does not tolerate, so
// that the second waits; when the first goes, the second could be the first of
// the group on the other node.
func firstOfGroup(s *stage) Outcome {
	member := func(name string) *corev1.Pod {
		return newPod(s.home, name, app("group"), with(term("group", "")))
	}
	kept, open := s.home+"-kept", s.home+"-open"
	s.nodeOf(kept, "8", true)
	s.nodeOf(open, "8", false)
	first := member("first")
	on(kept)(first)
	s.create(first)
	s.awaitBound(s.home, "first")
	s.create(member("second"))
	s.awaitRejected("second")
	s.delete(s.home, "first")
	s.mark()
	return s.left(member, "second")
}

// R4. Two pods wait for a node with room for one. It comes; the binding of one
// takes effect, its reply is lost, and the watch that would show it is frozen.
// The other must not get the room.
func lostReply(s *stage) Outcome {
	node, kept := s.home, s.home+"-kept"
	s.create(newPod(s.home, "one", requests("1")), newPod(s.home, "two", requests("1")), newPod(s.home, "marker", on(kept)))
	for _, name := range []string{"one", "two", "marker"} {
		s.awaitRejected(name)
	}
	if s.err != nil {
		return Outcome{}
	}
	thaw := s.proxy.Inject(proxy.Fault{Freeze: true, On: func(r *http.Request) bool {
		return r.URL.Path == "/api/v1/pods" && r.URL.Query().Has("watch")
	}})
	defer thaw()
	find := s.proxy.Inject(proxy.Fault{LoseReply: true, On: func(r *http.Request) bool {
		return r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/binding")
	}})
	defer find()
	s.nodeOf(node, "1", false)
	s.await("the reply to a binding to be lost", func() bool {
		return s.proxy.Count(func(e proxy.Exchange) bool { return e.Lost }) > 0
	})
	find()
	s.nodeOf(kept, "1", true) // for the marker alone
	s.awaitBound(s.home, "marker")
	over := ""
	s.await("the room to be given away, or the pod to be known as bound", func() bool {
		if over = s.overcommitted(); over != "" {
			return true
		}
		pending := s.pending()
		return pending["active"]+pending["backoff"] == 0 && pending["unschedulable"] == s.unbound()
	})
	thaw()
	if over == "" {
		s.mark(on(kept))
		over = s.overcommitted()
	}
	if over != "" {
		return Outcome{Shown: true, What: "over-committed: " + over}
	}
	return Outcome{What: "the room stayed taken"}
}

// overcommitted is the first node with more on it than it has room for, "" when
// there is none.
func (s *stage) overcommitted() string {
	over, err := s.cluster.Overcommitted(s.ctx)
	if err != nil || len(over) == 0 {
		s.note(err)
		return ""
	}
	return over[0]
}

// R5. The owner of a claim that only one pod may use takes the place of its
// user, and of another that it keeps away from. The user goes at once; the API
// server is slow to answer about the other, which goes later.
func preemption(s *stage) Outcome {
	low, high, top := s.priority("low", 10), s.priority("high", 100), s.priority("top", 1000)
	owner := func(class string) func(string) *corev1.Pod {
		return func(name string) *corev1.Pod {
			return newPod(s.home, name, claim("data"), without(term("other", "")), func(p *corev1.Pod) {
				p.Spec.PriorityClassName = class
			})
		}
	}
	s.nodeOf(s.home, "8", false)
	s.claimForOne("data")
	s.create(newPod(s.home, "user", claim("data"), class(low)), newPod(s.home, "other", app("other")))
	s.awaitBound(s.home, "user")
	s.awaitBound(s.home, "other")
	if s.err != nil {
		return Outcome{}
	}
	answer := s.proxy.Inject(proxy.Fault{Freeze: true, On: func(r *http.Request) bool {
		return r.Method == http.MethodPatch && r.URL.Path == "/api/v1/namespaces/"+s.home+"/pods/other/status"
	}})
	defer answer()
	s.create(owner(high)("owner"))
	s.awaitGone("user")
	s.mark()
	s.settle() // the owner was requeued by that, and has to wait
	answer()
	s.awaitGone("other")
	s.mark()
	return s.left(owner(top), "owner") // the twin is above the owner, whose nomination would keep the claim from it
}
