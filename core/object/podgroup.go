package object

import (
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// PodGroup is what the scheduler reads of one pod group: a PodGroup, or what labels of pods
// say.
type PodGroup struct {
	Meta
	// Source says where the group is from, as in the names of groups (GroupSource).
	Source  string
	Created time.Time // metadata.creationTimestamp; zero for a group from labels alone
	// Fault says what is wrong with the group, so that no pod of it is placed; "" for
	// nothing.
	Fault      string
	Generation int64 // metadata.generation
	// Gang is set if the group has a gang policy. Without one as many of its pods are
	// placed, in one cycle, as fit.
	Gang bool
	// MinCount is how many pods of a gang must fit for any to be bound.
	MinCount int
	// MinResources is what must be free on all nodes together, the pods of the group taken off,
	// before one of its pods is tried (spec.minResources); nil for nothing.
	MinResources *Amounts
	// PermitTimeout is how long a pod of the group waits in Permit; 0: as long as the plugin
	// says.
	PermitTimeout time.Duration
	// TopologyKey is the node label of which all its pods' nodes must have one value, ""
	// for none.
	TopologyKey string
	// Required and Preferred are the levels of GroupTopology in one domain of which its pods
	// must be placed, and are placed where that is possible: the annotations as written, ""
	// for none.
	Required, Preferred string
	// Priority is spec.priority, 0 without one. The pods of the group have their own, and
	// only those count in a group that is not Kubernetes' own.
	Priority int32
	// PreemptedWhole is set if all pods of the group are preempted when one is
	// (spec.disruptionMode all).
	PreemptedWhole bool
	// Scheduled is the group's PodGroupInitiallyScheduled condition as the API shows it.
	Scheduled GroupCondition
	// Status is the status of a PodGroup of scheduler-plugins as the API shows it.
	Status GroupStatus
}

// Annotations of a PodGroup, of either API.
const (
	RequiredTopology  = "berth.dev/required-topology"  // its Required
	PreferredTopology = "berth.dev/preferred-topology" // its Preferred
)

// Needs returns MinResources as a list.
func (g *PodGroup) Needs() Amounts {
	if g.MinResources == nil {
		return nil
	}
	return *g.MinResources
}

// GroupStatus is the status of a PodGroup of scheduler-plugins: as the API shows it, or as it
// is to be.
type GroupStatus struct {
	Phase      GroupPhase
	OccupiedBy string // the Owners of the pod that came first
	Running    int    // pods in each phase
	Succeeded  int
	Failed     int
}

// GroupPhase is how far a PodGroup of scheduler-plugins is; "" while nobody has said.
type GroupPhase string

// The phases. GroupFinished and GroupFailed are final.
const (
	GroupPending    GroupPhase = "Pending"    // it has fewer pods than it needs
	GroupScheduling GroupPhase = "Scheduling" // fewer than it needs run or have succeeded
	GroupRunning    GroupPhase = "Running"
	GroupFinished   GroupPhase = "Finished" // as many as it needs have succeeded
	GroupFailed     GroupPhase = "Failed"   // as many as it needs have run, and one has failed
)

// Final reports whether no other phase follows.
func (p GroupPhase) Final() bool { return p == GroupFinished || p == GroupFailed }

// GroupPhases are all phases.
var GroupPhases = []GroupPhase{GroupPending, GroupScheduling, GroupRunning, GroupFinished, GroupFailed}

// GroupKey returns the group's namespace and its GroupName.
func (g *PodGroup) GroupKey() types.NamespacedName {
	return types.NamespacedName{Namespace: g.Namespace, Name: GroupName(g.Source, g.Name)}
}

// GroupCondition is the part of a PodGroup condition that the scheduler writes: as the API
// shows it, or as it is to be.
type GroupCondition struct {
	Status             v1.ConditionStatus
	Reason             string
	Message            string
	ObservedGeneration int64
}

// GroupName returns the name by which the scheduler knows a pod group: NAME for Kubernetes' own
// PodGroup (source ""), SOURCE/NAME for any other. It returns "" if name is empty, for a pod in
// no group. No name in the API has a slash, so groups of one name from two sources are two
// groups.
func GroupName(source, name string) string {
	if source == "" || name == "" {
		return name
	}
	return source + "/" + name
}

// GroupSource returns the source and the rest of a GroupName.
func GroupSource(group string) (source, name string) {
	if source, name, found := strings.Cut(group, "/"); found {
		return source, name
	}
	return "", group
}

// SchedulerPlugins is the source of groups that are a PodGroup of scheduling.x-k8s.io, which
// is the API of sigs.k8s.io/scheduler-plugins.
const SchedulerPlugins = "scheduling.x-k8s.io"

// PodGroupLabel is the label of a pod that names such a PodGroup.
const PodGroupLabel = SchedulerPlugins + "/pod-group"

// GroupObject returns the kind and the name of the object of the group with this GroupName;
// false for "" and for a group that is labels alone.
func GroupObject(group string) (of Kind, name string, ok bool) {
	switch source, name := GroupSource(group); source {
	case "":
		return PodGroups, name, name != ""
	case SchedulerPlugins:
		return CoschedulingGroups, name, true
	}
	return 0, "", false
}

// FromLabels reports whether the source is labels alone.
func FromLabels(source string) bool { return source != "" && source != SchedulerPlugins }

// MinAvailableLabel returns the label that says how many pods of a group must be placed
// together, for a source that is labels alone; NameLabel returns the label that names the
// group.
func MinAvailableLabel(source string) string { return source + "/min-available" }

// NameLabel is described with MinAvailableLabel.
func NameLabel(source string) string { return source + "/name" }
