package kube

import (
	"cmp"
	"context"
	"maps"
	"slices"
)

// Mismatch compares the API server's objects of the resource, "pods" or "nodes", with the
// watches' cache, and the cache with the machine. missed are the objects that the cache or the
// machine lacks or has in another version, redundant those that it has though they are deleted.
// Both are sorted lists of namespace/name, or the name of a node. Mismatch compares twice, as
// the cluster changes meanwhile.
func (w *Watcher) Mismatch(ctx context.Context, resource string) (missed, redundant []string, err error) {
	at := slices.IndexFunc(w.stores, func(s *store) bool { return s.name == resource })
	s := w.stores[at]
	wrong, err := w.compareTwice(ctx, s)
	if err != nil {
		return nil, nil, err
	}
	first, err := w.compareCore(ctx, s)
	second, again := w.compareCore(ctx, s)
	if err := cmp.Or(err, again); err != nil {
		return nil, nil, err
	}
	differ := inBoth(first, second)
	maps.Copy(differ, wrong)
	for name, d := range differ { // any order: sorted
		key := name.Name
		if name.Namespace != "" {
			key = name.String()
		}
		if d.there == (owner{}) {
			redundant = append(redundant, key)
		} else {
			missed = append(missed, key)
		}
	}
	slices.Sort(missed)
	slices.Sort(redundant)
	return missed, redundant, nil
}
