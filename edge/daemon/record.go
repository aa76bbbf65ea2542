package daemon

import (
	"context"
	"fmt"
	"time"

	basemetrics "k8s.io/component-base/metrics"
	"sigs.k8s.io/yaml"

	"github.com/berth-scheduler/berth/edge/config"
	"github.com/berth-scheduler/berth/edge/loop"
	"github.com/berth-scheduler/berth/edge/recording"
)

// closeRecordTime is how long the end waits for the record to be written.
const closeRecordTime = 5 * time.Second

// startRecord begins a record of what the machine is told.
func (d *Daemon) startRecord(o *Options) error {
	if o.Record == nil {
		return nil
	}
	r := *o.Record
	r.Logger = o.Logger.WithName("record")
	r.Header.Source, r.Header.Seed, r.Header.MaxUnschedulable = recording.Scheduler, o.Seed, o.MaxUnschedulable
	r.Source = d.machine
	var err error
	if r.Header.Config, err = recordedConfig(o.Config); err != nil {
		return err
	}
	if d.recorder, err = recording.Start(r); err != nil {
		return fmt.Errorf("--record-to: %w", err)
	}
	if o.Register != nil {
		d.recordMetrics = newRecordMetrics(o.Register)
	}
	objects := recording.NewObjects(r.Names)
	d.watcher.Record(objects.Attach)
	d.executor.Record(objects.Attach)
	return nil
}

// recordedConfig is the configuration without what is nobody's business: who may
// read a record may not read the keys to the cluster and its extenders.
func recordedConfig(c *config.Config) (string, error) {
	kept := config.Redacted(c)
	kept.ClientConnection.Kubeconfig = ""
	for i := range kept.Extenders {
		kept.Extenders[i].TLSConfig = nil
	}
	text, err := yaml.Marshal(kept)
	return string(text), err
}

// recordStep takes a step into the record.
func (d *Daemon) recordStep(s loop.Step) {
	if d.recorder == nil {
		return
	}
	step := recording.Step{Now: s.Now, Event: s.Event, Effects: s.Effects}
	if s.Panicked != nil {
		step.Event, step.Panicked = s.Panicked, true
	}
	d.recorder.Observe(step)
}

// endRecord writes what is left of the record.
func (d *Daemon) endRecord() {
	if d.recorder != nil {
		within(closeRecordTime, func(ctx context.Context) { d.recorder.Close(ctx) })
	}
}

// recordMetrics are what a recorder counts.
type recordMetrics struct {
	entries, lost, errors *basemetrics.Counter
	last                  recording.Counters
}

func newRecordMetrics(register func(...basemetrics.Registerable)) *recordMetrics {
	counter := func(name, help string) *basemetrics.Counter {
		return basemetrics.NewCounter(&basemetrics.CounterOpts{Subsystem: "berth_record", Name: name, StabilityLevel: basemetrics.ALPHA, Help: help})
	}
	m := &recordMetrics{
		entries: counter("entries_total", "Steps of the scheduler that were recorded (--record-to)."),
		lost:    counter("lost_total", "Steps that are missing in the record, as the disk was full or too slow."),
		errors:  counter("errors_total", "Errors that made a gap in the record."),
	}
	register(m.entries, m.lost, m.errors)
	return m
}

// refreshRecord brings the metrics up to date.
func (d *Daemon) refreshRecord() {
	if m := d.recordMetrics; m != nil {
		c := d.recorder.Counters()
		m.entries.Add(float64(c.Entries - m.last.Entries))
		m.lost.Add(float64(c.Lost - m.last.Lost))
		m.errors.Add(float64(c.Errors - m.last.Errors))
		m.last = c
	}
}
