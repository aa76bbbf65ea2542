package decode

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/object"
)

// PodGroup is the API object of scheduling.x-k8s.io/v1alpha1, which a
// CustomResourceDefinition defines (deploy/podgroups.yaml). What of it cannot be read is kept,
// as of an ElasticQuota.
type PodGroup struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              PodGroupSpec   `json:"spec,omitzero"`
	Status            PodGroupStatus `json:"status,omitzero"`
}

// PodGroupSpec is how many pods of the group are to be placed together. The fields are JSON
// as written.
type PodGroupSpec struct {
	MinMember              json.RawMessage `json:"minMember,omitempty"`
	MinResources           json.RawMessage `json:"minResources,omitempty"`
	ScheduleTimeoutSeconds json.RawMessage `json:"scheduleTimeoutSeconds,omitempty"`
}

// PodGroupStatus is how it stands with the group. The fields are JSON as written.
type PodGroupStatus struct {
	Phase             json.RawMessage `json:"phase,omitempty"`
	OccupiedBy        json.RawMessage `json:"occupiedBy,omitempty"`
	Running           json.RawMessage `json:"running,omitempty"`
	Succeeded         json.RawMessage `json:"succeeded,omitempty"`
	Failed            json.RawMessage `json:"failed,omitempty"`
	ScheduleStartTime json.RawMessage `json:"scheduleStartTime,omitempty"`
}

// strictGroup takes every value of a PodGroup's fields. Decoding into it finds fields that a
// PodGroup does not have, and fields that stand twice (Kind.Strict).
type strictGroup struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		MinMember              any `json:"minMember"`
		MinResources           any `json:"minResources"`
		ScheduleTimeoutSeconds any `json:"scheduleTimeoutSeconds"`
	} `json:"spec"`
	Status struct {
		Phase             any `json:"phase"`
		OccupiedBy        any `json:"occupiedBy"`
		Running           any `json:"running"`
		Succeeded         any `json:"succeeded"`
		Failed            any `json:"failed"`
		ScheduleStartTime any `json:"scheduleStartTime"`
	} `json:"status"`
}

// PodGroupList is a list of PodGroups.
type PodGroupList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []PodGroup `json:"items"`
}

// UnmarshalJSON keeps what is no spec as if it were minMember.
func (s *PodGroupSpec) UnmarshalJSON(data []byte) error {
	type plain PodGroupSpec
	if json.Unmarshal(data, (*plain)(s)) != nil {
		*s = PodGroupSpec{MinMember: slices.Clone(data)}
	}
	return nil
}

// minResources returns the list of minResources, nil if it is none.
func (s *PodGroupSpec) minResources() (least Quantities) {
	if len(s.MinResources) > 0 && json.Unmarshal(s.MinResources, &least) == nil {
		delete(least, "")
	}
	return least
}

// UnmarshalJSON drops what is no status.
func (s *PodGroupStatus) UnmarshalJSON(data []byte) error {
	type plain PodGroupStatus
	if json.Unmarshal(data, (*plain)(s)) != nil {
		*s = PodGroupStatus{}
	}
	return nil
}

// UnmarshalJSON keeps of a PodGroup with metadata that cannot be read what identifies it, and
// the metadata as if they were minMember.
func (g *PodGroup) UnmarshalJSON(data []byte) error {
	type plain PodGroup
	if json.Unmarshal(data, (*plain)(g)) == nil {
		return nil
	}
	var known struct {
		Metadata struct {
			Namespace, Name, ResourceVersion string
			UID                              types.UID
		}
	}
	_ = json.Unmarshal(data, &known) // as far as it goes
	m := &known.Metadata
	*g = PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name, ResourceVersion: m.ResourceVersion, UID: m.UID},
		Spec: PodGroupSpec{MinMember: json.RawMessage(`"not known, as the metadata cannot be read"`)}}
	return nil
}

// DeepCopyObject implements runtime.Object.
func (g *PodGroup) DeepCopyObject() runtime.Object {
	c := *g
	g.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	for _, raw := range []*json.RawMessage{&c.Spec.MinMember, &c.Spec.MinResources, &c.Spec.ScheduleTimeoutSeconds, &c.Status.Phase, &c.Status.OccupiedBy,
		&c.Status.Running, &c.Status.Succeeded, &c.Status.Failed, &c.Status.ScheduleStartTime} {
		*raw = slices.Clone(*raw)
	}
	return &c
}

