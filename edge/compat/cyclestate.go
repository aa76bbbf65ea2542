package compat

import (
	"sync"

	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"
)

// cycleState holds the data that plugins store for one attempt.
type cycleState struct {
	data                                        sync.Map
	skipFilter, skipScore, skipPre, parallelPre sets.Set[string]
	group                                       fwk.PodGroupCycleState
}

// newCycleState returns a state that holds only the PodsToActivate.
func newCycleState(toActivate fwk.StateData) *cycleState {
	s := &cycleState{}
	s.Write(PodsToActivateKey, toActivate)
	return s
}

func (s *cycleState) Read(key fwk.StateKey) (fwk.StateData, error) {
	if v, ok := s.data.Load(key); ok {
		data, _ := v.(fwk.StateData) // nil, where a plugin wrote that
		return data, nil
	}
	return nil, fwk.ErrNotFound
}

func (s *cycleState) Write(key fwk.StateKey, v fwk.StateData) { s.data.Store(key, v) }
func (s *cycleState) Delete(key fwk.StateKey)                 { s.data.Delete(key) }

// Clone copies the state, each plugin's part by its own Clone.
func (s *cycleState) Clone() fwk.CycleState {
	if s == nil {
		return nil
	}
	c := &cycleState{skipFilter: s.skipFilter, skipScore: s.skipScore, skipPre: s.skipPre, parallelPre: s.parallelPre, group: s.group}
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

func (s *cycleState) ShouldRecordPluginMetrics() bool                     { return false }
func (s *cycleState) GetSkipFilterPlugins() sets.Set[string]              { return s.skipFilter }
func (s *cycleState) SetSkipFilterPlugins(p sets.Set[string])             { s.skipFilter = p }
func (s *cycleState) GetSkipScorePlugins() sets.Set[string]               { return s.skipScore }
func (s *cycleState) SetSkipScorePlugins(p sets.Set[string])              { s.skipScore = p }
func (s *cycleState) GetSkipPreBindPlugins() sets.Set[string]             { return s.skipPre }
func (s *cycleState) SetSkipPreBindPlugins(p sets.Set[string])            { s.skipPre = p }
func (s *cycleState) GetParallelPreBindPlugins() sets.Set[string]         { return s.parallelPre }
func (s *cycleState) SetParallelPreBindPlugins(p sets.Set[string])        { s.parallelPre = p }
func (s *cycleState) ShouldSkipAllPostFilterPlugins() bool                { return false }
func (s *cycleState) IsPodGroupSchedulingCycle() bool                     { return s.group != nil }
func (s *cycleState) GetPodGroupSchedulingCycle() fwk.PodGroupCycleState  { return s.group }
func (s *cycleState) SetPodGroupSchedulingCycle(g fwk.PodGroupCycleState) { s.group = g }
