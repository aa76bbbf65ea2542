package compat

import (
	"strings"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/profile"
)

// point is an extension point at which a plugin may run the profile's other plugins through
// its Handle.
type point int

// The points whose plugins a plugin may run through its Handle; the host runs hosted plugins at
// others, too. points is their number. The first signedPoints of them are those at which plugins
// filter or score: Sign asks the plugins that are enabled there.
const (
	pointPreFilter point = iota
	pointFilter
	pointPreScore
	pointScore
	pointReserve
	points
	signedPoints = pointReserve
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
	case pointScore:
		return p.score != nil
	default:
		return p.reserve != nil
	}
}

// Built records which plugins each profile has enabled at which points, with their order and
// weights. Call it once, when the profiles are complete: a plugin that was made need not be
// enabled.
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
		host.enable(pointReserve, p.Reserve)
		host.findSigners()
	}
}

// enable appends the plugins to those enabled at the point, in the profile's order. Native
// ones get a place too, so that the rejection of the first plugin in the order is reported.
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

// at returns the hosted plugins that are enabled at the point, in the profile's order.
func (h *Host) at(pt point) []*hostedPlugin { return h.enabled[pt] }

// extended returns the names, comma-separated, of the enabled plugins with
// PreFilterExtensions. It calls no plugin.
func (h *Host) extended() string {
	var names []string
	for _, p := range h.at(pointPreFilter) {
		if p.extends {
			names = append(names, p.name)
		}
	}
	return strings.Join(names, ",")
}

// place returns the plugin's position in the profile's order at the point, from 1; 0 if
// it is not enabled there.
func (h *Host) place(pt point, plugin string) int { return h.places[pt][plugin] }
