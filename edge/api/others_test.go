package api

import (
	"testing"
	"time"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/edge/decode"
	"github.com/berth-scheduler/berth/edge/records"
)

// Pods that ask for another scheduler are no part of the queue. The summary counts them, pending lists them
// in a place of their own, and find finds them.
func TestPodsOfOtherSchedulers(t *testing.T) {
	f := stuck(t)
	var s Summary
	if f.get("summary", &s); s.Others != nil {
		t.Errorf("%+v", s.Others)
	}
	for name, scheduler := range map[string]string{"late": "My-Schduler", "early": "other"} { // any order: each by itself
		p := newPod(name, "1", start)
		if name == "late" {
			p.CreationTimestamp.Time = f.now
		}
		p.Spec.SchedulerName = scheduler
		f.step(machine.PodSet{Pod: decode.Pod(p)})
	}
	f.get("summary", &s)
	if o := s.Others; o == nil || o.Pods != 2 || len(o.Schedulers) != 2 || o.Schedulers[0] != (records.OtherScheduler{Name: "My-Schduler", Pods: 1}) || s.Queue.Active+s.Queue.Unschedulable != 1 {
		t.Errorf("%+v, %+v", o, s.Queue)
	}
	for query, want := range map[string][]string{"": {"shop/early", "shop/late"}, "&reason=my-s": {"shop/late"}, "&namespace=bank": {}, "&limit=1": {"shop/early"}} { // any order
		var list PendingList
		f.get("pending?place=other%20scheduler"+query, &list)
		if len(list.Pods) != len(want) {
			t.Errorf("%s: %+v", query, list)
			continue
		}
		for i, p := range list.Pods {
			if p.Pod != want[i] || p.Place != "other scheduler" || p.Created == nil || p.Message == "" {
				t.Errorf("%s: %+v", query, p)
			}
		}
	}
	fresh := newPod("fresh", "1", time.Time{})
	fresh.Spec.SchedulerName = "other"
	f.step(machine.PodSet{Pod: decode.Pod(fresh)})
	var list PendingList
	if f.get("pending?place=other%20scheduler&limit=1", &list); list.Pods[0].Pod != "shop/fresh" || !list.Pods[0].Since.Equal(f.now) {
		t.Errorf("a pod of which it is not known when it was made: %+v", list)
	}
	if f.get("pending", &list); list.Total != 1 {
		t.Errorf("the queue: %+v", list)
	}
	if code, _ := f.get("pending?place=active,other%20scheduler", nil); code != 400 {
		t.Errorf("with another place: %d", code)
	}
	var found Found
	if f.get("find?q=early", &found); len(found.Pods) != 1 {
		t.Errorf("%+v", found)
	}
}
