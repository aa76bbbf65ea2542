package table

import (
	"maps"
	"slices"

	"github.com/berth-scheduler/berth/core/object"
)

// Crowd is the placed pods of one namespace that have the same labels: a
// selector matches all of them or none. It belongs to the table.
type Crowd struct {
	Namespace string
	Labels    map[string]string
	key       string
	pods      []*Placed
}

// Pods lists the pods of the crowd, in no particular order. Read only.
func (c *Crowd) Pods() []*Placed { return c.pods }

// crowds are kept from the first time that somebody asks for them.
type crowds struct {
	byNamespace map[string]map[string]*Crowd // nil: nobody has asked
	keyBuf      []byte
	words       []string
}

// Crowds calls visit with each crowd of the namespace. The order is not
// defined.
func (t *Table) Crowds(namespace string, visit func(*Crowd)) {
	t.gather()
	for _, c := range t.crowds.byNamespace[namespace] { // any order: said so
		visit(c)
	}
}

// AllCrowds is Crowds for all namespaces.
func (t *Table) AllCrowds(visit func(*Crowd)) {
	t.gather()
	for _, list := range t.crowds.byNamespace { // any order: said so
		for _, c := range list { // any order: said so
			visit(c)
		}
	}
}

func (t *Table) gather() {
	if t.crowds.byNamespace != nil {
		return
	}
	t.crowds.byNamespace = map[string]map[string]*Crowd{}
	for _, list := range t.pods {
		for _, pl := range list {
			t.crowds.join(pl)
		}
	}
}

// join puts the pod into its crowd; a pod that comes back knows its key.
func (l *crowds) join(pl *Placed) {
	if l.byNamespace == nil {
		return
	}
	p, key := pl.Pod, ""
	if pl.crowd != nil {
		key = pl.crowd.key
	} else {
		key = l.keyOf(p)
	}
	crowds := l.byNamespace[p.Namespace]
	if crowds == nil {
		crowds = map[string]*Crowd{}
		l.byNamespace[p.Namespace] = crowds
	}
	c := crowds[key]
	if c == nil {
		c = &Crowd{Namespace: p.Namespace, Labels: p.Labels, key: key}
		crowds[key] = c
	}
	pl.crowd, pl.inCrowd = c, int32(len(c.pods))
	c.pods = append(c.pods, pl)
}

func (l *crowds) keyOf(p *object.Pod) string {
	l.words = slices.AppendSeq(l.words[:0], maps.Keys(p.Labels))
	slices.Sort(l.words)
	l.keyBuf = l.keyBuf[:0]
	for _, key := range l.words {
		l.keyBuf = appendWord(appendWord(l.keyBuf, key), p.Labels[key])
	}
	return string(l.keyBuf)
}

func (l *crowds) leave(pl *Placed) {
	if l.byNamespace == nil {
		return
	}
	c := pl.crowd
	last := c.pods[len(c.pods)-1]
	c.pods[pl.inCrowd], last.inCrowd = last, pl.inCrowd
	c.pods[len(c.pods)-1] = nil
	c.pods = c.pods[:len(c.pods)-1]
	if len(c.pods) > 0 {
		return
	}
	delete(l.byNamespace[c.Namespace], c.key)
	if len(l.byNamespace[c.Namespace]) == 0 {
		delete(l.byNamespace, c.Namespace)
	}
}
