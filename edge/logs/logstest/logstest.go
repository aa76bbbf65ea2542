// Package logstest keeps log lines, for tests that look for them.
package logstest

import (
	_ "embed" // for Lines
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/go-logr/logr"
)

// Line is a line that was written: its verbosity ("V2", or "E" for an error), its
// message and its keys.
type Line struct {
	Level, Message string
	Keys           []string
}

// Sink keeps the lines up to a verbosity. Its zero value is ready for use.
type Sink struct {
	Verbosity int

	mu    sync.Mutex
	lines []Line
}

// Logger writes to the sink.
func (s *Sink) Logger() logr.Logger { return logr.New(s) }

// Lines are those that were written since the last call.
func (s *Sink) Lines() []Line {
	s.mu.Lock()
	defer s.mu.Unlock()
	lines := s.lines
	s.lines = nil
	return lines
}

// Init implements logr.LogSink.
func (s *Sink) Init(logr.RuntimeInfo) {}

// Enabled implements logr.LogSink.
func (s *Sink) Enabled(level int) bool { return level <= s.Verbosity }

// WithValues implements logr.LogSink.
func (s *Sink) WithValues(...any) logr.LogSink { return s }

// WithName implements logr.LogSink.
func (s *Sink) WithName(string) logr.LogSink { return s }

// Info implements logr.LogSink.
func (s *Sink) Info(level int, message string, values ...any) {
	s.write(fmt.Sprint("V", level), message, values)
}

// Error implements logr.LogSink.
func (s *Sink) Error(_ error, message string, values ...any) { s.write("E", message, values) }

func (s *Sink) write(level, message string, values []any) {
	l := Line{Level: level, Message: message}
	for i := 0; i < len(values); i += 2 {
		l.Keys = append(l.Keys, fmt.Sprint(values[i]))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, l)
}

// Lines are the lines of kube-scheduler that Berth writes, one a row:
// "verbosity | message | keys | test".
//
//go:embed lines.txt
var Lines string

// Missing returns those of the test's Lines that are not among the written ones.
func Missing(test string, written []Line) (missing []string) {
	for row := range strings.Lines(Lines) {
		f := strings.Split(strings.TrimSpace(row), " | ")
		if strings.HasPrefix(row, "#") || len(f) != 4 || f[3] != test {
			continue
		}
		var keys []string
		if f[2] != "none" {
			keys = strings.Split(f[2], ", ")
		}
		if !slices.ContainsFunc(written, func(l Line) bool {
			return l.Level == f[0] && l.Message == f[1] && !slices.ContainsFunc(keys, func(k string) bool { return !slices.Contains(l.Keys, k) })
		}) {
			missing = append(missing, row)
		}
	}
	return missing
}
