package api

import (
	"fmt"
	"testing"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/edge/decode"
)

// Pods that wait, pods that were placed, however long ago, and nodes are found by a part of their names.
// The answer is bounded, and says that there are more.
func TestFind(t *testing.T) {
	f := newFixture(t)
	for i := range 3 {
		f.step(machine.NodeSet{Node: decode.Node(pooled(fmt.Sprintf("web-node-%d", i), "a", "web"))})
	}
	for _, name := range []string{"web-1", "web-2", "db-1"} {
		f.step(machine.PodSet{Pod: decode.Pod(f.pod(name, "1").DeepCopy())})
		f.step(machine.ScheduleOne{})
	}
	f.step(machine.PodSet{Pod: decode.Pod(f.pod("web-large", "100").DeepCopy())})
	for question, want := range map[string]string{
		"q=web":             "[shop/web-1 shop/web-2 shop/web-large] [web-node-0 web-node-1 web-node-2] false",
		"q=b-1":             "[shop/db-1 shop/web-1] [] false",
		"q=shop/db":         "[shop/db-1] [] false",
		"q=node-1":          "[] [web-node-1] false",
		"q=nothing&limit=1": "[] [] false",
	} {
		var got Found
		if code, body := f.get("find?"+question, &got); code != 200 {
			t.Fatal(body)
		}
		if text := fmt.Sprint(got.Pods, " ", got.Nodes, " ", got.More); text != want {
			t.Errorf("%s: %s, want %s", question, text, want)
		}
	}
	var got Found
	if f.get("find?q=web&limit=2", &got); len(got.Pods) != 2 || len(got.Nodes) != 2 || !got.More {
		t.Errorf("at most 2: %+v", got)
	}
}
