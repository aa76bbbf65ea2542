package api

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/queue"
	"github.com/berth-scheduler/berth/core/table"
	"github.com/berth-scheduler/berth/edge/records"
)

// GroupList is the answer of groups: those of which pods wait first, the one that waits longest
// at the top, then the others by name.
type GroupList struct {
	Head
	Time time.Time `json:"time"`
	// Off is set if pods of a PodGroup are scheduled one by one: the gate GenericWorkload is off.
	Off    bool    `json:"off,omitempty"`
	Groups []Group `json:"groups"`
	// Total is how many there are that match; the list may be shorter.
	Total int `json:"total"`
}

// Group is how it stands with one pod group.
type Group struct {
	Group string `json:"group"` // NAMESPACE/NAME
	// Missing is set if pods name the group and there is no such PodGroup.
	Missing bool `json:"missing,omitempty"`
	// Minimum is how many pods must have a node for any to get one: 1 without a gang policy.
	Minimum  int    `json:"minimum"`
	Gang     bool   `json:"gang"`
	Priority int32  `json:"priority"`
	Topology string `json:"topology,omitempty"` // the key of a node's label
	Pods     int    `json:"pods"`
	Bound    int    `json:"bound"`
	Assumed  int    `json:"assumed"` // on nodes, and not bound yet
	Waiting  int    `json:"waiting"`
	// Since is when the oldest pod that waits was created.
	Since *time.Time `json:"since,omitempty"`
	// Place is where in the queue the pods are that wait. Until is when they leave it by
	// themselves.
	Place string     `json:"place,omitempty"`
	Until *time.Time `json:"until,omitempty"`
	// Status, Reason and Message are the PodGroup's condition PodGroupInitiallyScheduled.
	Status  string `json:"status,omitempty"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
}

// GroupAnswer is the answer of group: one group with its pods.
type GroupAnswer struct {
	Head
	Time time.Time `json:"time"`
	Group
	Members []Member `json:"members"` // by name
	// Last is the last attempt of one of the pods that wait.
	Last *records.Record `json:"last,omitempty"`
	// Nearest is the placement in which most of the pods that wait fit now; nil if none waits,
	// or Unknown says why it is not known. Placements is how many were tried.
	Nearest    *Nearest `json:"nearest,omitempty"`
	Placements int      `json:"placements,omitempty"`
	Unknown    string   `json:"unknown,omitempty"`
}

// Member is a pod of a group.
type Member struct {
	Pod  string    `json:"pod"`
	UID  types.UID `json:"uid"`
	Node string    `json:"node,omitempty"`
	// Place is where in the queue the pod is, "bound" or "assumed".
	Place    string     `json:"place"`
	Since    *time.Time `json:"since,omitempty"` // in this place of the queue
	Attempts int        `json:"attempts,omitempty"`
	Message  string     `json:"message,omitempty"` // of the last attempt
}

// Nearest is a placement of a group.
type Nearest struct {
	Placement string `json:"placement,omitempty"` // "": all nodes
	Nodes     int    `json:"nodes"`
	// Has is how many pods of the group are placed or fit there, Needs how many must.
	Has      int    `json:"has"`
	Needs    int    `json:"needs"`
	Feasible bool   `json:"feasible"`
	Message  string `json:"message,omitempty"` // why the first pod that does not fit does not
}

func (h *handler) groups(r *http.Request) (any, error) {
	p := paramsOf(r, "namespace", "limit")
	namespace, limit := p.values.Get("namespace"), p.limit()
	if p.err != nil {
		return nil, p.err
	}
	list := &GroupList{Head: head("GroupList"), Time: h.Now().UTC(), Groups: []Group{}}
	err := h.look(r.Context(), func(m *machine.Machine) {
		list.Off = !m.PlacesGroups()
		for _, name := range groupNames(m) {
			if namespace == "" || name.Namespace == namespace {
				list.Groups = append(list.Groups, groupOf(m, name))
			}
		}
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(list.Groups, func(a, b Group) int {
		return cmp.Or(cmp.Compare(min(b.Waiting, 1), min(a.Waiting, 1)), compareTime(a.Since, b.Since), cmp.Compare(a.Group, b.Group))
	})
	list.Total = len(list.Groups)
	list.Groups = list.Groups[:min(limit, list.Total)]
	return list, nil
}

// compareTime compares two times; nil comes last.
func compareTime(a, b *time.Time) int {
	switch {
	case a == b:
		return 0
	case a == nil:
		return 1
	case b == nil:
		return -1
	}
	return a.Compare(*b)
}

// groupNames returns the names of the PodGroups, and of those that pods name without one,
// sorted; none where pods are scheduled one by one.
func groupNames(m *machine.Machine) []types.NamespacedName {
	if !m.PlacesGroups() {
		return nil
	}
	names := m.Table().Groups().Names()
	for _, kind := range []object.Kind{object.PodGroups, object.CoschedulingGroups} {
		for _, o := range m.Table().Objects().List(kind) {
			names = append(names, o.(*object.PodGroup).GroupKey())
		}
	}
	slices.SortFunc(names, func(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) })
	return slices.Compact(names)
}

// groupOf returns how it stands with a group.
func groupOf(m *machine.Machine, name types.NamespacedName) Group {
	pods := m.Table().Groups().Named(name)
	g := Group{Group: name.String(), Minimum: 1, Pods: pods.Len(), Bound: pods.Bound()}
	g.Assumed, g.Waiting = pods.Scheduled()-g.Bound, g.Pods-pods.Scheduled()
	if o := table.PodGroup(m.Table(), name); o != nil {
		g.Gang, g.Priority, g.Topology = o.Gang, o.Priority, o.TopologyKey
		if o.Gang {
			g.Minimum = o.MinCount
		}
		g.Status, g.Reason, g.Message = string(o.Scheduled.Status), o.Scheduled.Reason, o.Scheduled.Message
	} else {
		g.Missing = true
	}
	for uid := range pods.Unscheduled() {
		e := m.Entry(uid)
		if e.Place() == queue.Nowhere {
			continue
		}
		if created := utc(e.Pod.Created); g.Since == nil || created != nil && created.Before(*g.Since) {
			g.Since = created
		}
		g.Place, g.Until = e.Place().String(), utc(m.Queue().StayEnd(e))
	}
	return g
}

func (h *handler) group(r *http.Request) (any, error) {
	p := paramsOf(r, "name")
	key := p.pod("name")
	if key == "" {
		p.fail("name", "is needed: NAMESPACE/NAME")
	}
	if p.err != nil {
		return nil, p.err
	}
	name := podName(key)
	var a *GroupAnswer
	var now knowledge
	err := h.look(r.Context(), func(m *machine.Machine) {
		if slices.Contains(groupNames(m), name) {
			a = &GroupAnswer{Head: head("Group"), Group: groupOf(m, name), Members: membersOf(m, name)}
			now = take(m, "")
		}
	})
	switch {
	case err != nil:
		return nil, err
	case a == nil:
		return nil, problem(http.StatusNotFound, NotFound, "pod group %s: no PodGroup and no pod of that name is known, or pods are scheduled one by one", name)
	}
	a.Time = h.Now().UTC()
	h.addAttempts(a)
	if a.Waiting > 0 {
		if err := h.addNearest(r, a, name, &now); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// membersOf returns the pods of a group by name.
func membersOf(m *machine.Machine, name types.NamespacedName) []Member {
	list := []Member{}
	for _, of := range m.GroupPods(name, false) {
		one := Member{Pod: of.Pod.Key(), UID: of.Pod.UID, Node: of.Node}
		switch e := m.Entry(of.Pod.UID); {
		case of.Pod.NodeName != "":
			one.Place = "bound"
		case of.Node != "":
			one.Place = "assumed"
		case e.Place() != queue.Nowhere:
			s := e.State()
			one.Place, one.Since, one.Attempts = s.Place.String(), utc(s.Since), s.Attempts
		}
		list = append(list, one)
	}
	slices.SortFunc(list, func(a, b Member) int { return strings.Compare(a.Pod, b.Pod) })
	return list
}

// addAttempts adds the last attempts of the pods that wait.
func (h *handler) addAttempts(a *GroupAnswer) {
	waiting := map[string]bool{}
	for i := range a.Members {
		waiting[string(a.Members[i].UID)] = a.Members[i].Node == ""
	}
	last := h.Recorder.Lasts(waiting)
	defer last.End()
	for i := range a.Members {
		record, tried := last.Of(string(a.Members[i].UID))
		if !tried || a.Members[i].Node != "" {
			continue
		}
		a.Members[i].Message = record.Message
		if a.Last == nil || record.Time.After(a.Last.Time) {
			a.Last = &record
		}
	}
}

// addNearest tries the group on a copy of the machine.
func (h *handler) addNearest(r *http.Request, a *GroupAnswer, name types.NamespacedName, now *knowledge) error {
	copied, err := h.copyOf(r.Context(), now, "")
	if r.Context().Err() != nil {
		return r.Context().Err()
	}
	if err != nil {
		a.Unknown = err.Error()
		return nil
	}
	fits, err := copied.AssessGroup(name, func() bool { return r.Context().Err() == nil })
	if r.Context().Err() != nil && len(fits) == 0 {
		return r.Context().Err()
	}
	if err != nil {
		a.Unknown = err.Error()
		return nil
	}
	a.Placements = len(fits)
	for _, f := range fits {
		if a.Nearest == nil || f.Scheduled > a.Nearest.Has {
			a.Nearest = &Nearest{f.Placement, f.Nodes, f.Scheduled, a.Minimum, f.Feasible, f.Message}
		}
	}
	return nil
}
