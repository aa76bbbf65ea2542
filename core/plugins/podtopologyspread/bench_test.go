package podtopologyspread

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/plugins/feature"
	"github.com/berth-scheduler/berth/core/table"
)

// BenchmarkPodChange is what one placement costs a class of pods: its counts
// are brought up to date and the cells asked.
func BenchmarkPodChange(b *testing.B) {
	for name, pod := range map[string]*object.Pod{
		"zone": podWith(web(v1.LabelTopologyZone)), "host": podWith(web(v1.LabelHostname)),
		"both": podWith(web(v1.LabelHostname), web(v1.LabelTopologyZone)),
	} {
		b.Run(name, func(b *testing.B) {
			p, err := New(nil, feature.Features{MatchLabelKeysInPodTopologySpread: true})
			if err != nil {
				b.Fatal(err)
			}
			tb := table.New()
			for i := range 5000 {
				tb.SetNode(nodeIn(fmt.Sprint("n", i), fmt.Sprint(i%3)))
			}
			in := &framework.Input{Table: tb, Pod: pod, State: p.PreFilter(tb, pod).State}
			sync(in)
			placeWebPods(tb, "n7", 1)
			placed := tb.Pods(7)[0].Pod
			b.ReportAllocs()
			cell := make([]int64, 1)
			for i := 0; b.Loop(); i++ {
				r := table.Row(i % 5000)
				tb.AddPod(placed, tb.Name(r)) // it moves: two entries of the journal
				sync(in)
				cells(in, in.Table.All()[r:r+1], cell)
				verdict(in, cell[0])
			}
		})
	}
}

// BenchmarkPart is what every decision pays to name its class.
func BenchmarkPart(b *testing.B) {
	p, err := New(nil, feature.Features{MatchLabelKeysInPodTopologySpread: true})
	if err != nil {
		b.Fatal(err)
	}
	tb := table.New()
	plain := &object.Pod{Namespace: "a", Labels: map[string]string{"app": "web", "pod": "1"}}
	run := func(name string, pod *object.Pod) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				p.Sign(nil, tb, pod)
			}
		})
	}
	run("plain", plain)
	run("own", podWith(web(v1.LabelHostname)))
	tb.SelectorOwners().Set(&object.SelectorOwner{Kind: object.Service, Namespace: "a", Name: "web", Labels: map[string]string{"app": "web"}, Key: "app=web"})
	run("service", plain)
}
