package api

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/berth-scheduler/berth/core/machine"
)

// sample takes a sample of the history, as the daemon does.
func (f *fixture) sample() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.options.History.Take(f.now, f.m.Queue().Counts())
}

// History has a column for each counter, which tell of each sample since a time.
func TestHistory(t *testing.T) {
	f := stuck(t)
	f.sample()
	f.pod("another", "1")
	f.step(machine.ScheduleOne{})
	f.sample()
	last := f.now
	var h History
	f.get("history", &h)
	first := utc(start.Add(7 * time.Second))
	if !reflect.DeepEqual(h.Times, []time.Time{*first, last}) || !slices.Equal(h.Attempts["Scheduled"], []int{1, 1}) || !slices.Equal(h.Attempts["Unschedulable"], []int{1, 0}) || len(h.Attempts) != 6 ||
		!slices.Equal(h.Bound, []int{1, 0}) || !slices.Equal(h.Evicted, []int{0, 0}) || !slices.Equal(h.Lost, []uint64{0, 0}) || h.Every != 5 ||
		!slices.Equal(h.Queue["unschedulable"], []int{1, 1}) || len(h.Queue) != 6 ||
		!reflect.DeepEqual(h.Binding, BindingTimes{[]int{1, 0}, []float64{1, 0}, []float64{1, 0}}) {
		t.Errorf("%+v", h)
	}
	h = History{}
	if f.get("history?since="+first.Format(time.RFC3339), &h); len(h.Times) != 1 || len(h.Queue["active"]) != 1 || len(h.Attempts["Error"]) != 1 {
		t.Errorf("since %s: %+v", first, h)
	}
}

// A process says what it can answer, whether it leads or not.
func TestCapabilities(t *testing.T) {
	f := stuck(t)
	f.sample()
	var c Capabilities
	f.get("capabilities", &c)
	all := []string{"status", "capabilities", "records", "pending", "summary", "history", "nodes", "node", "groups", "quotas", "find", "group", "watch", "why", "blockers", "why/all"}
	if !c.Leads || c.Version != "v0.9.0" || c.Kubernetes != "v1.37.2" || fmt.Sprint(c.Gates) != "map[SchedulerAsyncPreemption:false]" || !slices.Equal(c.Paths, all) ||
		c.RecordsSince == nil || !c.RecordsSince.Equal(start.Add(4*time.Second)) || c.HistorySince == nil || !c.HistorySince.Equal(f.now) {
		t.Errorf("%+v", c)
	}
	f.leads = false
	f.options.Hosted, f.options.Shadow = true, true
	f.serve()
	c = Capabilities{}
	if code, _ := f.get("capabilities", &c); code != 200 || c.Leads || !c.Shadow || !slices.Equal(c.Paths, append(all[:13:13], "shadow")) {
		t.Errorf("a follower with hosted plugins: %d %+v", code, c)
	}
}