// DeepCopyObject implements runtime.Object.
func (l *PodGroupList) DeepCopyObject() runtime.Object {
	c := &PodGroupList{TypeMeta: l.TypeMeta, Items: make([]PodGroup, len(l.Items))}
	l.ListMeta.DeepCopyInto(&c.ListMeta)
	for i := range l.Items {
		c.Items[i] = *l.Items[i].DeepCopyObject().(*PodGroup)
	}
	return c
}

// Marshal returns the form in which a record holds the object.
func (g *PodGroup) Marshal() ([]byte, error) { return json.Marshal(g) }

// Unmarshal is the inverse of Marshal.
func (g *PodGroup) Unmarshal(data []byte) error { return json.Unmarshal(data, g) }

// Redact drops what no decision reads, and replaces what is no number, as it may say anything.
func (g *PodGroup) Redact() {
	least := g.Spec.minResources()
	least.Redact()
	if g.Spec.MinResources = nil; len(least) > 0 {
		g.Spec.MinResources, _ = json.Marshal(least) // texts by name: no error
	}
	g.Status.OccupiedBy, g.Status.ScheduleStartTime = nil, nil
	if !slices.Contains(object.GroupPhases, groupStatus(&g.Status).Phase) {
		g.Status.Phase = nil
	}
	for _, raw := range []*json.RawMessage{&g.Spec.MinMember, &g.Spec.ScheduleTimeoutSeconds, &g.Status.Running, &g.Status.Succeeded, &g.Status.Failed} {
		if _, err := strconv.ParseInt(string(*raw), 10, 64); err != nil && len(*raw) > 0 {
			*raw = json.RawMessage(`"redacted"`)
		}
	}
}

// owners returns the owners of a pod with the label of such a PodGroup (object.SchedulingGroup).
func owners(p *v1.Pod) string {
	if p.Labels[object.PodGroupLabel] == "" {
		return ""
	}
	names := make([]string, len(p.OwnerReferences))
	for i := range p.OwnerReferences {
		names[i] = p.Namespace + "/" + p.OwnerReferences[i].Name
	}
	slices.Sort(names)
	return strings.Join(names, ",")
}

// groupStatus returns what of the status can be read.
func groupStatus(s *PodGroupStatus) (status object.GroupStatus) {
	_ = json.Unmarshal(s.Phase, &status.Phase)
	_ = json.Unmarshal(s.OccupiedBy, &status.OccupiedBy)
	for _, n := range []struct {
		raw  json.RawMessage
		into *int
	}{{s.Running, &status.Running}, {s.Succeeded, &status.Succeeded}, {s.Failed, &status.Failed}} {
		if read, err := strconv.ParseUint(string(n.raw), 10, 31); err == nil { // none is negative
			*n.into = int(read)
		}
	}
	return status
}

func coschedulingGroup(g *PodGroup) *object.PodGroup {
	decoded := &object.PodGroup{Meta: meta(object.CoschedulingGroups, &g.ObjectMeta), Source: object.SchedulerPlugins, Created: g.CreationTimestamp.Time,
		Generation: g.Generation, Gang: true, Required: g.Annotations[object.RequiredTopology], Preferred: g.Annotations[object.PreferredTopology]}
	n, err := strconv.ParseInt(string(g.Spec.MinMember), 10, 32)
	switch {
	case len(g.Spec.MinMember) == 0:
		decoded.Fault = fmt.Sprintf("the PodGroup %s lacks spec.minMember", decoded.GroupKey().Name)
	case err != nil || n < 1:
		decoded.Fault = fmt.Sprintf("spec.minMember of the PodGroup %s is %s, and should be a number of pods, at least 1", decoded.GroupKey().Name, shortenedJSON(g.Spec.MinMember))
	default:
		decoded.MinCount = int(n)
	}
	if seconds, err := strconv.ParseInt(string(g.Spec.ScheduleTimeoutSeconds), 10, 32); err == nil && seconds > 0 {
		decoded.PermitTimeout = time.Duration(seconds) * time.Second
	}
	if least := g.Spec.minResources(); len(least) > 0 {
		needs := (&quantityReader{}).limits("spec.minResources", least) // what cannot be read does not count: its schema excludes that
		decoded.MinResources = &needs
	}
	decoded.Status = groupStatus(&g.Status)
	return decoded
}

// shortenedJSON returns no more than a line of the JSON.
func shortenedJSON(raw json.RawMessage) string {
	if len(raw) > longestShown {
		return string(raw[:longestShown]) + "..."
	}
	return string(raw)
}
