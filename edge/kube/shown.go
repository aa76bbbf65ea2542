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

// record stores the version if it is later than the one stored.
func (v *versions) record(resource, version string) {
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

// Shown returns, by resource, the version of the last change of each kind that a Mark
// includes. A watcher that has reached these knows what this watcher knows.
func (w *Watcher) Shown() map[string]string {
	shown := map[string]string{}
	for _, s := range w.stores {
		if !s.inMarks() || !s.listed() {
			continue
		}
		s.moving.Lock()
		shown[s.name] = s.told
		s.moving.Unlock()
	}
	return shown
}

// HasShown reports whether the watches have reached what another watcher's had shown. It
// is false if that watcher did not watch what this one does.
func (w *Watcher) HasShown(other map[string]string) bool {
	for _, s := range w.stores {
		if !s.inMarks() {
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

// AsFar reports whether a resource version is equal to other or later. It is false if
// either is no version.
func AsFar(version, other string) bool {
	order, err := resourceversion.CompareResourceVersion(version, other)
	return err == nil && order >= 0
}
