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
