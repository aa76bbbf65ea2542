package machine

import (
	"bytes"
	"math"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/engine"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/resource"
	"github.com/berth-scheduler/berth/core/sums"
	"github.com/berth-scheduler/berth/core/table"
)

// mostRooms bounds the classes of a group times nodes that rooms looks at.
const mostRooms = 1 << 16

// rooms returns, for each class of equal pods of the group, what is free on each node of what the
// filters sum up, such as CPU, on the table as it is now. Domains are those of the required level,
// if there is one. There are no classes if a pod cannot be decided on, if a plugin panics, or if
// there are too many (mostRooms).
func (s *domainSearch) rooms() (rooms framework.GroupRooms) {
	if len(s.classes)*s.table.Live() > mostRooms {
		return rooms
	}
	whole := true
	err := s.decideEach(nil, func(k int, o *engine.Outcome) {
		if whole = whole && o != nil; whole {
			rooms.Classes = append(rooms.Classes, s.roomsOf(k, o))
		}
	})
	if err != nil || !whole {
		return framework.GroupRooms{}
	}
	if s.levels != nil && s.widest != wholeCluster {
		rooms.Domains = [][]table.Row{}
		for _, d := range s.domains(s.widest) {
			rooms.Domains = append(rooms.Domains, d.rows)
		}
	}
	return rooms
}

// roomsOf returns what there is for the pods of the class with index k. o is the outcome for the
// first of them.
func (s *domainSearch) roomsOf(k int, o *engine.Outcome) framework.GroupClass {
	class := framework.GroupClass{Sums: o.Sums(), Free: make([][]int64, s.table.Rows()), Rejected: make([]bool, s.table.Rows()), Alone: o.OnePerRow()}
	template := s.classes[k].first.pod.AppendTemplate(nil)
	for _, mb := range s.queued {
		if bytes.Equal(mb.pod.AppendTemplate(nil), template) {
			class.Pods = append(class.Pods, mb.pod)
		}
	}
	known := o.Rejected == nil && o.LocalFilters() // what the filters say of a row holds whoever leaves others
	for _, r := range s.liveRows() {
		code := decision.Success
		if known {
			code = o.Code(r)
		}
		if code == decision.UnschedulableAndUnresolvable {
			continue
		}
		class.Rejected[r] = code != decision.Success
		for i := range class.Sums {
			class.Free[r] = append(class.Free[r], s.freeOf(&class.Sums[i], r))
		}
	}
	return class
}

// freeOf returns how much of the sum is free on the row beside the pods there and the pods
// nominated to it that count against the group. The caller has lifted the group's own nominations.
// It is MaxInt64 if a device class stands for the resource.
func (s *domainSearch) freeOf(sum *sums.Sum, r table.Row) int64 {
	lacks := sum.Lacking(s.table, r)
	if lacks == math.MinInt64 { // a device class stands for the resource
		return math.MaxInt64
	}
	free := resource.Sub(sum.Request, lacks)
	for _, p := range s.nominations.NominatedTo(s.table.Name(r)) {
		if p.Priority >= s.cycle.group.Priority {
			free = resource.Sub(free, sum.UsedBy(p))
		}
	}
	return free
}
