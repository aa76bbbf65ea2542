package whatif

import (
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/edge/decode"
)

// releaseClaims does what controllers do with the claims of a pod that is gone.
// Those that were made for it are made anew for the pod that takes its place;
// devices that nobody else uses are free again.
func (s *session) releaseClaims(old types.UID, p *object.Pod) {
	for i := range p.Volumes {
		if v := &p.Volumes[i]; v.Ephemeral {
			s.renewVolume(p, v.Claim)
		}
	}
	for _, c := range p.Claims {
		claim, _ := s.cluster.Object(object.ResourceClaims, p.Namespace, c.Claim).(*object.ResourceClaim)
		if claim == nil {
			continue
		}
		api := claim.API.DeepCopy()
		api.Status.ReservedFor = slices.DeleteFunc(api.Status.ReservedFor, func(r resourcev1.ResourceClaimConsumerReference) bool { return r.UID == old })
		if len(api.Status.ReservedFor) == 0 {
			api.Status.Allocation = nil
		}
		if c.Owned {
			api.UID += "-again"
			for i := range api.OwnerReferences {
				api.OwnerReferences[i].UID = p.UID
			}
		}
		s.cluster.SetObject(decode.Object(api))
	}
}

// renewVolume makes the claim of a generic ephemeral volume anew. If its class
// waits for a pod, the volume is made where the pod goes.
func (s *session) renewVolume(p *object.Pod, name string) {
	old, _ := s.cluster.Object(object.PersistentVolumeClaims, p.Namespace, name).(*object.PersistentVolumeClaim)
	if old == nil {
		return
	}
	c := *old
	c.UID, c.Owner = old.UID+"-again", p.UID
	class, _ := s.cluster.Object(object.StorageClasses, "", c.Class).(*object.StorageClass)
	if class != nil && class.WaitForFirstConsumer && c.VolumeName != "" {
		s.cluster.DeleteObject(object.PersistentVolumes, "", c.VolumeName)
		c.VolumeName, c.BindCompleted, c.SelectedNode = "", false, ""
	}
	s.cluster.SetObject(&c)
}
