package compat_test

import (
	"context"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/berth-scheduler/berth/edge/compat"
	. "github.com/berth-scheduler/berth/scheduler/schedulertest"
)

// elsewhere are methods of Handle that other tests are about.
var elsewhere = map[string]string{
	"IterateOverWaitingPods": "TestGangByPermit", "GetWaitingPod": "TestCancelBeforePreBind", "RejectWaitingPod": "TestHandleInAFactory",
	"GetPodInPreBind": "TestPreemptionCancelsPreBind", "Activate": "TestActivate",
	"RunPreScorePlugins": "TestRunScorePluginsInOrder", "RunScorePlugins": "TestRunScorePluginsInOrder",
	"RunFilterPlugins": "TestRunFilterPluginsInOrder", "RunPreFilterExtensionRemovePod": "TestQuotaPreempts",
	"SharedDRAManager": "TestAllocationsOfBerth and TestDeviceTaintRules",
	"AddNominatedPod":  "TestNominator", "UpdateNominatedPod": "TestNominator", "DeleteNominatedPodIfExists": "TestNominator",
	"NominatedPodsForNode": "TestNominator", "PodGroupManager": "TestPodGroups",
	"RunReservePluginsReserve": "TestRunReservePlugins", "RunReservePluginsUnreserve": "TestRunReservePlugins",
}

