package kube

import (
	"maps"
	"sync"

	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// versions holds the latest resource version that replies have shown, for each resource,
// such as "pods". A leader hands over only once its watches have shown these versions.
type versions struct {
	mu     sync.Mutex
	latest map[string]string
}

// record stores the version if it is later than the stored one.
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

// Replied returns, by resource, the latest resource version that a reply of the API server
// has shown: to a write, or to a read of a pod.
func (x *Executor) Replied() map[string]string {
	x.replied.mu.Lock()
	defer x.replied.mu.Unlock()
	return maps.Clone(x.replied.latest)
}

// Shown returns, by resource, the version of the last change that was posted or is being
// posted, for the kinds in a Mark whose first list was posted. Another process compares its
// own watches with these (HasShown) before it takes over.
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

// HasShown reports whether the watches have reached the versions in other, which Shown returned
// in another process. It is false if other lacks a kind in a Mark that this process watches.
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
// either is no number.
func AsFar(version, other string) bool {
	order, err := resourceversion.CompareResourceVersion(version, other)
	return err == nil && order >= 0
}
