// Package recovered describes panics that were contained: what panicked, with which
// value, and where in the code.
package recovered

import (
	"fmt"
	"path"
	"runtime"
	"runtime/debug"
	"strings"
)

// Panic is a panic that was contained.
type Panic struct {
	// What panicked, such as `running Filter plugin "NodeName"`; "" where nobody knows.
	What string
	// Value is the text of the panic's value. It is made where the panic is recovered,
	// as a plugin may change the value later.
	Value string
	// Site is the file and line that raised the panic.
	Site string
	// Stack is the stack of the goroutine that panicked. It is set where that goroutine
	// may be gone when the panic is reported.
	Stack string
}

func (p *Panic) Error() string {
	return strings.TrimPrefix(fmt.Sprintf("%s panicked: %s (%s)", p.What, p.Value, p.Site), " ")
}

// From describes what a deferred function has just recovered. A *Panic is one
// that was raised again on another goroutine: it keeps its site and its stack.
func From(what string, value any) *Panic {
	if p, again := value.(*Panic); again {
		return &Panic{What: what, Value: p.Value, Site: p.Site, Stack: p.Stack}
	}
	return &Panic{What: what, Value: fmt.Sprint(value), Site: site()}
}

// WithStack adds the stack of the goroutine, if no other stack is known.
func (p *Panic) WithStack() *Panic {
	if p.Stack == "" {
		p.Stack = string(debug.Stack())
	}
	return p
}

// site returns the file and line that raised the panic which is being handled.
func site() string {
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
