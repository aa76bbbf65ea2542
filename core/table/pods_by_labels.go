package table

import (
	"maps"
	"slices"

	"github.com/berth-scheduler/berth/core/match"
	"github.com/berth-scheduler/berth/core/object"
)

// PodsWithLabels holds the placed pods of one namespace that have equal labels, so that a
// selector matches all of them or none. It belongs to the table.
type PodsWithLabels struct {
	Namespace string
	Labels    map[string]string
	// Number is unique among all PodsWithLabels of the table.
	Number  uint32
	key     string // keyOf the pods
	pods    []*Placed
	rows    []Row // of the pods, in their order
	leaving []Row // the row of each terminating pod, in no order
}

// Pods returns the pods, in no particular order. Valid until the next change. Read only.
func (c *PodsWithLabels) Pods() []*Placed { return c.pods }

// Rows returns the row of each pod, in the order of Pods. Read only.
func (c *PodsWithLabels) Rows() []Row { return c.rows }

// Terminating returns the row of each pod that is being deleted, in no particular order; a
// row may occur several times. Read only.
func (c *PodsWithLabels) Terminating() []Row { return c.leaving }

// podsByLabels lists placed pods by namespace and labels, so that plugins that count pods
// by a selector try it once for all pods with equal labels. It is kept only from the first
// call of PodsByLabels or PodNamespaces on.
type podsByLabels struct {
	byNamespace map[string]map[string]*PodsWithLabels // then by keyOf; nil: nobody has asked
	made        uint32                                // number of PodsWithLabels made so far
	keyBuf      []byte                                // scratch of keyOf
	keys        []string                              // scratch of keyOf
}

// PodsByLabels calls visit for each set of labels that placed pods of the namespace have, with
// those pods, in no order. The first call lists all placed pods; the lists are kept from then
// on.
func (t *Table) PodsByLabels(namespace string, visit func(*PodsWithLabels)) {
	t.podsByLabels.gather(t.pods)
	for _, c := range t.podsByLabels.byNamespace[namespace] { // any order: said so
		visit(c)
	}
}

// PodNamespaces calls visit with each namespace that has placed pods, in no order. It starts
// the same lists as PodsByLabels.
func (t *Table) PodNamespaces(visit func(namespace string)) {
	t.podsByLabels.gather(t.pods)
	for name := range t.podsByLabels.byNamespace { // any order: said so
		visit(name)
	}
}

// gather lists all placed pods, given by row, if they are not listed so far.
func (l *podsByLabels) gather(pods [][]*Placed) {
	if l.byNamespace != nil {
		return
	}
	l.byNamespace = map[string]map[string]*PodsWithLabels{}
	for _, list := range pods {
		for _, pl := range list {
			l.join(pl)
		}
	}
}

// join adds a placed pod to those with its labels, if pods are listed. A pod that is put
// back has its key already.
func (l *podsByLabels) join(pl *Placed) {
	if l.byNamespace == nil {
		return
	}
	p, key := pl.Pod, ""
	if pl.withLabels != nil {
		key = pl.withLabels.key
	} else {
		key = l.keyOf(p)
	}
	inNamespace := l.byNamespace[p.Namespace]
	if inNamespace == nil {
		inNamespace = map[string]*PodsWithLabels{}
		l.byNamespace[p.Namespace] = inNamespace
	}
	c := inNamespace[key]
	if c == nil {
		l.made++
		c = &PodsWithLabels{Namespace: p.Namespace, Labels: p.Labels, Number: l.made, key: key}
		inNamespace[key] = c
	}
	pl.withLabels, pl.labelsIndex = c, int32(len(c.pods))
	c.pods, c.rows = append(c.pods, pl), append(c.rows, pl.Row)
	if p.Terminating {
		c.leaving = append(c.leaving, pl.Row)
	}
}

// keyOf returns a key of the pod's labels: pods have equal keys if, and only if, their labels
// are equal.
func (l *podsByLabels) keyOf(p *object.Pod) string {
	l.keys = slices.AppendSeq(l.keys[:0], maps.Keys(p.Labels))
	slices.Sort(l.keys)
	l.keyBuf = l.keyBuf[:0]
	for _, key := range l.keys {
		l.keyBuf = match.AppendField(match.AppendField(l.keyBuf, key), p.Labels[key])
	}
	return string(l.keyBuf)
}

// leave removes a pod from those with its labels, if pods are listed.
func (l *podsByLabels) leave(pl *Placed) {
	if l.byNamespace == nil {
		return
	}
	c := pl.withLabels
	n := len(c.pods) - 1
	last := c.pods[n]
	c.pods[pl.labelsIndex], c.rows[pl.labelsIndex], last.labelsIndex = last, last.Row, pl.labelsIndex
	c.pods[n] = nil
	c.pods, c.rows = c.pods[:n], c.rows[:n]
	if pl.Pod.Terminating {
		at := slices.Index(c.leaving, pl.Row)
		c.leaving = slices.Delete(c.leaving, at, at+1)
	}
	if n > 0 {
		return
	}
	delete(l.byNamespace[c.Namespace], c.key)
	if len(l.byNamespace[c.Namespace]) == 0 {
		delete(l.byNamespace, c.Namespace)
	}
}
