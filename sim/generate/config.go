package generate

import "sigs.k8s.io/yaml"

// profile is the one profile of a world's configuration while it is made.
type profile struct {
	pluginConfig []map[string]any
	plugins      map[string]any
	extenders    []any
}

// profile asks every feature of the mix what it wants configured.
func (b *builder) profile() *profile {
	p := &profile{plugins: map[string]any{}}
	for _, f := range b.mix.features {
		if f.config != nil {
			f.config(b, p)
		}
	}
	return p
}

// args sets the arguments of one plugin.
func (p *profile) args(plugin string, args map[string]any) {
	args["apiVersion"], args["kind"] = "kubescheduler.config.k8s.io/v1", plugin+"Args"
	p.pluginConfig = append(p.pluginConfig, map[string]any{"name": plugin, "args": args})
}

// yaml renders the configuration; one without any choice is empty.
func (p *profile) yaml() string {
	if len(p.pluginConfig) == 0 && len(p.plugins) == 0 && len(p.extenders) == 0 {
		return ""
	}
	prof := map[string]any{"schedulerName": "default-scheduler"}
	if len(p.pluginConfig) > 0 {
		prof["pluginConfig"] = p.pluginConfig
	}
	if len(p.plugins) > 0 {
		prof["plugins"] = p.plugins
	}
	c := map[string]any{
		"apiVersion": "kubescheduler.config.k8s.io/v1",
		"kind":       "KubeSchedulerConfiguration",
		"profiles":   []any{prof},
	}
	if len(p.extenders) > 0 {
		c["extenders"] = p.extenders
	}
	out, err := yaml.Marshal(c)
	if err != nil {
		panic("a configuration of plain maps renders: " + err.Error())
	}
	return string(out)
}

// scoring varies how NodeResourcesFit and NodeResourcesBalancedAllocation look
// at resources.
var scoring = feature{config: func(b *builder, p *profile) {
	if b.chance(65) {
		args := map[string]any{}
		if b.chance(70) {
			args["scoringStrategy"] = strategy(b)
		}
		if b.chance(40) {
			args["ignoredResources"] = []string{fpga}
		}
		if b.chance(40) {
			args["ignoredResourceGroups"] = []string{"ignored.example"}
		}
		p.args("NodeResourcesFit", args)
	}
	if b.chance(35) {
		var resources []map[string]any
		for _, r := range someResources(b) {
			resources = append(resources, map[string]any{"name": r, "weight": 1})
		}
		p.args("NodeResourcesBalancedAllocation", map[string]any{"resources": resources})
	}
}}

func strategy(b *builder) map[string]any {
	s := map[string]any{"type": b.word("LeastAllocated", "MostAllocated", "RequestedToCapacityRatio")}
	var resources []map[string]any
	for _, r := range someResources(b) {
		resources = append(resources, map[string]any{"name": r, "weight": b.pick(1, 1, 2, 3, 7, 100)})
	}
	s["resources"] = resources
	if s["type"] == "RequestedToCapacityRatio" {
		s["requestedToCapacityRatio"] = map[string]any{"shape": somePoints(b)}
	}
	return s
}

// somePoints is a shape: points in order of utilization.
func somePoints(b *builder) []map[string]any {
	var points []map[string]any
	for utilization := b.pick(0, 0, 10); utilization <= 100; utilization += b.pick(10, 25, 50, 100) {
		points = append(points, map[string]any{"utilization": utilization, "score": b.pick(0, 0, b.IntN(11), b.IntN(11))})
	}
	return points
}

// someResources is a choice, never empty and without duplicates.
func someResources(b *builder) []string {
	var some []string
	for _, r := range []string{"cpu", "memory", "ephemeral-storage", gpu, fpga} {
		if b.chance(50) {
			some = append(some, r)
		}
	}
	if len(some) == 0 {
		some = []string{"cpu"}
	}
	return some
}

// plugins varies weights and leaves single plugins out.
var plugins = feature{config: func(b *builder, p *profile) {
	if b.chance(40) {
		p.plugins["multiPoint"] = map[string]any{"enabled": []any{
			map[string]any{"name": b.word("TaintToleration", "NodeAffinity", "NodeResourcesFit", "ImageLocality"), "weight": b.pick(1, 2, 10, 77)},
		}}
	}
	if b.chance(25) {
		p.plugins["score"] = map[string]any{"disabled": []any{
			map[string]any{"name": b.word("ImageLocality", "TaintToleration", "NodeResourcesFit", "NodeResourcesBalancedAllocation")},
		}}
	}
	if b.chance(15) {
		p.plugins["filter"] = map[string]any{"disabled": []any{
			map[string]any{"name": b.word("NodeUnschedulable", "TaintToleration", "NodeResourcesFit")},
		}}
	}
}}
