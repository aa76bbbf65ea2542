package whatif

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/edge/decode"
	"github.com/berth-scheduler/berth/edge/spelling"
)

// quota sets amounts of an ElasticQuota's min and max.
func (s *session) quota(c *Change) error {
	if !s.counted {
		return errors.New("no profile of the configuration used here enables the plugin CapacityScheduling, so no ElasticQuota counts: give --config FILE of the scheduler")
	}
	old, err := s.quotaNamed(c.Operands[0])
	if err != nil {
		return err
	}
	if len(c.Operands) == 1 {
		return fmt.Errorf("%s: want amounts of its min and max, such as max:cpu=8", c.Operands[0])
	}
	q := *old
	q.Min, q.Max = slices.Clone(q.Min), slices.Clone(q.Max)
	for _, word := range c.Operands[1:] {
		if err := s.setAmount(&q, word); err != nil {
			return err
		}
	}
	for _, a := range q.Min {
		if most, bounded := q.Max.Of(a.Name); bounded && a.Value > most {
			return fmt.Errorf("ElasticQuota %s: its min of %s, %s, would be above its max, %s", q.Key(), a.Name, a.Quantity(), object.Amount{Name: a.Name, Value: most}.Quantity())
		}
	}
	for _, fault := range q.Faults {
		s.set.Notices = append(s.set.Notices, fmt.Sprintf("ElasticQuota %s, as it was: %s", q.Key(), fault))
	}
	q.Faults = nil
	s.cluster.SetObject(&q)
	return nil
}

// quotaNamed finds the ElasticQuota that is called NAME or NAMESPACE/NAME, and may be read. A name
// without namespace is looked for as the session's Names say.
func (s *session) quotaNamed(word string) (*object.ElasticQuota, error) {
	key := word
	if !strings.Contains(word, "/") {
		key = s.options.Names.namespace() + "/" + word
	}
	var all []string
	var found []*object.ElasticQuota
	for _, o := range s.cluster.Objects() {
		q, ok := o.(*object.ElasticQuota)
		if !ok {
			continue
		}
		all = append(all, q.Key())
		if key != word {
			all = append(all, q.Name)
		}
		switch {
		case q.Key() == key:
			found = []*object.ElasticQuota{q}
		case q.Name == word && !s.options.Names.Only && (len(found) == 0 || found[0].Key() != key):
			found = append(found, q)
		}
	}
	switch {
	case len(found) > 1:
		return nil, fmt.Errorf("several ElasticQuotas are called %s: %s and %s, for example", word, found[0].Key(), found[1].Key())
	case len(found) == 0:
		return nil, fmt.Errorf("no ElasticQuota is called %s%s", word, spelling.DidYouMean(word, all))
	case found[0].Unreadable != "":
		return nil, fmt.Errorf("ElasticQuota %s cannot be read: %s", found[0].Key(), found[0].Unreadable)
	}
	return found[0], nil
}

// setAmount sets what a word such as min:cpu=4 says.
func (s *session) setAmount(q *object.ElasticQuota, word string) error {
	bound, rest, _ := strings.Cut(word, ":")
	name, value, ok := cutLast(rest)
	list := map[string]*object.Amounts{"min": &q.Min, "max": &q.Max}[bound]
	if list == nil || !ok {
		return fmt.Errorf("%s: want min:RESOURCE=QUANTITY or max:RESOURCE=QUANTITY, such as max:cpu=8", word)
	}
	if known := s.resourcesOf(q); !slices.Contains(known, name) {
		return fmt.Errorf("%s: neither the quota nor a node has a resource %s%s", word, name, spelling.DidYouMean(name, known))
	}
	a, err := decode.Amount(v1.ResourceName(name), value)
	if err != nil {
		return fmt.Errorf("%s: %w", word, err)
	}
	list.Set(a)
	return nil
}

// resourcesOf returns the names of the resources that the quota lists or that a node has, sorted.
func (s *session) resourcesOf(q *object.ElasticQuota) []string {
	names := map[string]bool{}
	for _, a := range slices.Concat(q.Min, q.Max) {
		names[string(a.Name)] = true
	}
	for _, n := range s.nodes { // any order: into a map
		for name := range n.Status.Allocatable {
			names[string(name)] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}
