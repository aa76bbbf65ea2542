package preempt

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/resource"
	"github.com/berth-scheduler/berth/core/sums"
	"github.com/berth-scheduler/berth/core/table"
)

// packed is a small cluster and a group that comes, of which brute force knows the best victims.
type packed struct {
	*framework.PodGroupPostFilterCall
	pods    []*object.Pod // that are placed
	row     map[*object.Pod]table.Row
	gangs   map[string]int // minimum, by name
	lender  int64          // min of the queue of all others; below 0: no quotas
	domains [][]table.Row
	closed  map[table.Row]bool // no pod of the group may go there
	simple  bool               // equal pods, units of one pod, and no budget that several share
}

func drawPacked(t *rapid.T) *packed {
	number := func(name string, low, high int) int { // each as likely: IntRange prefers small ones
		var all []int
		for n := low; n <= high; n++ {
			all = append(all, n)
		}
		return rapid.SampledFrom(all).Draw(t, name)
	}
	w := &packed{row: map[*object.Pod]table.Row{}, gangs: map[string]int{"g": number("minimum of g", 1, 3), "h": number("minimum of h", 1, 3)}, lender: -1, simple: true,
		closed: map[table.Row]bool{}}
	w.PodGroupPostFilterCall = &framework.PodGroupPostFilterCall{Now: now, Table: table.New(), Group: &object.PodGroup{Source: "s.example.com", Priority: 5}, Strict: number("strict", 0, 3) == 0}
	w.Try, w.Fits, w.Rooms = w.tryAll, w.allows, w.whatRooms
	w.Table.CountGroups()
	queues := number("quotas", 0, 3) == 0
	gangs, equal := number("gangs", 0, 2) == 0, number("equal", 0, 1) == 0
	left := number("pods", 1, 9)
	for n := range number("nodes", 1, 4) {
		name := fmt.Sprint("n", n)
		room := resource.Vector{MilliCPU: int64(number("free", 0, 1)), Memory: int64(number("free memory", 0, 3))}
		var here []*object.Pod
		for i := range min(left, number("pods", 0, 5)) {
			p := pod(fmt.Sprintf("a/%s-%d", name, i), rapid.SampledFrom([]int32{2, 3, 3, 3, 4, 6}).Draw(t, "priority"), int64(number("cpu of a pod", 1, 4)), startedAt(-number("age", 1, 9)))
			p.Demand.Usage.Memory = int64(number("memory of a pod", 0, 2))
			p.Labels = map[string]string{"app": rapid.SampledFrom([]string{"x", "y", "z"}).Draw(t, "app")}
			if of := rapid.SampledFrom([]string{"g", "h", ""}).Draw(t, "gang"); gangs && of != "" {
				w.join(p, of)
			}
			room.MilliCPU += p.Demand.Usage.MilliCPU
			room.Memory += p.Demand.Usage.Memory
			p.Demand.Requests = p.Demand.Usage
			left--
			here = append(here, p)
		}
		w.Table.SetNode(&object.Node{Name: name, Allocatable: room})
		r, _ := w.Table.Find(name)
		w.closed[r] = number("closed", 0, 7) == 0
		for _, p := range here {
			w.Table.Place(p, r)
			w.pods, w.row[p] = append(w.pods, p), r
		}
	}
	if number("racks", 0, 2) == 0 {
		w.domains = [][]table.Row{nil, nil}
		for _, r := range w.Table.All() {
			i := number("rack", 0, 1)
			w.domains[i] = append(w.domains[i], r)
		}
	}
	budgets := &world{table: w.Table}
	for range number("budgets", 0, 2) {
		allowed := number("allowed", 0, 1)
		budgets.budget("a", rapid.SampledFrom([]string{"x", "y", "x,y"}).Draw(t, "apps"), int32(allowed))
		w.simple = w.simple && allowed == 0
	}
	w.Budgets = budgets.budgets
	cpu, memory := int64(number("cpu", 1, 4)), int64(number("memory", 0, 2))
	for i := range number("pods of the group", 1, 4) {
		if !equal && i > 0 {
			cpu, memory = int64(number("cpu", 1, 4)), int64(number("memory", 0, 2))
		}
		p := pod(fmt.Sprint("b/own-", i), 5, cpu)
		p.Demand.Usage.Memory = memory
		p.Demand.Requests = p.Demand.Usage
		w.Pods = append(w.Pods, p)
	}
	w.simple = w.simple && equal && !gangs && !queues
	if queues {
		w.lender, w.Quotas = int64(number("min of the lender", 0, 12)), &framework.QuotaRules{}
		for namespace, least := range map[string]int64{"a": w.lender, "b": 100} { // any order: each has its own
			w.Table.Objects().Set(&object.ElasticQuota{Meta: object.Meta{Kind: object.ElasticQuotas, Namespace: namespace, Name: "q"},
				Min: object.Amounts{{Name: v1.ResourceCPU, Value: least}}})
		}
	}
	return w
}

