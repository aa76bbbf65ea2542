package machine

import (
	"fmt"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/recovered"
)

// panicked reports a contained panic to Options.Panicked.
func (m *Machine) panicked(p *recovered.Panic) {
	if m.options.Panicked != nil {
		m.options.Panicked(p)
	}
}

// guard runs f for the pod and contains a panic to it: the error names where
// it happened. State that a half-done try left behind is undone.
func (m *Machine) guard(point, plugin string, f func()) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = m.contain(point, plugin, r)
		}
	}()
	f()
	return nil
}

// guardEach runs f for each of the plugins until it returns false, and contains a panic
// as guard does. It returns the last plugin that f was run for.
func (m *Machine) guardEach(point string, plugins []*framework.Plugin, f func(*framework.Plugin) bool) (at *framework.Plugin, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = m.contain(point, at.Name, r)
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
func (m *Machine) contain(point, plugin string, value any) error {
	m.panics++
	m.table.Rollback()
	m.engine.Reset()
	p := recovered.From(calling(point, plugin), value)
	m.panicked(p)
	return p
}

// calling returns where a guarded call was; plugin "" is none.
func calling(point, plugin string) string {
	if plugin == "" {
		return point
	}
	return fmt.Sprintf("running %s plugin %q", point, plugin)
}
