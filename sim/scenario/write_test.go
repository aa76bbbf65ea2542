package scenario

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/sim/generate"
)

// Whatever is written reads back as the object that it was, in the eyes of a
// scheduler.
func TestWriteReadsBack(t *testing.T) {
	for _, mix := range generate.Mixes() {
		for seed := range uint64(10) {
			w, err := generate.Cluster(mix, seed)
			if err != nil {
				t.Fatal(err)
			}
			var text strings.Builder
			for _, n := range w.Nodes {
				text.WriteString(WriteNode(n))
			}
			pods := slices.Concat(w.Bound, w.Pending)
			for _, p := range pods {
				text.WriteString(WritePod(p))
			}
			got := read(t, text.String())
			for _, n := range w.Nodes {
				if got := got.nodes[n.Name]; got == nil || !reflect.DeepEqual(seenNode(got), seenNode(n)) {
					t.Fatalf("%s, seed %d: %s is not the node it was", mix, seed, WriteNode(n))
				}
			}
			for _, p := range pods {
				if got := got.pods[p.Namespace+"/"+p.Name]; got == nil || !reflect.DeepEqual(seenPod(got), seenPod(p)) {
					t.Fatalf("%s, seed %d: %s is not the pod it was", mix, seed, WritePod(p))
				}
			}
		}
	}
}

// Lines that a person would write are written as that person would.
func TestWriteLines(t *testing.T) {
	for _, text := range []string{
		"node a\n",
		"node a cpu=2 -pods label:zone=b taint=team=x:NoSchedule taint=spot:PreferNoSchedule unschedulable\n",
		"node a example.com/gpu=4 annotation:k=v condition:Ready=True image=docker.io/library/x:1@1000\n",
		"pod web\n",
		"pod ns/web cpu=500m memory=1Gi port=10.0.0.1:80/UDP image=x:1 label:app=web priority=-5 never-preempts gate=g\n",
		"pod web selector:disk=ssd \"require=gen>2,zone in (a,b)\" \"require=!gpu\" \"prefer=10 zone notin (a)\" toleration=team=x:NoSchedule toleration=spot\n",
		"pod web bound=a started=2030-01-31T12:00:00Z\n",
		"pod web nominated=a scheduler=mine terminating\n",
	} {
		p := read(t, text)
		got := ""
		for _, n := range p.nodes {
			got += WriteNode(n)
		}
		for _, pod := range p.pods {
			got += WritePod(pod)
		}
		if want := strings.ReplaceAll(text, `"require=!gpu"`, "require=!gpu"); got != want {
			t.Errorf("got  %swant %s", got, want)
		}
	}
}

// What attributes cannot say is written as YAML.
func TestWriteYAML(t *testing.T) {
	n := newNode("a")
	n.Status.Images = []v1.ContainerImage{{Names: []string{"x:1", "x:latest"}, SizeBytes: 5}}
	p := newPod("web")
	p.Spec.InitContainers = []v1.Container{{Name: "first"}}
	for _, text := range []string{WriteNode(n), WritePod(p)} {
		if !strings.HasPrefix(text, "object\n  ") || strings.Contains(text, "nodeInfo") {
			t.Errorf("got %s", text)
		}
	}
}

func read(t *testing.T, text string) *play {
	t.Helper()
	s, err := Parse("f.txt", text)
	if err != nil {
		t.Fatal(err)
	}
	p := newPlay(Engine{Seed: 1, Workers: 1})
	for i := range s.Steps {
		if err := p.do(&s.Steps[i]); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
	return p
}
