package kube

import (
	"context"
	"fmt"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/berth-scheduler/berth/core/machine"
)

// history detects that resource versions went back, as they do when etcd is restored
// from a backup. The API server then shows older states, and a watch from a version of
// the future is silent until that version is reached.
type history struct {
	version string        // of the last list, event or bookmark
	rewound bool          // a lower version was read: compare posts the next list as a whole
	rewinds atomic.Uint64 // lists so far that showed an older state
	logger  klog.Logger
}

// UpdateResourceVersion records the version that the watch has reached, by an event or a
// bookmark. The reflector calls it after it has called Add, Update or Delete for the event.
func (s *store) UpdateResourceVersion(version string) {
	s.version = version
	s.markPosted(version)
}

// checked changes lw so that a watch that is resumed first makes a consistent read, and returns
// it. If the read shows a lower version than the watch is to begin with, history went back: the
// watch fails as expired, so that the reflector lists again, and rewound is set.
func (h *history) checked(lw *cache.ListWatch) *cache.ListWatch {
	resume := lw.WatchFuncWithContext
	lw.WatchFuncWithContext = func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
		if o.SendInitialEvents != nil { // it is a list
			return resume(ctx, o)
		}
		limited, cancel := context.WithTimeoutCause(ctx, requestTimeout, errNoAnswer)
		defer cancel()
		list, err := lw.ListWithContextFunc(limited, metav1.ListOptions{Limit: 1})
		if err != nil {
			return nil, err
		}
		now, err := meta.ListAccessor(list)
		if err != nil {
			return nil, err
		}
		if older(now.GetResourceVersion(), o.ResourceVersion) {
			h.rewound = true
			return nil, apierrors.NewResourceExpired(fmt.Sprintf("the version is %s, after %s", now.GetResourceVersion(), o.ResourceVersion))
		}
		return resume(ctx, o)
	}
	return lw
}

// older reports whether resource version a is before b. It is false if either is not a
// number.
func older(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order < 0
}

// compare checks whether the list, which Replace is about to post, shows an older state than
// was seen before: history went back. It then posts Rewound and clears the versions in seen,
// so that everything in the list is posted again, since it overrides what was learned
// elsewhere. It records the list's version.
func (s *store) compare(list []any, version string) {
	back := s.rewound || older(version, s.version)
	for _, obj := range list {
		o, ok := ownerOf(obj)
		if !ok {
			continue
		}
		before := s.seen[o.NamespacedName]
		back = back || before.uid == o.uid && older(o.version, before.version)
	}
	if back {
		s.rewinds.Add(1)
		s.logger.Error(nil, "The API shows an older state than before, etcd may have been restored from a backup", "resource", s.name, "version", version, "seen", s.version)
		for _, o := range s.seen {
			o.version = ""
			s.markObject(o)
		}
		s.post(machine.Rewound{})
	}
	s.version, s.rewound = version, false
}

// Rewinds returns how many lists of all kinds so far showed an older state than was seen before.
func (w *Watcher) Rewinds() (n uint64) {
	for _, m := range w.stores {
		n += m.rewinds.Load()
	}
	return n
}
