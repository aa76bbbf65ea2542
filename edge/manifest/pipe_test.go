//go:build unix

package manifest

import (
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
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

// What is no file in a folder is left out, and said: a pipe is not waited for. A link to a
// file is read, and a pipe that is named by itself.
func TestFolderWithPipes(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	socket, err := net.Listen("unix", path("d.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	const node = "{apiVersion: v1, kind: Node, metadata: {name: n1}}"
	if err := errors.Join(syscall.Mkfifo(path("a.yaml"), 0o600), os.Symlink("/dev/zero", path("b.yaml")), os.Mkdir(path("sub"), 0o700), os.Symlink("sub", path("c.yaml")),
		os.WriteFile(path("text"), []byte(node), 0o600), os.Symlink("text", path("e.yaml"))); err != nil {
		t.Fatal(err)
	}
	s := NewSet()
	if err := s.Files([]string{dir}, nil, 1); err != nil || len(s.Nodes) != 1 {
		t.Fatalf("%v, %d nodes", err, len(s.Nodes))
	}
	for _, want := range []string{"a.yaml: is a named pipe", "b.yaml: is a device", "c.yaml: is a directory", "d.yaml: is a socket"} {
		if !slices.Contains(s.Notices, path(want)+", not a regular file; it is left out") {
			t.Errorf("%q do not say %s", s.Notices, want)
		}
	}
	if err := NewSet().Files([]string{path("d.yaml")}, nil, 1); err == nil || !strings.HasSuffix(err.Error(), "d.yaml: is a socket, not a regular file") {
		t.Error(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		_, _ = w.WriteString(node)
		_ = w.Close()
	}()
	defer r.Close()
	s = NewSet()
	if err := s.Files([]string{"/dev/fd/" + strconv.Itoa(int(r.Fd()))}, nil, 1); err != nil || len(s.Nodes) != 1 {
		t.Errorf("%v, %d nodes", err, len(s.Nodes))
	}
}

// Of a gigabyte of NULs no more is read than the first block. Standard input counts the
// blocks, as a file cannot.
func TestGigabyteOfNULs(t *testing.T) {
	file := filepath.Join(t.TempDir(), "sparse.yaml")
	if err := errors.Join(os.WriteFile(file, nil, 0o600), os.Truncate(file, 1<<30)); err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if err := NewSet().Files([]string{file}, nil, 1); err == nil || err.Error() != file+": is no text: byte 0 is NUL" {
		t.Error(err)
	}
	runtime.ReadMemStats(&after)
	if made := after.TotalAlloc - before.TotalAlloc; made > 1<<20 {
		t.Errorf("%d bytes of memory were made for a file that is no text", made)
	}
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := NewSet().Files([]string{"-"}, f, 1); err == nil || err.Error() != "standard input: is no text: byte 0 is NUL" {
		t.Error(err)
	}
	if at, err := f.Seek(0, io.SeekCurrent); err != nil || at > 1<<16 {
		t.Errorf("%d bytes were read, %v", at, err)
	}
}
