package daemon

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/profile"
	"github.com/berth-scheduler/berth/core/recovered"
	"github.com/berth-scheduler/berth/edge/config"
	"github.com/berth-scheduler/berth/edge/logs"
)

// Make makes what a configuration asks for: what it says after defaults and
// flags, and its profiles. It refuses what a start would refuse.
type Make func() (*config.Config, []*profile.Profile, error)

// contained is Make, where a panic is an error: of a plugin's factory, say.
func (m Make) contained() (c *config.Config, profiles []*profile.Profile, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = recovered.From("making the configuration", r).WithStack()
		}
	}()
	return m()
}

// reload is how the last try to take over a configuration ended.
type reload struct {
	at  time.Time
	err error // why the one before stays in effect
}

func (r *reload) String() string {
	if r.err != nil {
		return fmt.Sprintf("configuration refused at %s, the previous one stays in effect: %v", r.at.UTC().Format(time.RFC3339), r.err)
	}
	return "configuration reloaded at " + r.at.UTC().Format(time.RFC3339)
}

// Reload has the scheduler take over another configuration between two cycles, as
// a whole or not at all. The log, the metrics and /readyz/configuration say which.
// It is for one caller at a time.
func (d *Daemon) Reload(ctx context.Context, make Make) error {
	err := d.takeOver(ctx, make)
	now := time.Now()
	d.reloaded.Store(&reload{now, err})
	if err == nil {
		d.applied.Store(&now)
	}
	d.metrics.Reloaded(err == nil)
	if err != nil {
		d.logger.Error(err, "Failed to reload the configuration; the previous one stays in effect")
	} else {
		d.logger.Info("Reloaded the configuration")
	}
	return err
}

func (d *Daemon) takeOver(ctx context.Context, make Make) error {
	c, profiles, err := make.contained()
	if err != nil {
		return err
	}
	if err := d.refusal(c, profiles); err != nil {
		return err
	}
	if err := d.time(ctx, profiles); err != nil {
		return err
	}
	d.loop.Post(machine.Reconfigured{
		Profiles: profiles, Workers: workers(c),
		InitialBackoff: time.Duration(*c.PodInitialBackoffSeconds) * time.Second,
		MaxBackoff:     time.Duration(*c.PodMaxBackoffSeconds) * time.Second,
	})
	if err := d.loop.Inspect(ctx, func() {}); err != nil { // it is applied
		return err
	}
	logs.Started(d.logger, profiles, nil)
	d.config.Store(c)
	d.profiles = profiles
	return nil
}

// time has the plugins of other profiles timed.
func (d *Daemon) time(ctx context.Context, profiles []*profile.Profile) error {
	d.refreshing.Lock()
	defer d.refreshing.Unlock()
	return d.loop.Inspect(ctx, func() { d.metrics.Time(profiles) })
}

// refusal says why a configuration that is good takes a restart.
func (d *Daemon) refusal(c *config.Config, profiles []*profile.Profile) error {
	if d.shadow {
		return errors.New("a shadow cannot reload the configuration; restart it")
	}
	if d.recorded {
		return errors.New("a record holds one configuration, so it cannot be reloaded with --record-to; restart the scheduler")
	}
	if names := config.RestartNeeded(d.config.Load(), c); names != nil {
		return fmt.Errorf("a change of %s needs a restart", strings.Join(names, ", "))
	}
	for i, p := range profiles { // as many, of the same names
		if !reflect.DeepEqual(p.Groups, d.profiles[i].Groups) {
			return errors.New("a change of Coscheduling, or of its labels, needs a restart: pods stay in the groups that they are in")
		}
	}
	for _, kind := range profile.Reads(profiles) {
		if !slices.Contains(d.watched, kind) {
			return fmt.Errorf("a plugin that reads %v was not enabled at the start, and they are not watched; restart the scheduler", kind)
		}
	}
	return nil
}

// workers is how many cores one decision may use.
func workers(c *config.Config) int { return min(int(*c.Parallelism), runtime.GOMAXPROCS(0)) }

// reloadNotice is what /readyz says of the last reload.
func (d *Daemon) reloadNotice() (phrase, reason string) {
	switch r := d.reloaded.Load(); {
	case r == nil:
		return "", ""
	case r.err != nil:
		return "configuration refused, the previous one stays in effect", r.String()
	default:
		return "configuration reloaded", r.String()
	}
}
