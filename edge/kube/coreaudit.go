package kube

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/machine"
)

// coreConfirm is how long a difference between the machine and the cache must last to
// count: an event whose step panicked is posted again within a minute.
const coreConfirm = 2 * time.Minute

// coreAudit is what a store of pods or nodes records so that Audit can compare the machine's
// objects with the store's.
type coreAudit struct {
	// keeps reports whether the machine keeps the object of a posted event. It drops a pod that
	// has ended, for example. A nil keeps means that the kind is not compared.
	keeps func(machine.Event) bool
	// unkept holds the posted objects that the machine must not have, or may have in an older
	// version or not at all. store.moving guards it.
	unkept map[types.NamespacedName]unkept

	mu    sync.Mutex // guards again
	again []owner    // objects that differed; the next list posts them again
}

// unkept is why the machine may differ from the store about an object.
type unkept uint8

const (
	notThere unkept = iota + 1 // the machine must not have it, such as a pending pod of another scheduler
	asBefore                   // it cannot be decoded and was not posted: the machine may have an older version or none
)

// AuditCore makes Audit compare the machine's pods and nodes with the watches' too. known
// lists the machine's objects of a resource; profiles are the scheduler names whose
// pending pods the machine keeps. Call it before Run.
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

// recordKept records whether the machine will keep the object whose event e is about to be
// posted, so that Audit does not report it as missing there. A nil e means that the object
// cannot be decoded.
func (s *store) recordKept(name types.NamespacedName, e machine.Event) {
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

// compareCoreTwice returns the objects that the machine has otherwise than the store, in the
// same way now and coreConfirm later. It waits for that only if there are any. It returns none
// for a kind that is not compared.
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

// compareCore returns the objects that the machine lacks, has in another version, or has
// though they are gone from the store. A difference's there is the store's view, not the API
// server's.
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

// addAgain schedules the objects in wrong to be posted again with the next list, as set or as
// deleted, though they did not change.
func (a *coreAudit) addAgain(wrong map[types.NamespacedName]difference) {
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

// postAgain makes sure that the list that Replace is about to post posts the objects of
// addAgain, too: it clears the version in which they are known.
func (s *store) postAgain() {
	s.core.mu.Lock()
	again := s.core.again
	s.core.again = nil
	s.core.mu.Unlock()
	for _, o := range again {
		if now, known := s.seen[o.NamespacedName]; !known || now.uid == o.uid {
			s.markObject(o)
		}
	}
}
