package kube

import (
	"maps"
	"sync"

	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// versions are resource versions, by resource, without its group.
type versions struct {
	mu     sync.Mutex
	latest map[string]string
}

// note notes a version, if it is later than what was noted before.
func (v *versions) note(resource, version string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.latest == nil {
		v.latest = map[string]string{}
	}
	if before := v.latest[resource]; before == "" || older(before, version) {
		v.latest[resource] = version
	}
}

// Replied returns the latest versions of objects that replies have shown, by
// resource: of what was written, and of pods that were read.
func (x *Executor) Replied() map[string]string {
	x.replied.mu.Lock()
	defer x.replied.mu.Unlock()
	return maps.Clone(x.replied.latest)
}

// Shown returns how far the watches have come, by resource, for what takes room and
// gives it: the version of the last change of each. A watcher that has come
// as far knows what this watcher knows.
func (w *Watcher) Shown() map[string]string {
	shown := map[string]string{}
	for _, s := range w.stores {
		if !s.room() || !s.listed() {
			continue
		}
		s.moving.Lock()
		shown[s.name] = s.told
		s.moving.Unlock()
	}
	return shown
}

// HasShown reports whether the watches have come as far as another watcher's had.
// It is false where that watcher did not watch what this one does.
func (w *Watcher) HasShown(other map[string]string) bool {
	for _, s := range w.stores {
		if !s.room() {
			continue
		}
		s.moving.Lock()
		shown := s.shown
		s.moving.Unlock()
		if !AsFar(shown, other[s.name]) {
			return false
		}
	}
	return true
}

// AsFar reports whether a resource version is the same as another, or later. What
// is no version is neither.
func AsFar(version, other string) bool {
	order, err := resourceversion.CompareResourceVersion(version, other)
	return err == nil && order >= 0
}
