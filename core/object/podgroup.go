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
	// MinResources is what must be free on all nodes together before one of the group's pods is
	// tried (spec.minResources); nil for nothing. What pods of the group use counts as free.
	MinResources *Amounts
	// PermitTimeout is how long a pod of the group waits in Permit; 0: as long as the plugin
	// says.
	PermitTimeout time.Duration
	// TopologyKey is the node label of which the nodes of all pods of the group must have one
	// value, "" for none.
	TopologyKey string
	// Required is the level of GroupTopology in one domain of which the group's pods must be
	// placed. Preferred is the level in one domain of which they are placed where that is
	// possible. Both are annotations as written, "" for none.
	Required, Preferred string
	// Priority is spec.priority, 0 without one. The pods of the group have priorities of their
	// own, and only those count in a group that is not Kubernetes' own.
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

// Needs returns the amounts in MinResources; nil for none.
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
	OccupiedBy string // the Owners of its first pod, set once it has as many pods as it needs
	Running    int    // number of its pods that run
	Succeeded  int    // number of its pods that have succeeded
	Failed     int    // number of its pods that have failed
}

// GroupPhase is how far a PodGroup of scheduler-plugins is; "" while its status names no phase.
type GroupPhase string

// The phases. GroupFinished and GroupFailed are final.
const (
	GroupPending    GroupPhase = "Pending"    // it has fewer pods than it needs
	GroupScheduling GroupPhase = "Scheduling" // fewer than it needs run or have succeeded
	GroupRunning    GroupPhase = "Running"    // as many as it needs run or have succeeded
	GroupFinished   GroupPhase = "Finished"   // as many as it needs have succeeded
	GroupFailed     GroupPhase = "Failed"     // as many as it needs have run, and one has failed
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

// GroupSource returns the source and the rest of a GroupName. The source is "" for Kubernetes'
// own PodGroup.
func GroupSource(group string) (source, name string) {
	if source, name, found := strings.Cut(group, "/"); found {
		return source, name
	}
	return "", group
}

// SchedulerPlugins is the source of groups that are a PodGroup of scheduling.x-k8s.io, which
// is the API of sigs.k8s.io/scheduler-plugins.
const SchedulerPlugins = "scheduling.x-k8s.io"

// PodGroupLabel is the label of a pod that names its PodGroup of scheduling.x-k8s.io.
const PodGroupLabel = SchedulerPlugins + "/pod-group"

// GroupObject returns the kind and the name of the API object of the group with this GroupName;
// false for "" and for a group that labels of pods alone make.
func GroupObject(group string) (of Kind, name string, ok bool) {
	switch source, name := GroupSource(group); source {
	case "":
		return PodGroups, name, name != ""
	case SchedulerPlugins:
		return CoschedulingGroups, name, true
	}
	return 0, "", false
}

// FromLabels reports whether groups from the source are made by labels of pods alone, without
// an API object.
func FromLabels(source string) bool { return source != "" && source != SchedulerPlugins }

// MinAvailableLabel returns the pod label that says how many pods of a group must be placed
// together, for a source whose groups labels alone make.
func MinAvailableLabel(source string) string { return source + "/min-available" }

// NameLabel returns the pod label that names the pod's group, for a source whose groups labels
// alone make.
func NameLabel(source string) string { return source + "/name" }
