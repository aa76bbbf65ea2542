package tool

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/berth-scheduler/berth/edge/compat"
	"github.com/berth-scheduler/berth/examples/tier"
	"github.com/berth-scheduler/berth/sim"
)

const tierConfig = `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins: {multiPoint: {enabled: [{name: Tier}]}}
`

// tiers is a node of tier gold that is full, one of tier tin that is empty, and a pod of
// tier gold that waits.
const tiers = `apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Node, metadata: {name: gold, labels: {example.com/tier: gold}}, status: {allocatable: {cpu: "1", memory: 1Gi, pods: "10"}}}
- {apiVersion: v1, kind: Node, metadata: {name: tin, labels: {example.com/tier: tin}}, status: {allocatable: {cpu: "4", memory: 4Gi, pods: "10"}}}
- {apiVersion: v1, kind: Pod, metadata: {name: old, namespace: default, uid: old}, spec: {nodeName: gold, containers: [{name: c, image: i, resources: {requests: {cpu: "1"}}}]}, status: {phase: Running}}
- {apiVersion: v1, kind: Pod, metadata: {name: p, namespace: default, uid: p, labels: {example.com/tier: gold}}, spec: {containers: [{name: c, image: i, resources: {requests: {cpu: "1"}}}]}, status: {phase: Pending}}
`

// with runs a tool that was built with the hosted plugins on the cluster of tiers.
func with(t *testing.T, hosted map[string]compat.PluginFactory, call string) (status int, out string) {
	t.Helper()
	return withPlugins(t, &sim.Plugins{Hosted: hosted}, tiers, call)
}

func withPlugins(t *testing.T, plugins *sim.Plugins, cluster, call string) (status int, out string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"config.yaml": tierConfig, "tiers.yaml": cluster} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	var b bytes.Buffer
	cmd := newCommand("berth", Build{Plugins: plugins})
	status = execute(cmd, strings.Fields(call), strings.NewReader(""), &b, &b)
	return status, b.String()
}

// A tool with a hosted plugin asks it: its rejection keeps the pod off the empty node, in
// each command that simulates.
func TestHostedPluginIsAsked(t *testing.T) {
	for call, want := range map[string]struct {
		status int
		text   string
	}{
		"simulate -f tiers.yaml --config config.yaml":                                                  {exitUnplaced, "1 node(s) are of another tier"},
		"why -f tiers.yaml --config config.yaml p":                                                     {exitWaiting, "node(s) are of another tier"},
		"what-if -f tiers.yaml --config config.yaml evict pod/old":                                     {exitPlaced, "tin"},
		"fit -f tiers.yaml --config config.yaml --pod p":                                               {exitUnplaced, "another tier"},
		"fit -f tiers.yaml --config config.yaml --nodes-like like=gold,label:example.com/tier=gold":    {exitPlaced, "1"},
		"config check config.yaml":                                                                     {exitPlaced, "nothing is wrong"},
		"simulate -f tiers.yaml --config config.yaml --plugins Tier":                                   {exitInvalid, "--plugins: this tool has Tier; leave it out"},
		"simulate -f tiers.yaml --config config.yaml --explain -o json":                                {exitUnplaced, "another tier"},
		"what-if -f tiers.yaml --config config.yaml cordon gold":                                       {exitPlaced, ""},
		"what-if -f tiers.yaml --config config.yaml add-nodes 1 like=gold,label:example.com/tier=gold": {exitPlaced, "gold-copy-1"},
		"simulate -f tiers.yaml --config config.yaml --views=false":                                    {exitUnplaced, "1 node(s) are of another tier"},
	} {
		status, out := with(t, map[string]compat.PluginFactory{tier.Name: tier.New}, call)
		if status != want.status || !strings.Contains(out, want.text) {
			t.Errorf("%s: status %d, want %d and %q:\n%s", call, status, want.status, want.text, out)
		}
	}
}

