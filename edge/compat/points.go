package compat

import (
	"strings"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/profile"
)

// point is an extension point whose plugins call each other's neighbours.
type point int

const (
	pointPreFilter point = iota
	pointFilter
	pointPreScore
	pointScore
	points
)

// implements reports whether the plugin implements the extension point.
func (pt point) implements(p *hostedPlugin) bool {
	switch pt {
	case pointPreFilter:
		return p.preFilter != nil
	case pointFilter:
		return p.filter != nil
	case pointPreScore:
		return p.preScore != nil
	default:
		return p.score != nil
	}
}

// Built says what the profiles are that were built: a plugin may be made and yet not
// be enabled where it could be.
func (h *Hosts) Built(profiles []*profile.Profile) {
	for _, p := range profiles {
		host := h.profiles[p.Name]
		if host == nil {
			continue
		}
		host.weights = map[string]int64{}
		host.places = [points]map[string]int{}
		host.enable(pointPreFilter, p.PreFilter)
		host.enable(pointFilter, p.Filter)
		host.enable(pointPreScore, p.PreScore)
		for _, s := range p.Score {
			host.weights[s.Name] = s.Weight
			host.enable(pointScore, []*framework.Plugin{s.Plugin})
		}
		host.findSigners()
	}
}

func (h *Host) enable(pt point, plugins []*framework.Plugin) {
	if h.places[pt] == nil {
		h.places[pt] = map[string]int{}
	}
	for _, native := range plugins {
		h.places[pt][native.Name] = len(h.places[pt]) + 1
		if p := h.byName[native.Name]; p != nil && pt.implements(p) {
			h.enabled[pt] = append(h.enabled[pt], p)
		}
	}
}

// at lists the plugins of a point, in their order.
func (h *Host) at(pt point) []*hostedPlugin { return h.enabled[pt] }

// extended names the plugins that keep a state up by AddPod and RemovePod. It calls none:
// it is for the loop.
func (h *Host) extended() string {
	var names []string
	for _, p := range h.at(pointPreFilter) {
		if p.extends {
			names = append(names, p.name)
		}
	}
	return strings.Join(names, ",")
}

// place returns where the plugin stands in the profile's order at the point, from 1 on; 0: it
// is not enabled there.
func (h *Host) place(pt point, plugin string) int { return h.places[pt][plugin] }
