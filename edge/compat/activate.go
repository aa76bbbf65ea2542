package compat

import (
	"fmt"
	"reflect"
	"sync"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/object"
)

// PodsToActivateKey is the key of PodsToActivate in the CycleState, as in kube-scheduler.
const PodsToActivateKey fwk.StateKey = "kubernetes.io/pods-to-activate"

// PodsToActivate is a map to which a plugin adds pods that should be tried next. Its keys
// do not matter. The pods are activated when the cycle's pod is assumed on a node, and
// again when it is bound.
type PodsToActivate struct {
	sync.Mutex
	Map map[string]*v1.Pod
}

// Clone returns p itself: all clones of a CycleState share it.
func (p *PodsToActivate) Clone() fwk.StateData { return p }

// locker is the lock that every type of PodsToActivate must have, also one of another package
// (Options.PodsToActivate).
type locker interface {
	sync.Locker
	TryLock() bool
}

// newPodsToActivate returns an empty PodsToActivate. It is the default of
// Options.PodsToActivate.
func newPodsToActivate() fwk.StateData { return &PodsToActivate{Map: map[string]*v1.Pod{}} }

// CheckPodsToActivate calls make and returns an error if the value cannot be used as
// PodsToActivate. It must be a pointer to a struct with Lock, TryLock and Unlock, and with a field
// Map that is a map[string]*v1.Pod and not nil.
func CheckPodsToActivate(make func() fwk.StateData) error {
	made := make()
	if _, locks := made.(locker); !locks {
		return fmt.Errorf("PodsToActivate: a %T has no Lock, TryLock and Unlock", made)
	}
	if v := reflect.ValueOf(made); v.Kind() != reflect.Pointer || v.IsNil() || v.Elem().Kind() != reflect.Struct {
		return fmt.Errorf("PodsToActivate: a %T is not a pointer to a struct", made)
	}
	if m := mapOf(made); m == nil || *m == nil {
		return fmt.Errorf("PodsToActivate: a %T has no field Map with a map[string]*v1.Pod", made)
	}
	return nil
}

// mapOf returns a pointer to the field Map of a PodsToActivate of any package; nil if it has none
// of the right type. toActivate must be a pointer to a struct.
func mapOf(toActivate fwk.StateData) *map[string]*v1.Pod {
	if own, ok := toActivate.(*PodsToActivate); ok {
		return &own.Map
	}
	field := reflect.ValueOf(toActivate).Elem().FieldByName("Map")
	if !field.IsValid() || !field.CanAddr() {
		return nil
	}
	m, _ := field.Addr().Interface().(*map[string]*v1.Pod)
	return m
}

// takePods returns the pods to activate, removes them from toActivate, and unlocks it. The
// caller has locked it.
func takePods(toActivate fwk.StateData) (pods []*v1.Pod) {
	defer toActivate.(locker).Unlock()
	m := mapOf(toActivate)
	for _, pod := range *m { // any order: each is activated
		if pod != nil {
			pods = append(pods, pod)
		}
	}
	clear(*m)
	return pods
}

// ActivatePods activates the pods that plugins have put into the PodsToActivate of p's attempt, and
// removes them from it. It does nothing if p has no attempt. If a plugin holds the lock, that
// happens later on another goroutine: the loop never waits.
func (h *Host) ActivatePods(p *object.Pod) {
	c := h.cycles[p.UID]
	if c == nil {
		return
	}
	lock := c.toActivate.(locker)
	if lock.TryLock() {
		h.activate(takePods(c.toActivate))
		return
	}
	go func() {
		lock.Lock()
		h.activate(takePods(c.toActivate))
	}()
}

// activate sends the machine a request to move the pods to the active queue. It does not wait.
func (h *Hosts) activate(pods []*v1.Pod) {
	if len(pods) == 0 {
		return
	}
	e := machine.Activate{}
	for _, p := range pods {
		e.UIDs = append(e.UIDs, p.UID)
	}
	h.report(e)
}
