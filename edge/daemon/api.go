package daemon

import (
	"net/http"
	"runtime"
	"time"

	"k8s.io/client-go/rest"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/profile"
	"github.com/berth-scheduler/berth/edge/api"
)

// newAPI returns what serves /berth/v1/. A copy of the machine logs nothing, asks no
// extender, and leaves half of the cores to the scheduling loop.
func (d *Daemon) newAPI(o *Options, copied machine.Options, read rest.Interface) http.Handler {
	copied.Profiles, copied.Extenders, copied.Explain, copied.StepDone, copied.Panicked, copied.Check = nil, nil, nil, nil, nil, false
	copied.Workers = max(runtime.GOMAXPROCS(0)/2, 1)
	return api.Handler(api.Options{
		Recorder:  d.records,
		Inspect:   d.Inspect,
		Leads:     d.inCharge,
		Leader:    d.leader,
		Status:    d.status,
		Synced:    d.isSynced,
		Shadow:    o.Shadow,
		Hosted:    o.Hosts != nil,
		Profiles:  func() ([]*profile.Profile, error) { return o.CopyProfiles(d.config.Load()) },
		Machine:   copied,
		Read:      read,
		PodFields: o.PodFields,
		Stopped:   d.stopped,
		Now:       time.Now,
	})
}

// Serve sets the function that returns the certificates of the endpoint, in DER. The lease
// names them, so that clients can verify the leader. Call Serve before Run.
func (d *Daemon) Serve(certificates func() [][]byte) {
	if d.lease != nil {
		d.lease.Serve(certificates)
	}
}
