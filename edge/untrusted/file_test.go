package untrusted

import (
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// A regular file is read, also behind a link. What is none is refused at once, and a file
// that is too long when that many bytes were read.
func TestFile(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	socket, err := net.Listen("unix", path("socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	for _, err := range []error{
		os.WriteFile(path("file"), []byte("text"), 0o600), os.Symlink("file", path("link")),
		syscall.Mkfifo(path("pipe"), 0o600), os.Symlink("/dev/zero", path("endless")), os.Symlink("pipe", path("to-pipe")),
		os.WriteFile(path("long"), nil, 0o600), os.Truncate(path("long"), 1<<30), os.WriteFile(path("five"), []byte("bytes"), 0o600),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"file", "link"} {
		if data, err := File(path(name), 4); err != nil || string(data) != "text" {
			t.Errorf("%s: %q %v", name, data, err)
		}
	}
	for name, want := range map[string]string{
		"pipe": "is a named pipe, not a regular file", "to-pipe": "is a named pipe, not a regular file", "endless": "is a device, not a regular file",
		"socket": "is a socket, not a regular file", ".": "is a directory, not a regular file", "five": "is longer than 4 bytes", "long": "is longer than 4 bytes",
	} {
		data, err := File(path(name), 4)
		if err == nil || data != nil || !strings.HasSuffix(err.Error(), path(name)+": "+want) {
			t.Errorf("%s: %d bytes, %v, want %s", name, len(data), err, want)
		}
		if err := Check(path(name), 4); err == nil {
			t.Errorf("%s passes the check", name)
		}
	}
	if _, err := File(path("none"), 4); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	if err := errors.Join(Check("", 4), Check(path("file"), 4)); err != nil {
		t.Error(err)
	}
}

// endless is a stream of zeros. It counts those that were read.
type endless struct{ read int64 }

func (e *endless) Read(p []byte) (int, error) {
	e.read += int64(len(p))
	return len(p), nil
}

// Of an endless stream no more is read than its bound.
func TestAll(t *testing.T) {
	from := &endless{}
	if data, err := All(from, 3<<20); err == nil || err.Error() != "is longer than 3 MiB" || data != nil || from.read > 3<<20+1 {
		t.Errorf("%d bytes, %v, %d were read", len(data), err, from.read)
	}
	if data, err := All(strings.NewReader("text"), 4); err != nil || string(data) != "text" {
		t.Errorf("%q %v", data, err)
	}
	if _, err := All(io.MultiReader(strings.NewReader("te"), failing{}), 4); !errors.Is(err, io.ErrClosedPipe) {
		t.Error(err)
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, io.ErrClosedPipe }

// A read that hangs is given up. There are only so many of them: then no other begins,
// until one ends.
func TestReadThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		end, begun := make(chan struct{}), 0
		hang := func() ([]byte, error) {
			begun++
			<-end
			return nil, nil
		}
		outside := places
		defer func() { places = outside }()
		places = make(chan struct{}, 2)
		for range 3 {
			if _, err := within("x", hang); err == nil || !strings.Contains(err.Error(), "x: cannot be read: there is no answer within 10s") {
				t.Errorf("%v", err)
			}
		}
		synctest.Wait()
		if begun != 2 {
			t.Errorf("%d reads began, want 2", begun)
		}
		end <- struct{}{}
		synctest.Wait()
		if data, err := within("x", func() ([]byte, error) { return []byte("text"), nil }); err != nil || string(data) != "text" {
			t.Errorf("%q %v", data, err)
		}
		close(end)
		synctest.Wait()
	})
}

// A named pipe that nobody has opened for writing is given up; one with a writer is opened.
func TestOpenAny(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := openAny(pipe, time.Millisecond); err == nil || !strings.Contains(err.Error(), "nobody writes to it") {
		t.Errorf("without a writer: %v", err)
	}
	go func() { _ = os.WriteFile(pipe, []byte("text"), 0) }()
	f, err := OpenAny(pipe)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if text, err := io.ReadAll(f); string(text) != "text" || err != nil {
		t.Errorf("with a writer: %q, %v", text, err)
	}
}
