package oracle

import (
	"encoding/json"
	"strconv"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"

	"github.com/berth-scheduler/berth/edge/decode"
	"github.com/berth-scheduler/berth/sim/generate"
)

// changeFed shows a change of a claim, a slice, a class, a taint rule or a PodGroup, each
// time as a newer version; false for any other object. The fake API server has claims,
// too: kube-scheduler writes them.
func (s *Scheduler) changeFed(verb generate.Verb, o metav1.Object) (bool, error) {
	k := decode.Of(o)
	if !fed(k) {
		return false, nil
	}
	informer := s.factory.InformerFor(k.New().(runtime.Object), nil).(*Fed) // as feed made it
	s.version++
	o = o.(runtime.Object).DeepCopyObject().(metav1.Object)
	o.SetResourceVersion(strconv.Itoa(s.version))
	tracker, at := s.client.Tracker(), resourcev1.SchemeGroupVersion.WithResource("resourceclaims")
	claim, isClaim := o.(*resourcev1.ResourceClaim)
	if verb == generate.Delete {
		if isClaim {
			_ = tracker.Delete(at, claim.Namespace, claim.Name) // it may not be there
		}
		return true, informer.Remove(o)
	}
	if isClaim {
		if _, err := tracker.Get(at, claim.Namespace, claim.Name); err != nil {
			err = tracker.Create(at, claim.DeepCopy(), claim.Namespace)
			if err != nil {
				return true, err
			}
		} else if err := tracker.Update(at, claim.DeepCopy(), claim.Namespace); err != nil {
			return true, err
		}
	}
	return true, informer.Set(o)
}

// devices says whether there is any to be had.
func (s *Scheduler) devices() bool {
	return len(s.factory.Resource().V1().ResourceSlices().Informer().GetIndexer().ListKeys()) > 0
}

// writeClaims has PreBind write to the fake API server, and shows the claims as
// they are now.
func (s *Scheduler) writeClaims(c choice) error {
	tracker, pods := s.client.Tracker(), v1.SchemeGroupVersion.WithResource("pods")
	if err := tracker.Create(pods, c.pod.DeepCopy(), c.pod.Namespace); err != nil {
		return err
	}
	if status := c.framework.RunPreBindPlugins(s.ctx, c.state, c.pod, c.pod.Spec.NodeName); !status.IsSuccess() {
		return status.AsError()
	}
	written, err := tracker.Get(pods, c.pod.Namespace, c.pod.Name)
	if err != nil {
		return err
	}
	pod := written.(*v1.Pod)
	var names []string
	for i := range pod.Spec.ResourceClaims {
		if name, _, err := resourceclaim.Name(pod, &pod.Spec.ResourceClaims[i]); err == nil && name != nil {
			names = append(names, *name)
		}
	}
	if made := pod.Status.ExtendedResourceClaimStatus; made != nil {
		names = append(names, made.ResourceClaimName)
	}
	for _, name := range names {
		claim, err := tracker.Get(resourcev1.SchemeGroupVersion.WithResource("resourceclaims"), pod.Namespace, name)
		if err != nil {
			return err
		}
		if _, err := s.changeFed(generate.Update, claim.(*resourcev1.ResourceClaim)); err != nil {
			return err
		}
	}
	return tracker.Delete(pods, pod.Namespace, pod.Name)
}

// showCreated has claims that kube-scheduler creates be seen at once, as it
// waits for that.
func (s *Scheduler) showCreated() {
	s.client.PrependReactor("create", "resourceclaims", func(a clienttesting.Action) (bool, runtime.Object, error) {
		claim := a.(clienttesting.CreateAction).GetObject().(*resourcev1.ResourceClaim).DeepCopy()
		if claim.Name == "" {
			claim.Name = claim.GenerateName + strconv.Itoa(s.version)
		}
		claim.Namespace, claim.UID = a.GetNamespace(), types.UID("claim "+a.GetNamespace()+"/"+claim.Name)
		if _, err := s.changeFed(generate.Add, claim); err != nil {
			return true, nil, err
		}
		made, err := s.client.Tracker().Get(resourcev1.SchemeGroupVersion.WithResource("resourceclaims"), claim.Namespace, claim.Name)
		return true, made, err
	})
}

// Grants says what the pod's claims get on the node: by claim, the devices in
// order. Claims that have got theirs are left out.
func (s *Scheduler) Grants(pod *v1.Pod, node string) (map[string][]string, error) {
	defer Under(s.gates)()
	f, err := s.framework(pod)
	if err != nil {
		return nil, err
	}
	state := framework.NewCycleState()
	if _, status, _ := f.RunPreFilterPlugins(s.ctx, state, pod); !status.IsSuccess() {
		return nil, status.AsError()
	}
	info, err := s.snapshot.NodeInfos().Get(node)
	if err != nil {
		return nil, err
	}
	if status := f.RunFilterPlugins(s.ctx, state, pod, info); !status.IsSuccess() {
		return nil, status.AsError()
	}
	if status := f.RunReservePluginsReserve(s.ctx, state, pod, node); !status.IsSuccess() {
		return nil, status.AsError()
	}
	defer f.RunReservePluginsUnreserve(s.ctx, state, pod, node)
	grants := map[string][]string{}
	for i := range pod.Spec.ResourceClaims {
		name, _, err := resourceclaim.Name(pod, &pod.Spec.ResourceClaims[i])
		if err != nil || name == nil {
			continue
		}
		claims := f.SharedDRAManager().ResourceClaims()
		claim, err := claims.Get(pod.Namespace, *name)
		if err != nil {
			return nil, err
		}
		if got := claims.GetPendingAllocation(claim.UID); got != nil {
			grants[claim.Namespace+"/"+claim.Name] = Devices(got)
		}
	}
	Taken(dynamicresources.ExtractPodNodeAllocatableResourceClaimStatus(s.logger, state, node), grants)
	if made := madeOn(state, node); made != nil {
		grants[ExtendedClaim] = made.Text()
	}
	return grants, nil
}

// Taken says what the devices take of the node's resources through the claims.
func Taken(list []v1.NodeAllocatableResourceClaimStatus, grants map[string][]string) {
	for _, taken := range list {
		grants["of the node's resources through "+taken.ResourceClaimName] = []string{text(taken)}
	}
}

// Devices lists what an allocation holds, as text; what is drawn at random is
// left out.
func Devices(a *resourcev1.AllocationResult) []string {
	var list []string
	for i := range a.Devices.Results {
		r := a.Devices.Results[i]
		if r.ShareID != nil {
			r.ShareID = nil
			list = append(list, "a share of")
		}
		list = append(list, text(r))
	}
	if a.NodeSelector != nil {
		list = append(list, "on "+text(a.NodeSelector))
	}
	return append(list, "with "+text(a.Devices.Config))
}

func text(v any) string {
	b, _ := json.Marshal(v) // API types always marshal
	return string(b)
}
