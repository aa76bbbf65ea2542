package whatif

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/edge/spelling"
)

// named finds the nodes that the words name: by name, or by label (KEY=VALUE).
func (s *session) named(words []string) ([]*v1.Node, error) {
	var found []*v1.Node
	for _, word := range words {
		word = strings.TrimPrefix(word, "node/")
		if key, value, ok := strings.Cut(word, "="); ok {
			before := len(found)
			for _, name := range slices.Sorted(maps.Keys(s.nodes)) {
				if has, there := s.nodes[name].Labels[key]; there && has == value {
					found = append(found, s.nodes[name])
				}
			}
			if len(found) == before {
				return nil, fmt.Errorf("no node has the label %s", word)
			}
			continue
		}
		n := s.nodes[word]
		if n == nil {
			return nil, fmt.Errorf("no node is called %s%s", word, spelling.DidYouMean(word, slices.Collect(maps.Keys(s.nodes))))
		}
		found = append(found, n)
	}
	return found, nil
}

// setNode changes a node that is there.
func (s *session) setNode(n *v1.Node) {
	s.nodes[n.Name] = n
	s.set.Nodes[slices.IndexFunc(s.set.Nodes, func(o *v1.Node) bool { return o.Name == n.Name })] = n
	s.cluster.SetNode(s.set.DecodeNode(n))
}

func unschedulable(t v1.Taint) bool { return t.Key == v1.TaintNodeUnschedulable }

func (s *session) cordon(c *Change) error {
	nodes, err := s.named(c.Operands)
	for _, n := range nodes {
		n = n.DeepCopy()
		n.Spec.Unschedulable = true
		n.Spec.Taints = append(slices.DeleteFunc(n.Spec.Taints, unschedulable), v1.Taint{Key: v1.TaintNodeUnschedulable, Effect: v1.TaintEffectNoSchedule})
		s.setNode(n)
	}
	return err
}

func (s *session) uncordon(c *Change) error {
	nodes, err := s.named(c.Operands)
	for _, n := range nodes {
		n = n.DeepCopy()
		n.Spec.Unschedulable = false
		n.Spec.Taints = slices.DeleteFunc(n.Spec.Taints, unschedulable)
		s.setNode(n)
	}
	return err
}

// drain cordons the nodes and has their pods evicted. Pods of DaemonSets and
// static pods stay, as kubectl drain --ignore-daemonsets leaves them.
func (s *session) drain(c *Change) error {
	if err := s.cordon(c); err != nil {
		return err
	}
	nodes, _ := s.named(c.Operands) // all are there
	on := s.byNode()
	for _, n := range nodes {
		for _, p := range on[n.Name] {
			switch why := s.stays(p.Key()); {
			case why != "" && !s.asked[p.Key()]:
				s.left[p.Key()] = why
			case !p.Terminating:
				s.leave(p)
			}
		}
	}
	return nil
}

// remove takes nodes away at once. Nobody asks the budgets.
func (s *session) remove(c *Change) error {
	nodes, err := s.named(c.Operands)
	if err != nil {
		return err
	}
	var names []string
	for _, n := range nodes {
		names = append(names, n.Name)
	}
	s.removeNodes(names)
	return nil
}

func (s *session) removeNodes(names []string) {
	on := s.byNode()
	for _, name := range names {
		if s.cluster.Node(name) == nil {
			continue // it is named twice
		}
		for _, p := range on[name] {
			why := s.stays(p.Key())
			if why == "" && p.Terminating {
				why = "it was terminating"
			}
			s.lose(p, why)
		}
		_ = s.cluster.DeleteNode(name) // it is there
		s.cluster.DeleteObject(object.CSINodes, "", name)
		delete(s.nodes, name)
	}
	s.set.Nodes = slices.DeleteFunc(slices.Clone(s.set.Nodes), func(n *v1.Node) bool { return s.nodes[n.Name] == nil })
}

var zoneLabels = []string{v1.LabelTopologyZone, v1.LabelFailureDomainBetaZone}

// loseZone removes the nodes of zones.
func (s *session) loseZone(c *Change) error {
	zones := map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(s.nodes)) {
		for _, label := range zoneLabels {
			if zone := s.nodes[name].Labels[label]; zone != "" && !slices.Contains(zones[zone], name) {
				zones[zone] = append(zones[zone], name)
			}
		}
	}
	if len(zones) == 0 {
		return errors.New("no node has the label " + v1.LabelTopologyZone)
	}
	for _, zone := range c.Operands {
		if zones[zone] == nil {
			return fmt.Errorf("no node is in zone %s%s; zones are %s", zone,
				spelling.DidYouMean(zone, slices.Collect(maps.Keys(zones))), strings.Join(slices.Sorted(maps.Keys(zones)), ", "))
		}
	}
	var names []string
	for _, zone := range c.Operands {
		names = append(names, zones[zone]...)
	}
	s.removeNodes(names)
	return nil
}
