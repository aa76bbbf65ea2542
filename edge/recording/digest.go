package recording

import (
	"encoding/binary"
	"encoding/json"
	"slices"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/machine"
)

// Digest sums effects up: equal ones have equal digests. The digest of none is 0.
// Names are those of the record; where they are redacted, texts do not count,
// nor do the effects that are texts: conditions and events. The wording of errors
// never counts.
type Digest struct {
	names *Names
	texts bool
	sum   []byte
}

// NewDigest returns a digest of effects that carry names to be replaced by names,
// nil for none. texts: the record is not redacted.
func NewDigest(names *Names, texts bool) *Digest { return &Digest{names: names, texts: texts} }

// Of is the digest of the effects.
func (d *Digest) Of(effects []machine.Effect) uint32 {
	d.sum = d.sum[:0]
	for _, e := range effects {
		d.effect(e)
	}
	if len(d.sum) == 0 {
		return 0
	}
	return max(checksum(d.sum), 1)
}

func (d *Digest) number(n int64)   { d.sum = binary.AppendVarint(d.sum, n) }
func (d *Digest) name(name string) { d.text(d.names.Of(name)) }
func (d *Digest) text(s string)    { d.sum = append(binary.AppendUvarint(d.sum, uint64(len(s))), s...) }
func (d *Digest) list(list []string) {
	d.number(int64(len(list)))
	for _, s := range list {
		d.text(s)
	}
}

func (d *Digest) flag(b bool) {
	if b {
		d.number(1)
	} else {
		d.number(0)
	}
}

func (d *Digest) effect(e machine.Effect) {
	switch e := e.(type) {
	case machine.Bind:
		d.number(1)
		d.text(string(e.Pod.UID))
		d.name(e.Node)
	case machine.BindByExtender:
		d.number(2)
		d.text(string(e.Pod.UID))
		d.name(e.Node)
		d.number(int64(e.Extender))
	case machine.CallExtender:
		d.call(e)
	case machine.Write:
		d.write(e)
	case machine.ReadPod:
		d.number(5)
		d.text(string(e.Pod.UID))
		d.number(int64(e.Delay))
	case machine.PatchStatus:
		d.patch(e)
	case machine.Evict:
		d.number(7)
		d.text(string(e.Victim.UID))
		d.text(string(e.Preemptor.UID))
		if e.Node == machine.AnyNode { // no name
			d.text(e.Node)
		} else {
			d.name(e.Node)
		}
	case machine.PublishEvent:
		if d.texts {
			d.number(8)
			d.list([]string{string(e.Pod.UID), string(e.Reason), e.Action, e.Note})
		}
	case machine.AttemptDone:
		d.decision(e.Decision)
	case machine.RunPlugins:
		d.number(10)
		d.text(string(e.Pod.UID))
		d.list(e.Plugins)
	case machine.CancelPlugins:
		d.number(11)
		d.text(string(e.Pod.UID))
	}
}

func (d *Digest) call(e machine.CallExtender) {
	d.number(3)
	d.text(string(e.Verb))
	d.text(string(e.Pod.UID))
	for _, n := range []int64{int64(e.Extender), int64(e.Call), int64(len(e.Nodes))} {
		d.number(n)
	}
	for _, n := range e.Nodes {
		d.name(n.Name)
	}
	for i := range e.Candidates {
		d.name(e.Candidates[i].Node)
		d.number(int64(len(e.Candidates[i].Victims)))
	}
}

func (d *Digest) write(e machine.Write) {
	d.number(4)
	d.text(string(e.Pod.UID))
	d.flag(e.Call != 0)
	for i := range e.Writes {
		w := &e.Writes[i]
		d.number(int64(w.Object.Kind))
		d.name(w.Object.Namespace)
		d.text(d.names.claimOf(e.Pod.Name, w.Object.Name))
		d.text(w.Subresource)
		d.flag(w.Delete)
		d.flag(w.Create != nil)
		if d.texts {
			patch, _ := json.Marshal(w.Patch)
			d.text(string(patch))
		}
	}
}

func (d *Digest) patch(e machine.PatchStatus) {
	if !d.texts {
		return
	}
	d.number(6)
	d.text(string(e.Pod.UID))
	if c := e.Condition; c != nil {
		d.list([]string{string(c.Status), c.Reason, c.Message})
	}
	if e.Nominated != nil {
		d.text(*e.Nominated)
	}
}

func (d *Digest) decision(r *decision.Decision) {
	d.number(9)
	d.text(string(r.UID))
	d.text(string(r.Result))
	d.name(r.Node)
	d.name(r.NominatedNode)
	for _, n := range []int64{int64(r.Attempt), r.Score, int64(r.Ties), int64(r.NodesTotal), int64(r.NodesFeasible)} {
		d.number(n)
	}
	for _, b := range []bool{r.Flushed, r.Writing, r.PreemptionTried} {
		d.flag(b)
	}
	var victims []string
	for _, v := range r.Victims {
		victims = append(victims, d.names.Of(v.Namespace)+"/"+d.names.Of(v.Name))
	}
	slices.Sort(victims)
	for _, l := range [][]string{victims, r.RejectedBy, r.PendingBy, {r.FailedPoint, r.FailedPlugin}, d.tallies(r.Tallies)} {
		d.list(l)
	}
	for _, s := range []*decision.Status{r.PreEnqueueStatus, r.PreFilter} {
		if s == nil {
			continue
		}
		d.number(int64(s.Code))
		d.text(s.Plugin)
		if d.texts {
			d.list(s.Reasons)
		}
	}
	if d.texts {
		d.list(r.PostFilter)
	}
}

// tallies are the blockers in an order that does not depend on names.
func (d *Digest) tallies(all []decision.Tally) []string {
	var list []string
	for i := range all {
		t := &all[i]
		one := binary.AppendVarint(binary.AppendVarint([]byte(t.Plugin), int64(t.Code)), int64(t.Nodes))
		if d.texts {
			for _, reason := range t.Reasons {
				one = append(append(one, 0), reason...)
			}
		}
		list = append(list, string(one))
	}
	slices.Sort(list)
	return list
}