// join puts the pod into a gang from labels.
func (w *packed) join(p *object.Pod, gang string) {
	const source = "s.example.com"
	p.SchedulingGroup = object.InPodGroup(object.GroupName(source, gang))
	p.Labels[object.MinAvailableLabel(source)] = fmt.Sprint(w.gangs[gang])
	w.Table.Groups().Join(p)
}

func (w *packed) allows(a framework.GroupAssignment) bool {
	room := w.Table.Node(a.Row).Allocatable
	for _, pl := range w.Table.Pods(a.Row) {
		room.MilliCPU -= pl.Pod.Demand.Usage.MilliCPU
		room.Memory -= pl.Pod.Demand.Usage.Memory
	}
	return !w.closed[a.Row] && room.MilliCPU >= a.Pod.Demand.Usage.MilliCPU && room.Memory >= a.Pod.Demand.Usage.Memory
}

// tryAll finds nodes for all pods of the group in one domain, if there are any.
func (w *packed) tryAll() ([]framework.GroupAssignment, *decision.Status) {
	domains := w.domains
	if domains == nil {
		domains = [][]table.Row{w.Table.All()}
	}
	for _, rows := range domains {
		if found := w.place(w.Pods, rows); found != nil {
			return found, nil
		}
	}
	return nil, &decision.Status{Code: decision.Unschedulable, Reasons: []string{"no room"}}
}

// place finds rows for the pods beside each other, by all ways.
func (w *packed) place(pods []*object.Pod, rows []table.Row) []framework.GroupAssignment {
	if len(pods) == 0 {
		return []framework.GroupAssignment{}
	}
	for _, r := range rows {
		a := framework.GroupAssignment{Assignment: framework.Assignment{Pod: pods[0], Row: r}, Local: true}
		a.Place, a.Remove = func() { w.Table.Place(a.Pod, r) }, func() { w.Table.RemovePod(a.Pod.UID) }
		if !w.allows(a) {
			continue
		}
		a.Place()
		rest := w.place(pods[1:], rows)
		if a.Remove(); rest != nil {
			return append([]framework.GroupAssignment{a}, rest...)
		}
	}
	return nil
}

// whatRooms returns the sums of the filters.
func (w *packed) whatRooms() framework.GroupRooms {
	rooms := framework.GroupRooms{Domains: w.domains}
	byKey := map[string]int{}
	for _, p := range w.Pods {
		name := fmt.Sprint(p.Demand.Usage.MilliCPU, p.Demand.Usage.Memory)
		k, known := byKey[name]
		if !known {
			k = len(rooms.Classes)
			byKey[name] = k
			class := framework.GroupClass{Free: make([][]int64, w.Table.Rows()), Rejected: make([]bool, w.Table.Rows())}
			class.Sums = append(class.Sums, sums.New(w.Table, v1.ResourceCPU, p.Demand.Usage.MilliCPU, false))
			if p.Demand.Usage.Memory > 0 {
				class.Sums = append(class.Sums, sums.New(w.Table, v1.ResourceMemory, p.Demand.Usage.Memory, false))
			}
			for _, r := range w.Table.All() {
				if w.closed[r] {
					continue
				}
				class.Rejected[r] = !w.allows(framework.GroupAssignment{Assignment: framework.Assignment{Pod: p, Row: r}})
				for i := range class.Sums {
					_, free := sums.Free(w.Table, class.Sums[i].Name, r)
					class.Free[r] = append(class.Free[r], free)
				}
			}
			rooms.Classes = append(rooms.Classes, class)
		}
		rooms.Classes[k].Pods = append(rooms.Classes[k].Pods, p)
	}
	return rooms
}

// staying returns how many of the gang's pods stay, and how many there are.
func (w *packed) staying(gang string, goes map[*object.Pod]bool) (stay, all int) {
	for _, p := range w.pods {
		if p.PodGroup() != "" && p.PodGroup() == object.GroupName("s.example.com", gang) {
			if all++; !goes[p] {
				stay++
			}
		}
	}
	return stay, all
}

// mayGoTogether reports whether the pods may go together.
func (w *packed) mayGoTogether(goes map[*object.Pod]bool) bool {
	for gang, least := range w.gangs { // any order: all must hold
		if stay, all := w.staying(gang, goes); all >= least && stay > 0 && stay < least {
			return false
		}
	}
	used := int64(0)
	for _, p := range w.pods {
		if goes[p] && p.Priority >= w.Group.Priority && w.lender < 0 {
			return false
		}
		if !goes[p] {
			used += p.Demand.Usage.MilliCPU
		}
	}
	return (w.lender < 0 || used >= w.lender) && (!w.Strict || w.costOf(goes)[0] == 0)
}