// methods is, by method of Handle, whether it does what it says, in the first Filter call
// for the pod "p" on the node "a", where the pod "old" is.
var methods = map[string]func(h fwk.Handle, state fwk.CycleState, p *v1.Pod, n fwk.NodeInfo) bool{
	"SnapshotSharedLister": func(h fwk.Handle, _ fwk.CycleState, _ *v1.Pod, n fwk.NodeInfo) bool {
		list, err := h.SnapshotSharedLister().NodeInfos().List()
		one, err2 := h.SnapshotSharedLister().NodeInfos().Get("a")
		_, none := h.SnapshotSharedLister().NodeInfos().Get("no-such-node")
		return err == nil && len(list) == 1 && err2 == nil && one == n && none != nil && !h.SnapshotSharedLister().StorageInfos().IsPVCUsedByPods("default/c")
	},
	"MutableSnapshotSharedLister": func(h fwk.Handle, _ fwk.CycleState, p *v1.Pod, n fwk.NodeInfo) bool {
		l := h.MutableSnapshotSharedLister()
		one, err := l.NodeInfos().Get("a")
		changed := l.StartMutations() == nil || l.EndMutations() == nil ||
			l.AddPod(n.GetPods()[0], "a") == nil || l.RemovePod(klog.Background(), n.GetPods()[0].GetPod(), "a") == nil
		return err == nil && one == n && !changed
	},
	"AddPodInPreBind": func(h fwk.Handle, _ fwk.CycleState, _ *v1.Pod, _ fwk.NodeInfo) bool {
		ctx, cancel := context.WithCancelCause(context.Background())
		h.AddPodInPreBind("x", cancel)
		defer h.RemovePodInPreBind("x")
		return h.GetPodInPreBind("x").CancelPod("why") && context.Cause(ctx).Error() == "why" && !h.GetPodInPreBind("x").MarkPrebound()
	},
	"RemovePodInPreBind": func(h fwk.Handle, _ fwk.CycleState, _ *v1.Pod, _ fwk.NodeInfo) bool {
		_, cancel := context.WithCancelCause(context.Background())
		h.AddPodInPreBind("x", cancel)
		marked := h.GetPodInPreBind("x").MarkPrebound() && !h.GetPodInPreBind("x").CancelPod("too late")
		h.RemovePodInPreBind("x")
		return marked && h.GetPodInPreBind("x") == nil
	},
	"ClientSet": func(h fwk.Handle, _ fwk.CycleState, p *v1.Pod, _ fwk.NodeInfo) bool {
		got, err := h.ClientSet().CoreV1().Pods(p.Namespace).Get(context.Background(), p.Name, metav1.GetOptions{})
		return err == nil && got.UID == p.UID
	},
	"KubeConfig": func(h fwk.Handle, _ fwk.CycleState, _ *v1.Pod, _ fwk.NodeInfo) bool { return h.KubeConfig() == nil }, // TestKubeConfigIsACopy
	"EventRecorder": func(h fwk.Handle, _ fwk.CycleState, p *v1.Pod, _ fwk.NodeInfo) bool {
		h.EventRecorder().WithLogger(klog.Background()).Eventf(p, nil, v1.EventTypeNormal, "Reason", "Action", "note")
		return true // the event is looked for below
	},
	"SharedInformerFactory": func(h fwk.Handle, _ fwk.CycleState, p *v1.Pod, _ fwk.NodeInfo) bool {
		pods, err := h.SharedInformerFactory().Core().V1().Pods().Lister().List(labels.Everything())
		return err == nil && len(pods) == 2
	},
	"SharedCSIManager": func(h fwk.Handle, _ fwk.CycleState, _ *v1.Pod, _ fwk.NodeInfo) bool {
		list, err := h.SharedCSIManager().CSINodes().List()
		one, err2 := h.SharedCSIManager().CSINodes().Get("a")
		return err == nil && len(list) == 1 && err2 == nil && one.Name == "a"
	},
	"RunFilterPluginsWithNominatedPods": func(h fwk.Handle, state fwk.CycleState, p *v1.Pod, n fwk.NodeInfo) bool {
		fits := h.RunFilterPluginsWithNominatedPods(context.Background(), state, p, n).IsSuccess()
		big := Pod("big")
		big.Status.NominatedNodeName = "a"
		big.Spec.Containers[0].Ports = []v1.ContainerPort{{HostPort: 80, ContainerPort: 80}}
		wants := p.DeepCopy()
		wants.Spec.Containers[0].Ports = big.Spec.Containers[0].Ports
		with := n.Snapshot()
		with.AddPodInfo(alone{PodInfo: n.GetPods()[0], pod: big})
		return fits && !h.RunFilterPluginsWithNominatedPods(context.Background(), state, wants, with).IsSuccess()
	},
	"Extenders": func(h fwk.Handle, _ fwk.CycleState, _ *v1.Pod, _ fwk.NodeInfo) bool { return len(h.Extenders()) == 0 }, // edge/extender has them
	"Parallelizer": func(h fwk.Handle, _ fwk.CycleState, _ *v1.Pod, _ fwk.NodeInfo) bool {
		var sum atomic.Int64
		h.Parallelizer().Until(context.Background(), 100, func(i int) { sum.Add(int64(i)) }, "sum")
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		h.Parallelizer().Until(ended, 100, func(int) { sum.Add(1000) }, "nothing")
		return sum.Load() == 4950
	},
	"APIDispatcher": func(h fwk.Handle, _ fwk.CycleState, _ *v1.Pod, _ fwk.NodeInfo) bool { return h.APIDispatcher() == nil },
	"APICacher":     func(h fwk.Handle, _ fwk.CycleState, _ *v1.Pod, _ fwk.NodeInfo) bool { return h.APICacher() == nil },
	"ProfileName": func(h fwk.Handle, _ fwk.CycleState, _ *v1.Pod, _ fwk.NodeInfo) bool {
		return h.ProfileName() == v1.DefaultSchedulerName
	},
	"SignPod": func(h fwk.Handle, _ fwk.CycleState, p *v1.Pod, _ fwk.NodeInfo) bool {
		one, twin, other, refused := h.SignPod(context.Background(), p), p.DeepCopy(), p.DeepCopy(), p.DeepCopy()
		twin.Name, twin.UID = "twin", "twin"
		other.Spec.NodeSelector = map[string]string{"k": "v"} // Berth's own plugins read it
		signed := p.DeepCopy()
		signed.Labels = map[string]string{"k": "v"} // the plugin signs it
		refused.Labels = map[string]string{"unsigned": "yes"}
		sign := func(p *v1.Pod) string { return string(h.SignPod(context.Background(), p)) }
		return len(one) > 0 && sign(twin) == string(one) && sign(other) != string(one) && sign(signed) != string(one) && sign(refused) == ""
	},
	"RunPreFilterExtensionAddPod": func(h fwk.Handle, state fwk.CycleState, p *v1.Pod, n fwk.NodeInfo) bool {
		return h.RunPreFilterExtensionAddPod(context.Background(), state, p, n.GetPods()[0], n).IsSuccess()
	},
}

