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

// Panic is a panic that was recovered, as an error to report.
type Panic struct {
	// What is what panicked, such as `running Filter plugin "NodeName"`; "" if unknown.
	What string
	// Value is the text of the panic's value. It is made where the panic is recovered,
	// as a plugin may change the value later.
	Value string
	// Site is the file and line that raised the panic, such as filter.go:12.
	Site string
	// Stack is the stack of the goroutine that panicked. It is set if that goroutine may be
	// gone when the panic is reported.
	Stack string
}

// Error returns one line: what panicked, the value and the site.
func (p *Panic) Error() string {
	return strings.TrimPrefix(fmt.Sprintf("%s panicked: %s (%s)", p.What, p.Value, p.Site), " ")
}

// From returns the description of a panic; a deferred function calls it with the value that
// recover returned. A *Panic value, which was raised again on another goroutine, keeps its
// site and stack.
func From(what string, value any) *Panic {
	if p, again := value.(*Panic); again {
		return &Panic{What: what, Value: p.Value, Site: p.Site, Stack: p.Stack}
	}
	return &Panic{What: what, Value: fmt.Sprint(value), Site: site()}
}

// WithStack sets Stack to the present goroutine's stack, unless Stack is set, and returns p.
func (p *Panic) WithStack() *Panic {
	if p.Stack == "" {
		p.Stack = string(debug.Stack())
	}
	return p
}

// site returns the file, without its directory, and the line that raised the panic which is
// being recovered. Call it in the deferred function.
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