// costOf returns what sets of victims are compared by.
func (w *packed) costOf(goes map[*object.Pod]bool) []int64 {
	var victims []*object.Pod
	for _, p := range w.pods {
		if goes[p] {
			victims = append(victims, p)
		}
	}
	if len(victims) == 0 {
		return []int64{0}
	}
	slices.SortFunc(victims, func(a, b *object.Pod) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), a.Started.Compare(b.Started), cmp.Compare(a.UID, b.UID))
	})
	violations, weights, surplus, since := int64(0), int64(0), int64(0), now.Unix()
	charged := map[*object.Budget]int32{}
	for _, p := range victims {
		for _, b := range w.Budgets {
			if b.Counts(p) {
				if charged[b]++; charged[b] > b.Allowed {
					violations++
					break
				}
			}
		}
		weights += int64(p.Priority) + 1<<31
		if p.Priority == victims[0].Priority {
			since = min(since, p.Started.Unix())
		}
	}
	for gang, least := range w.gangs { // any order: a sum
		if stay, all := w.staying(gang, goes); all >= least && stay > 0 {
			surplus += int64(all - stay)
		}
	}
	return []int64{violations, int64(victims[0].Priority), weights, int64(len(victims)), -surplus, -since}
}

// best returns the lowest cost of a set of victims with which the group fits; nil for none.
func (w *packed) best() (least []int64) {
	for set := 1; set < 1<<len(w.pods); set++ {
		goes := map[*object.Pod]bool{}
		for i, p := range w.pods {
			if set>>i&1 == 1 {
				goes[p] = true
			}
		}
		if !w.mayGoTogether(goes) || least != nil && slices.Compare(w.costOf(goes), least) >= 0 {
			continue
		}
		for p := range goes { // any order: all go
			w.Table.RemovePod(p.UID)
		}
		if _, status := w.tryAll(); status == nil {
			least = w.costOf(goes)
		}
		for _, p := range w.pods {
			if goes[p] {
				w.Table.Place(p, w.row[p])
			}
		}
	}
	return least
}

// The victims of a group are the best of all sets of pods, whatever the sizes, gangs, queues,
// budgets and racks: no set has fewer violations, a lower highest priority, or fewer pods. None
// is found only where none is. What the offers of rows say of equal pods is as good.
func TestGroupEvictsFewest(t *testing.T) {
	found := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		for range 20 {
			if w := drawPacked(t); !w.fitsAsIs() {
				least := w.best()
				w.checkVictims(t, least, found)
				w.checkOffers(t, least, found)
			}
		}
	})
	if found["racks true"] == 0 || found["best offer"] == 0 {
		t.Errorf("too few cases: %v", found)
	}
}

// fitsAsIs reports whether the group needs no victims.
func (w *packed) fitsAsIs() bool {
	_, status := w.tryAll()
	return status == nil
}

// checkVictims checks that the search finds victims of the least cost; nil for none.
func (w *packed) checkVictims(t *rapid.T, least []int64, found map[string]int) {
	before := picture(w.Table)
	result := ForGroup(w.PodGroupPostFilterCall)
	if after := picture(w.Table); after != before {
		t.Fatalf("the table is %s, and was %s", after, before)
	}
	if result.Status.Code != decision.Success {
		if least != nil {
			t.Fatalf("%v; there are victims of cost %v", result.Status, least)
		}
		found["none"]++
		return
	}
	if goes := set(result.Victims); !w.mayGoTogether(goes) || !slices.Equal(w.costOf(goes), least) {
		t.Fatalf("%s may go: %t, at cost %v; the least is %v", names(result.Victims), w.mayGoTogether(goes), w.costOf(goes), least)
	}
	found[fmt.Sprint("racks ", w.domains != nil)]++
}

// checkOffers checks that the offers of rows alone make victims who may go, of the least cost in
// simple worlds.
func (w *packed) checkOffers(t *rapid.T, least []int64, found map[string]int) {
	s := &fewest{PodGroupPostFilterCall: w.PodGroupPostFilterCall, rules: rulesForGroup(w.PodGroupPostFilterCall), most: mostChecks}
	s.measure()
	s.offer()
	goes := set(s.result.Victims)
	if len(goes) == 0 && (least == nil || !w.simple) {
		return
	}
	cost := w.costOf(goes)
	switch best := least != nil && slices.Equal(cost[:min(4, len(cost))], least[:4]); {
	case !w.mayGoTogether(goes) || w.simple && !best:
		t.Fatalf("the offers are %s, who may go: %t, at cost %v; the least is %v", names(s.result.Victims), w.mayGoTogether(goes), cost, least)
	case best:
		found["best offer"]++
	}
}

func names(pods []*object.Pod) (list []string) {
	for _, p := range pods {
		list = append(list, p.Key())
	}
	return list
}