// A tool that cannot ask a plugin of the configuration says so, and goes on where it was
// told that only the scheduler has it, or where the plugin cannot be made here.
func TestPluginThatIsNotAsked(t *testing.T) {
	failing := func(ctx context.Context, _ runtime.Object, h fwk.Handle) (fwk.Plugin, error) {
		_, err := h.ClientSet().Discovery().ServerVersion()
		return nil, err
	}
	panicking := func(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) { panic("oh") }
	for _, tt := range []struct {
		hosted map[string]compat.PluginFactory
		flags  string
		status int
		says   string
	}{
		{nil, "", exitInvalid, `MultiPointPlugin "Tier" does not exist; if your scheduler has it, build the tool with it`},
		{nil, " --plugins Tier", exitPlaced, "plugin Tier of the configuration is not asked here: this tool was not built with it; what it says of a pod is known of the last attempt alone"},
		{map[string]compat.PluginFactory{tier.Name: failing}, "", exitPlaced, "plugin Tier of the configuration is not asked here: Get \"http://offline.invalid/version\": " + compat.ErrOffline.Error()},
		{map[string]compat.PluginFactory{tier.Name: panicking}, "", exitPlaced, "plugin Tier of the configuration is not asked here: its factory panicked: oh"},
	} {
		status, out := with(t, tt.hosted, "simulate -f tiers.yaml --config config.yaml"+tt.flags)
		if status != tt.status || !strings.Contains(out, tt.says) {
			t.Errorf("%q: status %d, want %d and %q:\n%s", tt.flags, status, tt.status, tt.says, out)
		}
	}
}

// A plugin whose factory waits for an API server without end is left out once its time is up.
func TestPluginThatHangs(t *testing.T) {
	hanging := func(ctx context.Context, _ runtime.Object, _ fwk.Handle) (fwk.Plugin, error) {
		<-t.Context().Done()
		return nil, t.Context().Err()
	}
	plugins := &sim.Plugins{Hosted: map[string]compat.PluginFactory{tier.Name: hanging}, Timeout: time.Millisecond}
	status, out := withPlugins(t, plugins, tiers, "simulate -f tiers.yaml --config config.yaml")
	if says := "plugin Tier of the configuration is not asked here: its factory did not return within 1ms"; status != exitPlaced || !strings.Contains(out, says) {
		t.Errorf("status %d, want %d and %q:\n%s", status, exitPlaced, says, out)
	}
}

// Of a plugin that is not asked the pod's condition has the last word: the answer, which is that
// the pod fits, begins with it, and the exit status is not that of a pod that fits.
func TestLastWordOfAPlugin(t *testing.T) {
	waits := strings.Replace(tiers, "status: {phase: Pending}}", `status: {phase: Pending, conditions: [{type: PodScheduled, status: "False", reason: Unschedulable,
  message: "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) are of another tier."}]}}`, 1)
	status, out := withPlugins(t, &sim.Plugins{}, waits, "why -f tiers.yaml --config config.yaml --plugins Tier p")
	if says := "default/p waits, and the cluster said last: 0/2 nodes are available: 1 Insufficient cpu, 1 node(s) are of another tier."; status != exitWaiting || !strings.Contains(out, "\n"+says) {
		t.Errorf("status %d, want %d and %q first:\n%s", status, exitWaiting, says, out)
	}
}

// points is a plugin that records which of its extension points are called.
type points struct {
	tier.Plugin
	mu     sync.Mutex
	called map[string]bool
}

func (p *points) call(point string) *fwk.Status {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.called[point] = true
	return nil
}

func (p *points) PreFilter(context.Context, fwk.CycleState, *v1.Pod, []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	return nil, p.call("PreFilter")
}

func (p *points) PreFilterExtensions() fwk.PreFilterExtensions { return nil }

func (p *points) Filter(ctx context.Context, state fwk.CycleState, pod *v1.Pod, n fwk.NodeInfo) *fwk.Status {
	p.call("Filter")
	return p.Plugin.Filter(ctx, state, pod, n)
}

func (p *points) PostFilter(context.Context, fwk.CycleState, *v1.Pod, fwk.NodeToStatusReader) (*fwk.PostFilterResult, *fwk.Status) {
	p.call("PostFilter")
	return nil, fwk.NewStatus(fwk.Unschedulable, "nothing to do")
}

func (p *points) PreScore(context.Context, fwk.CycleState, *v1.Pod, []fwk.NodeInfo) *fwk.Status {
	return p.call("PreScore")
}

func (p *points) Score(ctx context.Context, state fwk.CycleState, pod *v1.Pod, n fwk.NodeInfo) (int64, *fwk.Status) {
	p.call("Score")
	return p.Plugin.Score(ctx, state, pod, n)
}

func (p *points) Reserve(context.Context, fwk.CycleState, *v1.Pod, string) *fwk.Status {
	return p.call("Reserve")
}

func (p *points) Unreserve(context.Context, fwk.CycleState, *v1.Pod, string) {}

func (p *points) Permit(context.Context, fwk.CycleState, *v1.Pod, string) (*fwk.Status, time.Duration) {
	return p.call("Permit"), 0
}

func (p *points) PreBindPreFlight(context.Context, fwk.CycleState, *v1.Pod, string) (*fwk.PreBindPreFlightResult, *fwk.Status) {
	return nil, p.call("PreBindPreFlight")
}

