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

// Pod is what the scheduler reads of one pod. Immutable.
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
	Running       bool // status.phase is Running
	Failed        bool // status.phase is Failed
	// Disrupted is set if the pod has the condition DisruptionTarget with status True and
	// reason PreemptionByScheduler: it is a victim of preemption.
	Disrupted bool
	// SchedulingGroup is spec.schedulingGroup, nil for a pod of no group. The machine also
	// sets the name in pods that are in a group by their labels.
	SchedulingGroup *SchedulingGroup

	Created    time.Time
	Started    time.Time // status.startTime, zero when not started
	Generation int64     // metadata.generation

	Gates  []string // spec.schedulingGates, in the pod's order
	Demand resource.Demand
	// FromDevices is status.nodeAllocatableResourceClaimStatuses: what devices take of the
	// node's resources for the pod. Demand.Usage includes it.
	FromDevices []v1.NodeAllocatableResourceClaimStatus
	// Claiming is the part of the API object from which the demand is computed again once the
	// pod's devices are chosen. nil means that the pod is not pending, or has neither claims nor
	// requests for devices (Extended).
	Claiming *v1.Pod
	Limits   *resource.Vector // nil: none. No decision depends on it

	RequiredNodes  *match.NodeSelector
	PreferredNodes *match.PreferredNodes
	Tolerations    match.Tolerations
	// Spread is nil for a pod without topology spread constraints, and for one that is
	// bound, whose constraints nothing reads any more.
	Spread *match.Spread
	// Affinity is nil for a pod without pod affinity and anti-affinity. That of a placed
	// pod counts, too: its anti-affinity may keep other pods away.
	Affinity   *match.PodAffinity
	Controller Controller
	HostPorts  []HostPort
	// Images are the normalised image references of init containers, containers and image
	// volumes, with repetitions.
	Images  []string
	Volumes []Volume

	// Claims are the entries of spec.resourceClaims with the claim names found in the
	// status.
	Claims []PodClaim
	// Extended are the containers' requests for extended resources for which DeviceClasses
	// may stand, by container, then resource.
	Extended []ExtendedRequest
	// Features are the node features that the spec requires and not every node has, sorted
	// (k8s.io/component-helpers/nodedeclaredfeatures); nil for most pods.
	Features []string

	// Scheduled is the pod's PodScheduled condition as the API shows it.
	Scheduled Condition

	// API is the object from which the pod was decoded. It is nil unless an extender or
	// hosted plugin needs it.
	API *v1.Pod
	// Recorded is the API object in the form in which a record of the scheduler's inputs
	// holds it (edge/recording); "" unless a record is kept. Copies made in the scheduler
	// keep it.
	Recorded string
}

// SchedulingGroup names the pod group with which a pod is scheduled, by its GroupName.
type SchedulingGroup struct {
	PodGroupName string
	// Owners are the owners of a pod with the PodGroupLabel as the status of its PodGroup names
	// them: NAMESPACE/NAME, sorted and joined by commas. It is "" for any other pod.
	Owners string
}

// Owners returns SchedulingGroup.Owners, which only a pod with the PodGroupLabel has; "" for
// any other pod.
func (p *Pod) Owners() string {
	if p.SchedulingGroup == nil {
		return ""
	}
	return p.SchedulingGroup.Owners
}

// InPodGroup returns the SchedulingGroup with the GroupName name, without Owners; nil for "".
func InPodGroup(name string) *SchedulingGroup {
	if name == "" {
		return nil
	}
	return &SchedulingGroup{PodGroupName: name}
}

// PodGroup returns the GroupName of the pod's group, "" for a pod of no group.
func (p *Pod) PodGroup() string {
	if p.SchedulingGroup == nil {
		return ""
	}
	return p.SchedulingGroup.PodGroupName
}

// KubernetesGroup returns the name of the pod's PodGroup of scheduling.k8s.io; "" for a pod
// of no group, or of one from another source.
func (p *Pod) KubernetesGroup() string {
	if source, name := GroupSource(p.PodGroup()); source == "" {
		return name
	}
	return ""
}

// Condition is the part of a pod condition that the scheduler writes: as the API shows it,
// or as it is to be.
type Condition struct {
	Status  v1.ConditionStatus
	Reason  string
	Message string
}

// HostPort is a port of the node that a container of the pod uses. An empty hostIP is
// written as IP 0.0.0.0, which means all addresses; Protocol is never empty.
type HostPort struct {
	IP       string
	Protocol v1.Protocol
	Port     int32
}

// Key returns namespace/name. A new pod may have the key of a deleted one; the UID differs.
func (p *Pod) Key() string { return p.Namespace + "/" + p.Name }

// NamespacedName returns the pod's namespace and name.
func (p *Pod) NamespacedName() types.NamespacedName {
	return types.NamespacedName{Namespace: p.Namespace, Name: p.Name}
}

// GroupKey returns the namespace and GroupName of the pod's group, which is in the pod's
// namespace. The name is "" for a pod of no group.
func (p *Pod) GroupKey() types.NamespacedName {
	return types.NamespacedName{Namespace: p.Namespace, Name: p.PodGroup()}
}

// Alike reports whether two states of a placed pod are equal in all that decisions about other
// pods read: its resources, ports and volumes, labels and affinity terms, and what preemption
// reads. They usually are when the API shows a binding that was assumed. The node is not
// compared.
func (p *Pod) Alike(q *Pod) bool {
	return p.UID == q.UID && p.Namespace == q.Namespace && p.Name == q.Name &&
		p.Priority == q.Priority && p.Terminating == q.Terminating && p.Terminal == q.Terminal && p.Started.Equal(q.Started) &&
		p.Demand.Usage.Equal(q.Demand.Usage) && p.Demand.NonZero.Equal(q.Demand.NonZero) &&
		sameClaims(p.FromDevices, q.FromDevices) && slices.Equal(p.HostPorts, q.HostPorts) && slices.Equal(p.Claims, q.Claims) && maps.Equal(p.Labels, q.Labels) && p.termsKey() == q.termsKey() &&
		p.volumesKey() == q.volumesKey()
}

// sameClaims reports whether the entries name the same ResourceClaims. Their amounts are
// not compared.
func sameClaims(a, b []v1.NodeAllocatableResourceClaimStatus) bool {
	return slices.EqualFunc(a, b, func(a, b v1.NodeAllocatableResourceClaimStatus) bool {
		return a.ResourceClaimName == b.ResourceClaimName
	})
}

// With returns a copy of the pod whose devices take exactly the amounts fromDevices of its
// node's resources, with the demand that follows. Claiming must be set.
func (p *Pod) With(fromDevices []v1.NodeAllocatableResourceClaimStatus) *Pod {
	now := *p
	now.FromDevices = fromDevices
	now.Demand = resource.WithDevices(p.Claiming, fromDevices)
	return &now
}

// termsKey returns the Key of the pod's affinity terms, to compare it with that of another
// state; "" without affinity.
func (p *Pod) termsKey() string {
	if p.Affinity == nil {
		return ""
	}
	return p.Affinity.Key
}
