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

// PodsToActivateKey is under what a plugin finds PodsToActivate in the CycleState.
const PodsToActivateKey fwk.StateKey = "kubernetes.io/pods-to-activate"

// PodsToActivate are pods that a plugin wants to be tried next, by whatever name. They
// are activated when no plugin has rejected the pod at hand, and when it is bound.
type PodsToActivate struct {
	sync.Mutex
	Map map[string]*v1.Pod
}

// Clone returns the same: there is one of an attempt.
func (p *PodsToActivate) Clone() fwk.StateData { return p }

// locker is the lock of PodsToActivate.
type locker interface {
	sync.Locker
	TryLock() bool
}

func newPodsToActivate() fwk.StateData { return &PodsToActivate{Map: map[string]*v1.Pod{}} }

// CheckPodsToActivate returns why what a function makes cannot stand for PodsToActivate: it has
// to be a pointer to a struct with the same exported fields and methods.
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

// mapOf returns the field Map of PodsToActivate, nil where there is none.
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

// takePods returns the pods to activate, removes them from toActivate, and unlocks it.
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

// ActivatePods activates the pods that plugins want to be tried next. The loop does not
// wait for a plugin that holds their lock.
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
