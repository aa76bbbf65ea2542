package object

import (
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/match"
	"github.com/berth-scheduler/berth/core/resource"
)

// Pod is what the scheduler knows of one pod. Immutable.
type Pod struct {
	UID       types.UID
	Namespace string
	Name      string
	Version   string // metadata.resourceVersion; events name it
	Labels    map[string]string

	SchedulerName string
	NodeName      string // spec.nodeName: where it is bound, "" while pending
	NominatedNode string // status.nominatedNodeName
	Priority      int32
	NeverPreempts bool // spec.preemptionPolicy: Never
	Terminating   bool // metadata.deletionTimestamp is set
	Terminal      bool // status.phase is Succeeded or Failed
	// Disrupted is true when the pod carries DisruptionTarget=True with
	// reason PreemptionByScheduler.
	Disrupted bool
	// SchedulingGroup is spec.schedulingGroup, nil for a pod of no group. It counts
	// with the gate GenericWorkload alone (machine.Options.PodGroups).
	SchedulingGroup *SchedulingGroup

	Created    time.Time
	Started    time.Time // status.startTime, zero when not started
	Generation int64     // metadata.generation

	Gates  []string // spec.schedulingGates, in the pod's order
	Demand resource.Demand
	// FromDevices is what devices take of the node's resources for the pod
	// (status.nodeAllocatableResourceClaimStatuses), which is in Demand.Usage.
	FromDevices []v1.NodeAllocatableResourceClaimStatus
	// Claiming is, of a pending pod with claims, what of the API object the demand
	// follows from: devices add to it once they are chosen. nil otherwise.
	Claiming *v1.Pod
	Limits   *resource.Vector // nil: none; no decision depends on them

	RequiredNodes  *match.NodeSelector
	PreferredNodes *match.PreferredNodes
	Tolerations    match.Tolerations
	// Spread is nil for a pod without topology spread constraints, and for
	// one that is bound: nobody asks for them any more.
	Spread *match.Spread
	// Affinity is nil for a pod without pod affinity and anti-affinity. That
	// of a placed pod counts, too: others may be kept away from it.
	Affinity   *match.PodAffinity
	Controller Controller
	HostPorts  []HostPort
	// Images are the normalised references of init containers, containers
	// and image volumes, with repetitions.
	Images  []string
	Volumes []Volume

	// Claims are spec.resourceClaims with the names found in the status.
	Claims []PodClaim
	// Extended are the containers' requests for resources that device classes
	// may stand for, by container, then resource.
	Extended []ExtendedRequest
	// Features are what the spec calls for that not every node has, sorted
	// (k8s.io/component-helpers/nodedeclaredfeatures); nil for most pods.
	Features []string

	// Scheduled is the pod's PodScheduled condition as the API shows it.
	Scheduled Condition

	// API is the object that the pod was decoded from. It is nil unless an extender is to
	// get it.
	API *v1.Pod
	// Recorded is the API object as a record of the scheduler's inputs holds it
	// (edge/recording); "" unless one is kept. A copy that is made in the
	// scheduler keeps that of the API's.
	Recorded string
}

// SchedulingGroup names the group of pods that a pod is scheduled with.
type SchedulingGroup struct{ PodGroupName string }

// InPodGroup returns the scheduling group of pods of the PodGroup; nil for "".
func InPodGroup(name string) *SchedulingGroup {
	if name == "" {
		return nil
	}
	return &SchedulingGroup{PodGroupName: name}
}

// PodGroup returns the name of the pod's PodGroup, "" for a pod of no group.
func (p *Pod) PodGroup() string {
	if p.SchedulingGroup == nil {
		return ""
	}
	return p.SchedulingGroup.PodGroupName
}

// Condition is the part of a pod condition that a status patch would change.
type Condition struct {
	Status  v1.ConditionStatus
	Reason  string
	Message string
}

// HostPort is a port of the node that a pod takes. IP "" means all addresses
// and is written 0.0.0.0; Protocol is never empty.
type HostPort struct {
	IP       string
	Protocol v1.Protocol
	Port     int32
}

// Key returns namespace/name, by which the API addresses the pod. A new pod may have the
// key of a deleted one; the UID differs.
func (p *Pod) Key() string { return p.Namespace + "/" + p.Name }

// NamespacedName returns the pod's name as a key.
func (p *Pod) NamespacedName() types.NamespacedName {
	return types.NamespacedName{Namespace: p.Namespace, Name: p.Name}
}

// GroupKey returns the name of the pod's group as a key, which lives in the pod's namespace.
func (p *Pod) GroupKey() types.NamespacedName {
	return types.NamespacedName{Namespace: p.Namespace, Name: p.PodGroup()}
}

// Alike reports whether two states of a placed pod are the same for other pods: its
// resources, ports and volumes, its labels and terms, and what preemption reads of it.
// They are when the API shows a binding that was assumed.
func (p *Pod) Alike(q *Pod) bool {
	return p.UID == q.UID && p.Namespace == q.Namespace && p.Name == q.Name &&
		p.Priority == q.Priority && p.Terminating == q.Terminating && p.Terminal == q.Terminal && p.Started.Equal(q.Started) &&
		p.Demand.Usage.Equal(q.Demand.Usage) && p.Demand.NonZero.Equal(q.Demand.NonZero) &&
		sameClaims(p.FromDevices, q.FromDevices) && slices.Equal(p.HostPorts, q.HostPorts) && slices.Equal(p.Claims, q.Claims) && maps.Equal(p.Labels, q.Labels) && p.termsKey() == q.termsKey() &&
		p.VolumesKey() == q.VolumesKey()
}

// sameClaims reports whether the same claims take node resources through devices. The
// amounts are part of the demand.
func sameClaims(a, b []v1.NodeAllocatableResourceClaimStatus) bool {
	return slices.EqualFunc(a, b, func(a, b v1.NodeAllocatableResourceClaimStatus) bool {
		return a.ResourceClaimName == b.ResourceClaimName
	})
}

// With returns a copy of the pod whose devices take exactly these amounts of its node's
// resources.
func (p *Pod) With(fromDevices []v1.NodeAllocatableResourceClaimStatus) *Pod {
	now := *p
	now.FromDevices = fromDevices
	now.Demand = resource.WithDevices(p.Claiming, fromDevices)
	return &now
}

func (p *Pod) termsKey() string {
	if p.Affinity == nil {
		return ""
	}
	return p.Affinity.Key
}
