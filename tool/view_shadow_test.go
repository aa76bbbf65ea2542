package tool

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	basemetrics "k8s.io/component-base/metrics"
	"k8s.io/klog/v2"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/plugins"
	"github.com/berth-scheduler/berth/core/profile"
	"github.com/berth-scheduler/berth/edge/api"
	"github.com/berth-scheduler/berth/edge/config"
	"github.com/berth-scheduler/berth/edge/config/features"
	"github.com/berth-scheduler/berth/edge/decode"
	"github.com/berth-scheduler/berth/edge/records"
	"github.com/berth-scheduler/berth/edge/shadow"
)

// shadowed is a shadow that is told of a cluster, and served as a daemon serves it.
type shadowed struct {
	testing.TB
	mu     sync.Mutex // stands for the loop
	m      *machine.Machine
	shadow *shadow.Shadow
	now    time.Time
	url    string
}

func newShadowed(t *testing.T) *shadowed {
	t.Helper()
	c := config.Default()
	profiles, err := profile.BuildAll(config.Profiles(c), plugins.Registry(features.Plugins(features.New())))
	if err != nil {
		t.Fatal(err)
	}
	s := &shadowed{TB: t, now: time.Now()}
	s.m = machine.New(machine.Options{Profiles: profiles, Seed: 1, Workers: 1, InitialBackoff: time.Second, MaxBackoff: time.Second, MaxUnschedulable: time.Minute})
	s.shadow = shadow.New(s.m, shadow.Options{Logger: klog.Background(), Config: c, Register: basemetrics.NewKubeRegistry().MustRegister, Synced: func() bool { return true }})
	r := records.New(0)
	daemon := httptest.NewTLSServer(api.Handler(api.Options{
		Recorder: r, History: records.NewHistory(r), Shadow: true, Now: time.Now, Stopped: t.Context().Done(),
		Leads: func() bool { return true }, Synced: func() bool { return true }, Leader: func() string { return "berth-1" },
		Inspect: func(_ context.Context, look func(*machine.Machine)) error {
			s.mu.Lock()
			defer s.mu.Unlock()
			look(s.m)
			return nil
		},
		Differences: s.shadow.Differences,
		Status: func(context.Context) api.Status {
			s.mu.Lock()
			defer s.mu.Unlock()
			choices, placeable := s.shadow.Found()
			found := &api.ShadowStatus{Choices: []api.Choices{}, Placeable: placeable}
			for c, n := range choices { // any order: the test counts one
				found.Choices = append(found.Choices, api.Choices{Result: string(c.Result), Plugin: c.Plugin, Profile: c.Profile, Pods: n})
			}
			return api.Status{Identity: "berth-1", Leads: true, Synced: true, Shadow: found}
		},
	}))
	t.Cleanup(daemon.Close)
	t.Cleanup(daemon.CloseClientConnections)
	s.url = daemon.URL
	return s
}

// hears tells the shadow of a change.
func (s *shadowed) hears(e machine.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shadow.Step(s.now, e)
}

// after lets time pass for the shadow.
func (s *shadowed) after(d time.Duration) {
	s.now = s.now.Add(d)
	s.hears(machine.Tick{})
}

func (s *shadowed) node(name string, taints ...v1.Taint) {
	n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}, Spec: v1.NodeSpec{Taints: taints}}
	n.Status.Allocatable = v1.ResourceList{v1.ResourceCPU: resource.MustParse("4"), v1.ResourceMemory: resource.MustParse("16Gi"), v1.ResourcePods: resource.MustParse("110")}
	s.hears(machine.NodeSet{Node: decode.Node(n)})
}

// bound plays the scheduler that decides, beside which the shadow runs: a pod is made and waits, and
// then that scheduler binds it to the node.
func (s *shadowed) bound(name, node string) {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name)}}
	p.Spec.SchedulerName = v1.DefaultSchedulerName
	p.Spec.Containers = []v1.Container{{Name: "c", Resources: v1.ResourceRequirements{Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse("1")}}}}
	s.hears(machine.PodSet{Pod: decode.Pod(p)})
	p = p.DeepCopy()
	p.Spec.NodeName = node
	s.hears(machine.PodSet{Pod: decode.Pod(p)})
}

// What a live shadow finds comes to the page by its endpoint: how the choices compare, and each
// difference with its reason, once it is reported.
func TestShadowInABrowser(t *testing.T) {
	c := startChromium(t)
	s := newShadowed(t)
	s.node("free")
	s.node("tainted", v1.Taint{Key: "dedicated", Value: "gpu", Effect: v1.TaintEffectNoSchedule})
	s.node("avoided", v1.Taint{Key: "slow", Effect: v1.TaintEffectPreferNoSchedule})
	c.size(1280, 900, "light")
	c.enter(view(t, "--daemon", s.url, "--insecure-skip-tls-verify", "--kubeconfig", kubeconfigFor(t, s.url)))
	c.says("This is a shadow")
	c.says("The scheduler in charge has bound no pod since the shadow began.")
	c.says("No difference was found so far.")
	s.bound("right", "free")
	s.bound("wrong", "tainted")
	s.bound("lower", "avoided")
	s.after(time.Minute)
	s.after(time.Minute)
	c.route("#/nodes")
	c.route("#/")
	c.until(`document.querySelector("table[aria-label=Differences]")`)
	for _, want := range []string{"shop/wrong tainted free a node that Berth would reject: TaintToleration: node(s) had untolerated taint", "shop/lower avoided free a lower score, 154 instead of 442: TaintToleration 0 instead of 100 × 3"} {
		c.tableSays("Differences", want)
	}
	for _, want := range []string{"1 the same node default-scheduler", "1 a node that Berth would reject TaintToleration default-scheduler", "1 a lower score TaintToleration default-scheduler"} {
		c.tableSays("Choices", want)
	}
	c.eval(`document.querySelector("table[aria-label=Differences] a[href='#/node/tainted']").click()`)
	c.until(`location.hash === "#/node/tainted" && document.querySelector("table[aria-label=Resources]")`)
	c.quiet()
}

// tableSays fails the test if the table has no row with the text.
func (c *chromium) tableSays(table, text string) {
	c.Helper()
	rows := c.eval(fmt.Sprintf(`[...document.querySelectorAll("table[aria-label=%s] tr")].map(r => r.innerText.replace(/\s+/g, " ").trim()).join("\n")`, table))
	if !strings.Contains(rows, text) {
		c.Errorf("no %q in\n%s", text, rows)
	}
}
