package compat

import (
	"sync"

	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"
)

// cycleState is the fwk.CycleState of one attempt, for any goroutine. That of a pod group's
// cycle, and of its try in one placement, are cycleStates too.
type cycleState struct {
	data sync.Map // fwk.StateKey to fwk.StateData
	// Names of plugins: those skipped at Filter, Score and PreBind, and those that allow PreBind in
	// parallel.
	skipFilter, skipScore, skipPre, parallelPre sets.Set[string]
	group                                       fwk.PodGroupCycleState  // nil: no cycle of a pod group
	placement                                   fwk.PlacementCycleState // of the group's try; nil: no cycle of a pod group
}

// newCycleState returns a state that holds only the PodsToActivate.
func newCycleState(toActivate fwk.StateData) *cycleState {
	s := &cycleState{}
	s.Write(PodsToActivateKey, toActivate)
	return s
}

// Read returns the data of the key, or fwk.ErrNotFound.
func (s *cycleState) Read(key fwk.StateKey) (fwk.StateData, error) {
	if v, ok := s.data.Load(key); ok {
		data, _ := v.(fwk.StateData) // nil, where a plugin wrote that
		return data, nil
	}
	return nil, fwk.ErrNotFound
}

// Write stores the data of the key.
func (s *cycleState) Write(key fwk.StateKey, v fwk.StateData) { s.data.Store(key, v) }

// Delete removes the data of the key.
func (s *cycleState) Delete(key fwk.StateKey) { s.data.Delete(key) }

// Clone copies the state, each plugin's data by its own Clone. The copy shares the states of the
// pod group and of the placement.
func (s *cycleState) Clone() fwk.CycleState {
	if s == nil {
		return nil
	}
	c := &cycleState{skipFilter: s.skipFilter, skipScore: s.skipScore, skipPre: s.skipPre, parallelPre: s.parallelPre, group: s.group, placement: s.placement}
	s.data.Range(func(k, v any) bool {
		if v == nil {
			c.data.Store(k, v)
		} else {
			c.data.Store(k, v.(fwk.StateData).Clone())
		}
		return true
	})
	return c
}

// ShouldRecordPluginMetrics returns false.
func (s *cycleState) ShouldRecordPluginMetrics() bool { return false }

// GetSkipFilterPlugins returns the plugins whose PreFilter returned Skip.
func (s *cycleState) GetSkipFilterPlugins() sets.Set[string] { return s.skipFilter }

// SetSkipFilterPlugins sets the plugins whose PreFilter returned Skip.
func (s *cycleState) SetSkipFilterPlugins(p sets.Set[string]) { s.skipFilter = p }

// GetSkipScorePlugins returns the plugins whose PreScore returned Skip.
func (s *cycleState) GetSkipScorePlugins() sets.Set[string] { return s.skipScore }

// SetSkipScorePlugins sets the plugins whose PreScore returned Skip.
func (s *cycleState) SetSkipScorePlugins(p sets.Set[string]) { s.skipScore = p }

// GetSkipPreBindPlugins returns the plugins whose PreBindPreFlight returned Skip.
func (s *cycleState) GetSkipPreBindPlugins() sets.Set[string] { return s.skipPre }

// SetSkipPreBindPlugins sets the plugins whose PreBindPreFlight returned Skip.
func (s *cycleState) SetSkipPreBindPlugins(p sets.Set[string]) { s.skipPre = p }

// GetParallelPreBindPlugins returns the plugins that allow PreBind in parallel.
func (s *cycleState) GetParallelPreBindPlugins() sets.Set[string] { return s.parallelPre }

// SetParallelPreBindPlugins sets the plugins that allow PreBind in parallel.
func (s *cycleState) SetParallelPreBindPlugins(p sets.Set[string]) { s.parallelPre = p }

// ShouldSkipAllPostFilterPlugins returns false.
func (s *cycleState) ShouldSkipAllPostFilterPlugins() bool { return false }

// IsPodGroupSchedulingCycle reports whether the pod is tried in the cycle of its group.
func (s *cycleState) IsPodGroupSchedulingCycle() bool { return s.group != nil }

// GetPodGroupSchedulingCycle returns the state of the group's cycle; nil outside of one.
func (s *cycleState) GetPodGroupSchedulingCycle() fwk.PodGroupCycleState { return s.group }

// GetPlacementCycleState returns the state of the placement that the group's cycle tries;
// nil outside of one.
func (s *cycleState) GetPlacementCycleState() fwk.PlacementCycleState { return s.placement }

// GetParentPlacementCycleState returns nil: there are no composite pod groups.
func (s *cycleState) GetParentPlacementCycleState() fwk.PlacementCycleState { return nil }
