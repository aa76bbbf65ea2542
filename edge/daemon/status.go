package daemon

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/edge/api"
	"github.com/berth-scheduler/berth/edge/shadow"
)

// leader is who leads, as far as this process has seen.
func (d *Daemon) leader() string {
	if d.lease == nil {
		return d.identity
	}
	return d.lease.Holder()
}

// status returns the status of the process, without queue and rates. It waits up to refreshTime for
// the scheduling loop; if the loop does not answer, Hosted and Shadow stay empty.
func (d *Daemon) status(ctx context.Context) api.Status {
	s := api.Status{Identity: d.identity, Started: d.started.UTC(), Leads: d.inCharge(), Leader: d.leader(), Synced: d.isSynced(),
		Configuration: d.configuration(), Watches: d.watches()}
	if v := d.watcher.ServerVersion(); v.Git != "" {
		s.APIServer = &api.APIServer{Version: v.Git, Supported: v.Supported()}
	}
	if d.lease != nil {
		l := d.config.Load().LeaderElection
		s.Lease = l.ResourceNamespace + "/" + l.ResourceName
	}
	limited, cancel := context.WithTimeout(ctx, refreshTime)
	defer cancel()
	_ = d.Inspect(limited, func(m *machine.Machine) { // else the loop does not answer, and the caller says so
		s.Hosted = hosted(m)
		if d.shadowed != nil {
			s.Shadow = shadowStatus(d.shadowed)
		}
	})
	return s
}

// configuration is what is in force, and what was refused since it is.
func (d *Daemon) configuration() api.Configuration {
	c := d.config.Load()
	out := api.Configuration{Since: d.started.UTC(), Extenders: len(c.Extenders), QPS: c.ClientConnection.QPS, Reloadable: !d.shadow && !d.recorded}
	for i := range c.Profiles {
		out.Profiles = append(out.Profiles, *c.Profiles[i].SchedulerName)
	}
	if at := d.applied.Load(); at != nil {
		out.Since = at.UTC()
	}
	if r := d.reloaded.Load(); r != nil && r.err != nil {
		out.Refused = &api.Refusal{Time: r.at.UTC(), Reason: r.err.Error()}
	}
	return out
}

// watches say how it stands with what the process watches.
func (d *Daemon) watches() []api.Watch {
	watches := []api.Watch{}
	for _, w := range d.watcher.Watches() {
		out := api.Watch{Resource: w.Resource, Synced: w.Synced}
		if !w.Heard.IsZero() {
			heard := w.Heard.UTC().Round(time.Millisecond)
			out.Heard = &heard
		}
		if w.Err != nil {
			out.Problem = w.Missing.String()
		}
		watches = append(watches, out)
	}
	return watches
}

// hosted are the plugins of all profiles that are written against kube-scheduler's framework.
func hosted(m *machine.Machine) []string {
	names := map[string]bool{}
	for _, name := range m.Profiles() {
		for _, p := range m.Profile(name).Plugins { // any order: sorted below
			if p.Hosted != nil {
				names[p.Name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// shadowStatus is what the shadow found, the most frequent first.
func shadowStatus(s *shadow.Shadow) *api.ShadowStatus {
	choices, placeable := s.Found()
	out := &api.ShadowStatus{Choices: []api.Choices{}, Placeable: placeable}
	for c, n := range choices { // any order: sorted below
		out.Choices = append(out.Choices, api.Choices{Result: string(c.Result), Plugin: c.Plugin, Profile: c.Profile, Pods: n})
	}
	slices.SortFunc(out.Choices, func(a, b api.Choices) int {
		return cmp.Or(cmp.Compare(b.Pods, a.Pods), cmp.Compare(a.Result, b.Result), cmp.Compare(a.Plugin, b.Plugin), cmp.Compare(a.Profile, b.Profile))
	})
	return out
}
