package volumebinding

import (
	"math"
	"math/bits"
	"slices"

	configv1 "k8s.io/kube-scheduler/config/v1"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/shape"
	"github.com/berth-scheduler/berth/core/table"
)

// scorer scores nodes by the percentage of the storage capacity there that a pod's
// volumes would use (gate StorageCapacityScoring). The zero value scores none.
type scorer struct {
	on        bool
	byPercent [101]int64 // score by percentage used
}

// newScorer returns a scorer with the shape of the arguments.
func newScorer(points []configv1.UtilizationShapePoint) scorer {
	return scorer{on: true, byPercent: shape.Tabulate(points)}
}

// preScore returns the pod's claims as the state for Score. It skips pods whose claims are all
// bound, and all pods if scoring is off.
func (s *scorer) preScore(t *table.Table, p *object.Pod) framework.PreScoreResult {
	if !s.on || !p.HasPVCs(true) {
		return framework.PreScoreResult{Skip: true}
	}
	pc, status := podClaimsOf(t, p)
	return framework.PreScoreResult{State: pc, Status: status, Skip: status == nil && len(pc.toProvision)+len(pc.toMatch) == 0}
}

// usage is the requested and the available capacity, in bytes, of one storage class.
type usage struct {
	class               string
	requested, capacity int64
}

// score writes the mean score over the storage classes of the volumes that the pod would get on
// each row: those to bind, if there are any, else those to provision. It writes 0 if the pod does
// not fit there.
func (s *scorer) score(in *framework.Input, rows []table.Row, out []int64) {
	pc := in.State.(*podClaims)
	var chosen choice
	var classes []usage
	for i, r := range rows {
		out[i] = 0
		n := in.Table.Node(r)
		if n == nil {
			continue
		}
		chosen.bound, chosen.made = chosen.bound[:0], chosen.made[:0]
		if pc.on(in.Table, r, n, &chosen) == framework.Fits {
			classes = chosen.usageByClass(classes[:0])
			out[i] = s.rate(classes)
		}
	}
}

// usageByClass appends requested and available capacity by storage class to classes, which is
// empty. If volumes are bound, both are sums over these. Else requested is the sum over the
// claims to provision for whose volume a capacity is known; capacity is that of one
// CSIStorageCapacity, as they share it.
func (c *choice) usageByClass(classes []usage) []usage {
	var u *usage
	for _, b := range c.bound {
		u, classes = usageOf(b.volume.Class, classes)
		u.requested, u.capacity = u.requested+b.claim.Bytes, u.capacity+b.volume.Bytes
	}
	if len(c.bound) > 0 {
		return classes
	}
	for _, m := range c.made {
		if m.room != nil {
			u, classes = usageOf(m.claim.Class, classes)
			u.requested, u.capacity = u.requested+m.claim.Bytes, m.room.Free
		}
	}
	return classes
}

// usageOf returns the usage of the class in classes, and classes, to which it appends the class if
// it is not there.
func usageOf(class string, classes []usage) (*usage, []usage) {
	i := slices.IndexFunc(classes, func(u usage) bool { return u.class == class })
	if i < 0 {
		i, classes = len(classes), append(classes, usage{class: class})
	}
	return &classes[i], classes
}

// rate returns the mean score of the classes, rounded; 0 for none.
func (s *scorer) rate(classes []usage) int64 {
	if len(classes) == 0 {
		return 0
	}
	var sum int64
	for i := range classes {
		sum += s.byPercent[classes[i].percent()]
	}
	return int64(math.Round(float64(sum) / float64(len(classes))))
}

// percent returns how much of the capacity is requested, 0 to 100; 100 if more is requested.
func (u *usage) percent() int64 {
	if u.requested < 0 || u.requested >= u.capacity {
		return 100
	}
	hi, lo := bits.Mul64(uint64(u.requested), 100)
	percent, _ := bits.Div64(hi, lo, uint64(u.capacity))
	return int64(percent)
}
