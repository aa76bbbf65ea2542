package tool

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
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
	dir := t.TempDir()
	for name, text := range map[string]string{"config.yaml": tierConfig, "tiers.yaml": tiers} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	var b bytes.Buffer
	cmd := newCommand("berth", Build{Plugins: &sim.Plugins{Hosted: hosted}})
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
