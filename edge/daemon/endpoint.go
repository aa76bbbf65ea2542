package daemon

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"k8s.io/apiserver/pkg/server/healthz"

	"github.com/berth-scheduler/berth/edge/api"
	"github.com/berth-scheduler/berth/edge/kube"
	"github.com/berth-scheduler/berth/edge/metrics"
	"github.com/berth-scheduler/berth/edge/server"
)

// Endpoint is what is served of the daemon.
func (d *Daemon) Endpoint() server.Options {
	var checks, ready []healthz.HealthChecker
	if d.lease != nil {
		checks, ready = d.lease.Checks()
	}
	return server.Options{
		Healthz: checks,
		Livez:   []healthz.HealthChecker{d.watchdog},
		Readyz: append(ready[:len(ready):len(ready)], healthz.NewShutdownHealthz(d.stopped),
			healthz.NamedCheck("sched-handler-sync", func(*http.Request) error {
				if d.isSynced() {
					return nil
				}
				return errors.New("handlers are not fully synchronized: " + strings.Join(d.missing(), "; "))
			}),
			healthz.NamedCheck("leader-caught-up", func(*http.Request) error { return d.behind() })),
		Notices: []server.Notice{
			{Name: "missing", Read: d.missingNotice},
			{Name: "api-server", Read: d.versionNotice},
			{Name: "configuration", Read: d.reloadNotice},
		},
		Config:    d.config.Load,
		Refresh:   d.refresh,
		Resources: metrics.Resources(d.pods),
		Leads:     d.inCharge,
		Berth:     d.api,
		AboutPod:  api.AboutPod,
	}
}

// missing names the kinds whose objects are not known, and why.
func (d *Daemon) missing() []string { return named(d.watcher.Missing()) }

// missingNotice is what /readyz says of them.
func (d *Daemon) missingNotice() (phrase, reason string) {
	if missing := d.missing(); len(missing) > 0 {
		return "some kinds of objects cannot be listed", strings.Join(missing, "\n")
	}
	return "", ""
}

// versionNotice is what /readyz says of the API server's version.
func (d *Daemon) versionNotice() (phrase, reason string) {
	if v := d.watcher.ServerVersion(); !v.Supported() {
		return "the API server is of a version that this build does not support", fmt.Sprintf("%s; supported are %s", v.Git, kube.SupportedServers())
	}
	if err := d.watcher.VersionUnread(); err != nil {
		return "the version of the API server cannot be read", err.Error()
	}
	return "", ""
}

func named(missing []kube.Missing) []string {
	var names []string
	for _, m := range missing {
		names = append(names, m.String())
	}
	return names
}
