package machine

import (
	"fmt"
	"path"
	"runtime"
	"strings"
)

// PanicSite is the file and line where the panic that is being handled was raised.
// It is for a deferred function that recovers.
func PanicSite() string {
	callers := make([]uintptr, 64)
	frames := runtime.CallersFrames(callers[:runtime.Callers(1, callers)])
	panicked := false
	for {
		frame, more := frames.Next()
		switch {
		case frame.Function == "runtime.gopanic":
			panicked = true
		case panicked && !strings.HasPrefix(frame.Function, "runtime."):
			return fmt.Sprintf("%s:%d", path.Base(frame.File), frame.Line)
		}
		if !more {
			return "unknown site"
		}
	}
}

// Panic is a panic that was contained: what panicked, with which value, and where in
// the code.
type Panic struct {
	What  string
	Value any
	Site  string
	// Stack is set where nobody else is told of the panic.
	Stack string
}

func (p *Panic) Error() string { return fmt.Sprintf("%spanicked: %v (%s)", p.What, p.Value, p.Site) }

// panicked tells of a panic that is being contained.
func (m *Machine) panicked(p *Panic) {
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
			p := &Panic{What: calling(point, plugin) + " ", Value: r, Site: PanicSite()}
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
