package kube

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/machine"
)

// coreConfirm is after what time a difference between the machine and what it was
// told counts: an event whose step panicked is given again within a minute.
const coreConfirm = 2 * time.Minute

// coreAudit is what a store notes so that the machine can be compared with it.
type coreAudit struct {
	keeps func(machine.Event) bool // whether the machine keeps what the event tells of; nil: it is not compared
	// unkept are the objects that the machine does not have as they are.
	unkept map[types.NamespacedName]unkept

	mu    sync.Mutex
	again []owner // to be told of again with the next list
}

// unkept is how the machine has an object that it does not have as it is.
type unkept uint8

const (
	notThere unkept = iota + 1 // it does not: a pod of another scheduler that waits, or what cannot be decoded
	asBefore                   // it was told nothing of what cannot be decoded, and may have an older state
)

// AuditCore has Audit compare the pods and nodes that the machine has, as known
// lists them. The names are those of its profiles. It comes before Run.
func (w *Watcher) AuditCore(profiles []string, known func(ctx context.Context, resource string) ([]machine.Known, error)) {
	ours := map[string]bool{}
	for _, name := range profiles {
		ours[name] = true
	}
	w.audit.known = known
	for _, s := range w.stores {
		if s.name != "pods" && s.name != "nodes" {
			continue
		}
		s.core.unkept = map[types.NamespacedName]unkept{}
		s.core.keeps = func(e machine.Event) bool {
			switch e := e.(type) {
			case machine.PodSet:
				return !e.Pod.Terminal && (e.Pod.NodeName != "" || ours[e.Pod.SchedulerName])
			case machine.NodeSet:
				return true
			}
			return false
		}
	}
}

// noteKept notes whether the machine has the object when it has been told of it.
func (s *store) noteKept(name types.NamespacedName, e machine.Event) {
	if s.core.keeps == nil {
		return
	}
	s.moving.Lock()
	defer s.moving.Unlock()
	switch {
	case e == nil:
		s.core.unkept[name] = asBefore
	case s.core.keeps(e):
		delete(s.core.unkept, name)
	default:
		s.core.unkept[name] = notThere
	}
}

// compareCoreTwice finds what the machine has otherwise than it was told, now and
// a while later.
func (w *Watcher) compareCoreTwice(ctx context.Context, s *store) (map[types.NamespacedName]difference, error) {
	if s.core.keeps == nil || w.audit.known == nil {
		return nil, nil
	}
	first, err := w.compareCore(ctx, s)
	if err != nil || len(first) == 0 || !sleep(ctx, coreConfirm) {
		return nil, err
	}
	second, err := w.compareCore(ctx, s)
	return inBoth(first, second), err
}

// compareCore finds what the machine has otherwise than it was told.
func (w *Watcher) compareCore(ctx context.Context, s *store) (map[types.NamespacedName]difference, error) {
	list, err := w.audit.known(ctx, s.name)
	if err != nil {
		return nil, err
	}
	s.moving.Lock()
	defer s.moving.Unlock()
	differ := map[types.NamespacedName]difference{}
	has := make(map[types.NamespacedName]struct{}, len(list))
	for _, k := range list {
		has[k.Name] = struct{}{}
		known, told := owner{k.Name, k.UID, k.Version}, s.seen[k.Name]
		if k.UID == "" {
			known.uid, known.version = told.uid, told.version // a node: it is there, or is not
		}
		if u := s.core.unkept[k.Name]; u == notThere || u == 0 && known != told {
			differ[k.Name] = difference{known, told}
		}
	}
	for name, told := range s.seen { // any order: each by itself
		_, unkept := s.core.unkept[name]
		if _, known := has[name]; !known && !unkept {
			differ[name] = difference{there: told}
		}
	}
	return differ, nil
}

// retell has the next list tell the machine of these again: that they are there,
// or are gone.
func (a *coreAudit) retell(wrong map[types.NamespacedName]difference) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for name, d := range wrong { // any order: each by itself
		o := d.there
		if o == (owner{}) {
			o = owner{NamespacedName: name, uid: d.known.uid}
		}
		o.version = ""
		a.again = append(a.again, o)
	}
}

// tellAgain has the list that is being taken in tell of what is to be told again.
func (s *store) tellAgain() {
	s.core.mu.Lock()
	again := s.core.again
	s.core.again = nil
	s.core.mu.Unlock()
	for _, o := range again {
		if now, known := s.seen[o.NamespacedName]; !known || now.uid == o.uid {
			s.note(o)
		}
	}
}
