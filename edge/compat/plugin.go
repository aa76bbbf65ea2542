package compat

import (
	"context"
	"reflect"

	fwk "k8s.io/kube-scheduler/framework"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/edge/config/features"
)

// hostedPlugin is a hosted plugin as each interface that it implements. A field is nil if the
// plugin does not implement its interface.
type hostedPlugin struct {
	name            string
	preEnqueue      fwk.PreEnqueuePlugin
	queueSort       fwk.QueueSortPlugin
	preFilter       fwk.PreFilterPlugin
	filter          fwk.FilterPlugin
	postFilter      fwk.PostFilterPlugin
	preScore        fwk.PreScorePlugin
	score           fwk.ScorePlugin
	reserve         fwk.ReservePlugin
	permit          fwk.PermitPlugin
	preBind         fwk.PreBindPlugin
	bind            fwk.BindPlugin
	postBind        fwk.PostBindPlugin
	generate        fwk.PlacementGeneratePlugin
	placementScore  fwk.PlacementScorePlugin
	groupPostFilter fwk.PodGroupPostFilterPlugin
	events          fwk.EnqueueExtensions
	sign            fwk.SignPlugin
	extends         bool // PreFilterExtensions was not nil when the plugin was made
}

// newHostedPlugin returns the plugin with the interfaces that it implements.
func newHostedPlugin(name string, pl fwk.Plugin) *hostedPlugin {
	p := &hostedPlugin{name: name}
	p.preEnqueue, _ = pl.(fwk.PreEnqueuePlugin)
	p.queueSort, _ = pl.(fwk.QueueSortPlugin)
	p.preFilter, _ = pl.(fwk.PreFilterPlugin)
	p.filter, _ = pl.(fwk.FilterPlugin)
	p.postFilter, _ = pl.(fwk.PostFilterPlugin)
	p.preScore, _ = pl.(fwk.PreScorePlugin)
	p.score, _ = pl.(fwk.ScorePlugin)
	p.reserve, _ = pl.(fwk.ReservePlugin)
	p.permit, _ = pl.(fwk.PermitPlugin)
	p.preBind, _ = pl.(fwk.PreBindPlugin)
	p.bind, _ = pl.(fwk.BindPlugin)
	p.postBind, _ = pl.(fwk.PostBindPlugin)
	p.generate, _ = pl.(fwk.PlacementGeneratePlugin)
	p.placementScore, _ = pl.(fwk.PlacementScorePlugin)
	p.groupPostFilter, _ = pl.(fwk.PodGroupPostFilterPlugin)
	p.events, _ = pl.(fwk.EnqueueExtensions)
	p.sign, _ = pl.(fwk.SignPlugin)
	p.extends = p.preFilter != nil && p.preFilter.PreFilterExtensions() != nil
	return p
}

// isNil reports whether pl is nil or a nil pointer. A nil pointer to a type without data, such as
// an empty struct, is not: its methods may work.
func isNil(pl fwk.Plugin) bool {
	if pl == nil {
		return true
	}
	v := reflect.ValueOf(pl)
	return v.Kind() == reflect.Pointer && v.IsNil() && v.Type().Elem().Size() > 0
}

// tellUncalled logs the plugin's interfaces that are not called for want of a feature gate.
func (h *Host) tellUncalled(p *hostedPlugin) {
	if p.groupPostFilter != nil && !h.options.PodGroups {
		h.tell(p, "PodGroupPostFilterPlugin", "gate", features.GenericWorkload)
	}
	if h.options.GroupPlacements {
		return
	}
	if p.generate != nil {
		h.tell(p, "PlacementGeneratePlugin", "gate", features.TopologyAwareWorkloadScheduling)
	}
	if p.placementScore != nil {
		h.tell(p, "PlacementScorePlugin", "gate", features.TopologyAwareWorkloadScheduling)
	}
}

// tell logs that a plugin's interface or function, what, is not called. more are keys and values
// for the log.
func (h *Host) tell(p *hostedPlugin, what string, more ...any) {
	h.options.Logger.Info("Plugin implements what is not called", append([]any{"plugin", p.name, "profile", h.name, "what", what}, more...)...)
}

// adapt returns a plugin of core's framework whose functions call the hosted plugin. It returns an
// error if the plugin's EventsToRegister fails or names an unknown resource.
func (h *Host) adapt(ctx context.Context, p *hostedPlugin) (*framework.Plugin, error) {
	native := &framework.Plugin{Name: p.name}
	native.Hosted, native.Locality = &framework.HostedPlugin{Host: h}, framework.Anything
	var err error
	if native.EventsToRegister, err = h.eventsOf(ctx, p); err != nil {
		return nil, err
	}
	h.adaptQueue(native, p)
	h.adaptFilter(native, p)
	h.adaptScore(native, p)
	h.adaptReserve(native, p)
	h.adaptPlacement(native, p)
	h.adaptGroupPostFilter(native, p)
	native.Hosted.Blocking = framework.Blocking{PreBind: p.preBind != nil, Bind: p.bind != nil, PostBind: p.postBind != nil}
	return native, nil
}

// adaptQueue sets the native plugin's PreEnqueue and Less to functions that call the hosted plugin,
// as far as it implements them. Less runs on the loop itself, without a time limit.
func (h *Host) adaptQueue(native *framework.Plugin, p *hostedPlugin) {
	if p.preEnqueue != nil {
		native.PreEnqueue = h.preEnqueue(p)
	}
	if p.queueSort != nil {
		native.Less = func(a, b *framework.QueuedPodInfo) bool {
			return p.queueSort.Less(&queuedPod{entry: a}, &queuedPod{entry: b})
		}
	}
}
