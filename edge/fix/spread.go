package fix

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/core/plugins/names"
	"github.com/berth-scheduler/berth/core/table"
)

// loosenSpread has constraints count fewer pods, nodes or domains, raises maxSkew, has them
// only preferred, or drops them.
func (s *search) loosenSpread(row table.Row) (ways [][]edit) {
	if len(s.spec.TopologySpreadConstraints) > mostEdits {
		return [][]edit{{dropped("all topology spread constraints", "/spec/topologySpreadConstraints")}}
	}
	var narrowed, raised, preferred, gone []edit
	for i := range s.spec.TopologySpreadConstraints {
		c := &s.spec.TopologySpreadConstraints[i]
		if c.WhenUnsatisfiable != v1.DoNotSchedule {
			continue
		}
		path := at("/spec/topologySpreadConstraints/%d", i)
		narrowed = append(narrowed, s.narrowedSpread(c, path)...)
		raised = append(raised, s.raisedSkew(c, path, s.mostSkew(c)))
		if !slices.ContainsFunc(s.spec.TopologySpreadConstraints, func(o v1.TopologySpreadConstraint) bool {
			return o.TopologyKey == c.TopologyKey && o.WhenUnsatisfiable == v1.ScheduleAnyway
		}) && c.MinDomains == nil {
			preferred = append(preferred, edit{kind: loosenTerm, say: fmt.Sprintf("have the topology spread by %s only preferred (ScheduleAnyway)", c.TopologyKey),
				ops: []Op{{Op: "replace", Path: path + "/whenUnsatisfiable", Value: string(v1.ScheduleAnyway)}}})
		}
		gone = append(gone, dropped("the topology spread constraint by "+c.TopologyKey, path))
	}
	ways = append(ways, s.someOf(narrowed, row, names.PodTopologySpread)...)
	ways = append(ways, s.someOf(raised, row, names.PodTopologySpread)...)
	ways = append(ways, s.someOf(preferred, row, names.PodTopologySpread)...)
	return append(ways, s.someOf(gone, row, names.PodTopologySpread)...)
}

// mostSkew is a maxSkew that no domain can exceed.
func (s *search) mostSkew(c *v1.TopologySpreadConstraint) int64 {
	return int64(c.MaxSkew) + int64(s.table.PlacedPods()) + 1
}

func (s *search) raisedSkew(c *v1.TopologySpreadConstraint, path string, skew int64) edit {
	return edit{
		kind: raiseSkew, say: fmt.Sprintf("raise maxSkew of the topology spread by %s from %d to %d", c.TopologyKey, c.MaxSkew, skew),
		ops:  []Op{{Op: "replace", Path: path + "/maxSkew", Value: skew}},
		tune: &tune{value: skew, best: int64(c.MaxSkew) + 1, step: 1, with: func(n int64) edit { return s.raisedSkew(c, path, n) }},
	}
}

// narrowedSpread changes the constraint to count less: only nodes that the pod may use, only pods
// of its own revision, and no more domains than there are.
func (s *search) narrowedSpread(c *v1.TopologySpreadConstraint, path string) (edits []edit) {
	narrow := func(field string, value any, format string, args ...any) {
		edits = append(edits, edit{kind: narrowSpread, say: fmt.Sprintf("have the topology spread by %s count only ", c.TopologyKey) + fmt.Sprintf(format, args...),
			ops: []Op{{Op: "add", Path: path + "/" + field, Value: value}}})
	}
	if c.NodeTaintsPolicy == nil || *c.NodeTaintsPolicy != v1.NodeInclusionPolicyHonor {
		narrow("nodeTaintsPolicy", string(v1.NodeInclusionPolicyHonor), "nodes whose taints the pod tolerates (nodeTaintsPolicy: Honor)")
	}
	if c.NodeAffinityPolicy != nil && *c.NodeAffinityPolicy != v1.NodeInclusionPolicyHonor {
		narrow("nodeAffinityPolicy", string(v1.NodeInclusionPolicyHonor), "nodes that the pod selects (nodeAffinityPolicy: Honor)")
	}
	for _, key := range []string{appsv1.DefaultDeploymentUniqueLabelKey, appsv1.ControllerRevisionHashLabelKey} {
		if s.api.Labels[key] != "" && c.LabelSelector != nil && !slices.Contains(c.MatchLabelKeys, key) {
			narrow("matchLabelKeys/-", key, "pods with the same %s (matchLabelKeys)", key)
		}
	}
	if c.MinDomains != nil && *c.MinDomains > 1 {
		edits = append(edits, fewerDomains(c, path, 1))
	}
	return edits
}

func fewerDomains(c *v1.TopologySpreadConstraint, path string, n int64) edit {
	return edit{
		kind: narrowSpread, say: fmt.Sprintf("lower minDomains of the topology spread by %s from %d to %d", c.TopologyKey, *c.MinDomains, n),
		ops:  []Op{{Op: "replace", Path: path + "/minDomains", Value: n}},
		tune: &tune{value: n, best: int64(*c.MinDomains) - 1, step: 1, with: func(n int64) edit { return fewerDomains(c, path, n) }},
	}
}
