package chaos

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/berth-scheduler/berth/lab/proxy"
)

// leaseDuration is how long a lease lasts after its last renewal, by default.
const leaseDuration = 15 * time.Second

// request is one that a replica sent.
type request struct {
	replica int
	proxy.Exchange
}

func (r request) binding() bool {
	return r.Method == http.MethodPost && strings.HasSuffix(r.Path, "/binding")
}

// seriesCount: an Event was told how often it was repeated.
func (r request) seriesCount() bool {
	return r.Method == http.MethodPatch && strings.Contains(r.Path, "/events/")
}

// leaseWrite: the lease was taken, renewed or given up by it.
func (r request) leaseWrite() bool {
	return strings.Contains(r.Path, "/leases") && r.Method != http.MethodGet && r.Status >= 200 && r.Status < 300
}

// merge puts the requests of all replicas in the order in which they came.
func merge(exchanges [][]proxy.Exchange) []request {
	var all []request
	for i, some := range exchanges {
		for _, e := range some {
			all = append(all, request{i, e})
		}
	}
	slices.SortStableFunc(all, func(a, b request) int { return a.Came.Compare(b.Came) })
	return all
}

// unleased names each binding that a replica sent while the lease was not its
// own: another one wrote the lease last, or its own last write is older than the
// lease lasts.
//
//	0s replica 0 renews    3s replica 0 binds: well
//	20s replica 0 binds: its lease ran out at 15s
//	21s replica 1 takes the lease    22s replica 0 binds: not its lease
func unleased(all []request) []string {
	var found []string
	var last *request
	for i := range all {
		r := &all[i]
		switch {
		case r.leaseWrite():
			last = r
		case !r.binding():
		case last == nil:
			found = append(found, fmt.Sprintf("replica %d bound %s before any lease", r.replica, r.Path))
		case last.replica != r.replica:
			found = append(found, fmt.Sprintf("replica %d bound %s when replica %d had the lease", r.replica, r.Path, last.replica))
		case r.Came.Sub(last.Came) > leaseDuration:
			found = append(found, fmt.Sprintf("replica %d bound %s %s after its last renewal", r.replica, r.Path, r.Came.Sub(last.Came)))
		}
	}
	return found
}

// writes are the requests since then that change something, except for leases and for
// the last counts of Events that were repeated: a recorder writes these when a series is
// over, 6 to 12 minutes after the last repeat, as client-go's does.
func writes(all []request, since time.Time) []request {
	return slices.DeleteFunc(slices.Clone(all), func(r request) bool {
		return r.Method == http.MethodGet || strings.Contains(r.Path, "/leases") || r.Came.Before(since) || r.seriesCount() ||
			strings.Contains(r.Path, "/apis/authentication") || strings.Contains(r.Path, "/apis/authorization")
	})
}
