package machine

import (
	"fmt"

	"github.com/berth-scheduler/berth/core/engine"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/recovered"
	"github.com/berth-scheduler/berth/core/table"
)

// guard contains panics of plugins to the pod at hand.
type guard struct {
	table     *table.Table
	engine    *engine.Engine
	options   *Options
	contained int // panics
}

// report reports a contained panic to Options.Panicked.
func (g *guard) report(p *recovered.Panic) {
	if g.options.Panicked != nil {
		g.options.Panicked(p)
	}
}

// run runs f for the pod and contains a panic to it: the error names where
// it happened. State that a half-done try left behind is undone.
func (g *guard) run(point, plugin string, f func()) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = g.contain(point, plugin, r)
		}
	}()
	f()
	return nil
}

// each runs f for each of the plugins until it returns false, and contains a panic
// as guard does. It returns the last plugin that f was run for.
func (g *guard) each(point string, plugins []*framework.Plugin, f func(*framework.Plugin) bool) (at *framework.Plugin, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = g.contain(point, at.Name, r)
		}
	}()
	for _, at = range plugins {
		if !f(at) {
			break
		}
	}
	return at, nil
}

// contain handles a panic of a plugin that was recovered: it undoes what a half-done
// trial left behind, reports the panic, and returns it as an error.
func (g *guard) contain(point, plugin string, value any) error {
	g.contained++
	g.table.Rollback()
	g.engine.Reset()
	p := recovered.From(calling(point, plugin), value)
	g.report(p)
	return p
}

// calling returns where a guarded call was; plugin "" is none.
func calling(point, plugin string) string {
	if plugin == "" {
		return point
	}
	return fmt.Sprintf("running %s plugin %q", point, plugin)
}