func (p *points) PreBind(context.Context, fwk.CycleState, *v1.Pod, string) *fwk.Status {
	return p.call("PreBind")
}

func (p *points) Bind(context.Context, fwk.CycleState, *v1.Pod, string) *fwk.Status {
	return p.call("Bind")
}

func (p *points) PostBind(context.Context, fwk.CycleState, *v1.Pod, string) { p.call("PostBind") }

// A simulation calls what decides, and nothing that binds: a pod that is placed, and one that
// fits nowhere. Informers of pods and nodes have those of the simulation, others nothing.
func TestPointsThatAreCalled(t *testing.T) {
	p := &points{called: map[string]bool{}}
	var nodes, pods, services []string
	factory := func(ctx context.Context, _ runtime.Object, h fwk.Handle) (fwk.Plugin, error) {
		informers := h.SharedInformerFactory().Core().V1()
		note := func(into *[]string) cache.ResourceEventHandler {
			return cache.ResourceEventHandlerFuncs{AddFunc: func(o any) {
				if m, err := meta.Accessor(o); err == nil {
					*into = append(*into, m.GetName())
				}
			}}
		}
		_, nodesErr := informers.Nodes().Informer().AddEventHandler(note(&nodes))
		_, podsErr := informers.Pods().Informer().AddEventHandler(note(&pods))
		_, servicesErr := informers.Services().Informer().AddEventHandler(note(&services))
		made, err := tier.New(ctx, nil, h)
		if err == nil {
			p.Plugin = *made.(*tier.Plugin)
		}
		return p, errors.Join(err, nodesErr, podsErr, servicesErr)
	}
	const more = `- {apiVersion: v1, kind: Service, metadata: {name: s, namespace: default}, spec: {selector: {a: b}}}
- {apiVersion: v1, kind: Pod, metadata: {name: q, namespace: default, uid: q}, spec: {containers: [{name: c, image: i}]}, status: {phase: Pending}}
`
	plugins := &sim.Plugins{Hosted: map[string]compat.PluginFactory{tier.Name: factory}}
	status, out := withPlugins(t, plugins, tiers+more, "simulate -f tiers.yaml --config config.yaml")
	got := slices.Sorted(maps.Keys(p.called))
	if want := []string{"Filter", "Permit", "PostFilter", "PreFilter", "PreScore", "Reserve", "Score"}; status != exitUnplaced || !slices.Equal(got, want) {
		t.Errorf("status %d, called %v, want %v:\n%s", status, got, want, out)
	}
	if !slices.Contains(nodes, "gold") || !slices.Contains(nodes, "tin") || !slices.Contains(pods, "old") || !slices.Contains(pods, "q") || len(services) > 0 {
		t.Errorf("informers have the nodes %v, the pods %v, the services %v", nodes, pods, services)
	}
}

// A hosted plugin sees the pods and nodes of a record as the record keeps them: played with
// it, the pods of a tier are on the node of that tier.
func TestHostedPluginSeesRecordedPods(t *testing.T) {
	c, r, dir := recordedDay(t, headerOf(t, morning))
	room := v1.ResourceList{v1.ResourceCPU: resource.MustParse("4"), v1.ResourceMemory: resource.MustParse("4Gi"), v1.ResourcePods: resource.MustParse("10")}
	meta := func(name, tier string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: name, UID: types.UID(name), Labels: map[string]string{"example.com/tier": tier}}
	}
	for _, name := range []string{"gold", "tin"} {
		c.Set(&v1.Node{ObjectMeta: meta(name, name), Status: v1.NodeStatus{Allocatable: room}})
	}
	for _, name := range []string{"p", "q"} {
		p := &v1.Pod{ObjectMeta: meta(name, "gold"), Spec: v1.PodSpec{SchedulerName: "default-scheduler", Containers: []v1.Container{{Name: "c", Image: "i",
			Resources: v1.ResourceRequirements{Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse("1")}}}}}, Status: v1.PodStatus{Phase: v1.PodPending}}
		p.Namespace = "default"
		c.Set(p)
	}
	c.Deliver()
	c.Settle()
	r.Close(context.Background())
	status, out := with(t, map[string]compat.PluginFactory{tier.Name: tier.New}, "compare recorded config.yaml -o wide --record "+dir)
	if status != exitPlaced || !strings.Contains(out, "1 pod on the same node, 1 elsewhere,") || !strings.Contains(out, ": tin, gold\n") {
		t.Errorf("status %d:\n%s", status, out)
	}
	if status, out = with(t, map[string]compat.PluginFactory{tier.Name: tier.New}, "replay --config config.yaml "+dir); status != exitPlaced || !strings.Contains(out, "gold") {
		t.Errorf("status %d:\n%s", status, out)
	}
}
