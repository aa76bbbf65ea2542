package daemon

import (
	"context"
	"net/http"
	"runtime"
	"time"

	"k8s.io/client-go/rest"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/profile"
	"github.com/berth-scheduler/berth/core/queue"
	"github.com/berth-scheduler/berth/edge/api"
	"github.com/berth-scheduler/berth/edge/records"
	"github.com/berth-scheduler/berth/edge/shadow"
)

// newAPI returns what serves /berth/v1/. A copy of the machine logs nothing, asks no
// extender, and leaves half of the cores to the scheduling loop.
func (d *Daemon) newAPI(o *Options, copied machine.Options, read rest.Interface) http.Handler {
	copied.Profiles, copied.Extenders, copied.Explain, copied.StepDone, copied.Panicked, copied.Check = nil, nil, nil, nil, nil, false
	copied.Workers = max(runtime.GOMAXPROCS(0)/2, 1)
	return api.Handler(api.Options{
		Recorder:    d.records,
		History:     d.history,
		Build:       o.Build,
		Inspect:     d.Inspect,
		Leads:       d.inCharge,
		Leader:      d.leader,
		Status:      d.status,
		Differences: func() []shadow.Record { return d.shadowed.Differences() }, // asked of a shadow alone
		Synced:      d.isSynced,
		Shadow:      o.Shadow,
		Hosted:      o.Hosts != nil,
		Profiles:    func() ([]*profile.Profile, error) { return o.CopyProfiles(d.config.Load()) },
		Machine:     copied,
		Read:        read,
		PodFields:   o.PodFields,
		Stopped:     d.stopped,
		Now:         time.Now,
	})
}

// sample takes samples of the history until the context ends. While the loop does not answer it
// takes none.
func (d *Daemon) sample(ctx context.Context) {
	every := time.NewTicker(records.SampleTime)
	defer every.Stop()
	for {
		select {
		case now := <-every.C:
			limited, cancel := context.WithTimeout(ctx, refreshTime)
			var counts queue.Counts
			if d.Inspect(limited, func(m *machine.Machine) { counts = m.Queue().Counts() }) == nil {
				d.history.Take(now, counts)
			}
			cancel()
		case <-ctx.Done():
			return
		}
	}
}

// Serve sets the function that returns the certificates of the endpoint, in DER. The lease
// names them, so that clients can verify the leader. Call Serve before Run.
func (d *Daemon) Serve(certificates func() [][]byte) {
	if d.lease != nil {
		d.lease.Serve(certificates)
	}
}
