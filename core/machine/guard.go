package machine

import (
	"fmt"

	"github.com/berth-scheduler/berth/core/recovered"
)

// panicked tells of a panic that is being contained.
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
			m.panics++
			m.table.Rollback()
			m.engine.Reset()
			p := recovered.From(calling(point, plugin), r)
			m.panicked(p)
			err = p
		}
	}()
	f()
	return nil
}

// calling says where a guarded call was; plugin "" is none.
func calling(point, plugin string) string {
	if plugin == "" {
		return point
	}
	return fmt.Sprintf("running %s plugin %q", point, plugin)
}
