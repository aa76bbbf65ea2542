//go:build unix

package manifest

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// A pipe that nobody writes to cannot even be opened: that it is read is told before.
func TestReadingIsToldBeforeOpening(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	s := NewSet()
	s.Reading = func(name string) func() {
		go func() { _ = os.WriteFile(name, []byte(" "), 0o600) }() // the writer comes only now
		return func() {}
	}
	if err := s.Files([]string{pipe}, nil, 1); err != nil {
		t.Error(err)
	}
}