// Each method of Handle does what it says. The other tests have the rest.
func TestEveryMethodOfHandle(t *testing.T) {
	handleType := reflect.TypeFor[fwk.Handle]()
	for i := range handleType.NumMethod() {
		name := handleType.Method(i).Name
		check := methods[name]
		if check == nil {
			if elsewhere[name] == "" {
				t.Errorf("no test of %s", name)
			}
			continue
		}
		t.Run(name, func(t *testing.T) {
			var good, asked atomic.Bool
			c := New(t, WithPlugin("M", with(func(h fwk.Handle) fwk.Plugin {
				h.SharedCSIManager() // plugins keep it, and list later
				return signsBy{&filter{"M", func(state fwk.CycleState, p *v1.Pod, n fwk.NodeInfo) *fwk.Status {
					if p.Name == "p" && asked.CompareAndSwap(false, true) { // some methods run filters
						good.Store(check(h, state, p, n))
					}
					return nil
				}}, func(p *v1.Pod) ([]fwk.SignFragment, *fwk.Status) {
					if p.Labels["unsigned"] != "" {
						return nil, fwk.NewStatus(fwk.Unschedulable)
					}
					return labelsOf(p)
				}}
			})))
			c.Add(&storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, Node("a"), Pod("old"))
			c.NodeOf("old")
			c.Add(Pod("p"))
			if c.NodeOf("p"); !good.Load() {
				t.Errorf("%s does not", name)
			}
			if name == "EventRecorder" {
				c.Until("the event is written", func() bool { return eventWritten(c.Client()) })
			}
		})
	}
}

func eventWritten(client *fake.Clientset) bool {
	list, err := client.EventsV1().Events("default").List(context.Background(), metav1.ListOptions{})
	return err == nil && len(list.Items) == 1 && list.Items[0].Reason == "Reason" && list.Items[0].ReportingController == v1.DefaultSchedulerName
}

// What a plugin changes of the configuration that it is given is its own.
func TestKubeConfigIsACopy(t *testing.T) {
	config := &rest.Config{Host: "https://example.com"}
	hosts := compat.New(compat.Options{Logger: klog.Background(), Config: config})
	args, err := compat.NewArgs(nil)
	if err != nil {
		t.Fatal(err)
	}
	registry := hosts.Registry("s", map[string]compat.PluginFactory{"M": with(func(h fwk.Handle) fwk.Plugin {
		if h.KubeConfig().Host != config.Host {
			t.Errorf("got %s", h.KubeConfig().Host)
		}
		h.KubeConfig().Host = "https://other.example.com"
		return named("M")
	})}, args)
	if _, err := registry["M"](nil); err != nil || config.Host != "https://example.com" {
		t.Errorf("%v, %s", err, config.Host)
	}
}

// placing is a plugin of placements, which no cycle calls.
type placing struct{ named }

func (placing) GeneratePlacements(context.Context, fwk.PodGroupCycleState, fwk.PodGroupInfo, *fwk.Placement) (*fwk.GeneratePlacementsResult, *fwk.Status) {
	return nil, nil
}
func (placing) ScorePlacement(context.Context, fwk.PlacementCycleState, fwk.PodGroupInfo, *fwk.PodGroupAssignments) (int64, *fwk.Status) {
	return 0, nil
}
func (placing) PlacementScoreExtensions() fwk.PlacementScoreExtensions { return nil }
func (placing) PodGroupPostFilter(context.Context, fwk.PodGroupCycleState, fwk.PodGroupInfo, fwk.PodGroupSchedulingFunc) (*fwk.PodGroupPostFilterResult, *fwk.Status) {
	return nil, nil
}

func (placing) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	return []fwk.ClusterEventWithHint{{Event: fwk.ClusterEvent{Resource: fwk.Node, ActionType: fwk.Add},
		PreQueueingHintFn: func(klog.Logger, any, any) (fwk.PreQueueingHintResult, error) {
			return fwk.PreQueueingHintResult{}, nil
		}}}, nil
}

// A line says which interfaces of a plugin are never called, and for want of which gate if
// for one.
func TestUncalledInterfacesAreNamed(t *testing.T) {
	logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true)))
	hosts := compat.New(compat.Options{Logger: logger})
	args, err := compat.NewArgs(nil)
	if err != nil {
		t.Fatal(err)
	}
	registry := hosts.Registry("s", map[string]compat.PluginFactory{
		"P": with(func(fwk.Handle) fwk.Plugin { return placing{"P"} }), "F": with(func(fwk.Handle) fwk.Plugin { return even }),
	}, args)
	for name, make := range registry {
		if _, err := make(&runtime.Unknown{}); err != nil {
			t.Fatal(name, err)
		}
	}
	lines := logger.GetSink().(ktesting.Underlier).GetBuffer().String()
	for _, want := range []string{"PlacementGeneratePlugin", "PlacementScorePlugin", "PodGroupPostFilterPlugin", `gate="GenericWorkload"`, "PreQueueingHintFn", `gate="SchedulerPreQueueingHints"`, `gate="TopologyAwareWorkloadScheduling"`, `plugin="P"`} {
		if !strings.Contains(lines, want) {
			t.Errorf("no %s in %s", want, lines)
		}
	}
	if strings.Contains(lines, `plugin="F"`) {
		t.Error(lines)
	}
}
