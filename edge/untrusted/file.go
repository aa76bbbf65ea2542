package untrusted

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"
)

// Bounds of files, in bytes.
const (
	Config      = 10 << 20 // a configuration, or a kubeconfig
	Certificate = 1 << 20  // certificates, a key, or a token
)

// patience is how long reading a file may take.
const patience = 10 * time.Second

// places are held by the reads under way. One that was given up keeps its place until it
// ends: a file system that hangs takes a thread for each.
var places = make(chan struct{}, 8)

var errHangs = fmt.Errorf("cannot be read: there is no answer within %s", patience)

// File returns the content of a regular file of at most that many bytes. It gives up
// after a while.
func File(path string, most int64) ([]byte, error) {
	return within(path, func() ([]byte, error) {
		f, err := Open(path)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		data, err := All(f, most)
		return data, at(path, err)
	})
}

// Check reports why a library may not read the file: it is no regular file, has more than
// that many bytes, or cannot be read. An empty path names no file.
func Check(path string, most int64) error {
	if path == "" {
		return nil
	}
	_, err := File(path, most)
	return err
}

// within returns what read returns. It gives up after a while, and read goes on alone then.
func within(path string, read func() ([]byte, error)) ([]byte, error) {
	type result struct {
		data []byte
		err  error
	}
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case places <- struct{}{}:
	case <-late.C:
		return nil, at(path, errHangs)
	}
	done := make(chan result, 1)
	go func() {
		defer func() { <-places }()
		data, err := read()
		done <- result{data, err}
	}()
	select {
	case r := <-done:
		return r.data, r.err
	case <-late.C:
		return nil, at(path, errHangs)
	}
}

// OpenAny opens a file of any kind, and gives up a named pipe that nobody has opened for
// writing within three seconds. Reading from a pipe may take for ever.
func OpenAny(path string) (*os.File, error) { return openAny(path, writerTime) }

func openAny(path string, patience time.Duration) (*os.File, error) {
	type result struct {
		f   *os.File
		err error
	}
	done := make(chan result, 1)
	go func() {
		f, err := os.Open(path) // #nosec G304 -- the user names the file
		done <- result{f, err}
	}()
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case r := <-done:
		return r.f, r.err
	case <-late.C:
		return nil, at(path, errNoWriter)
	}
}

// writerTime is how long a named pipe may be without a writer.
const writerTime = 3 * time.Second

var errNoWriter = fmt.Errorf("is a named pipe, and nobody writes to it for %s", writerTime)

// Open opens a regular file. It does not wait for the writer of a named pipe.
func Open(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // #nosec G304 -- the user names the file
	if errors.Is(err, syscall.ENXIO) {
		return nil, at(path, &NotRegular{fs.ModeSocket})
	}
	if err != nil {
		return nil, err
	}
	stat, err := f.Stat()
	if err == nil && !stat.Mode().IsRegular() {
		err = at(path, &NotRegular{stat.Mode()})
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// NotRegular is the error about what stands in the place of a regular file.
type NotRegular struct{ Mode fs.FileMode }

func (e *NotRegular) Error() string {
	what := "a device"
	switch {
	case e.Mode.IsDir():
		what = "a directory"
	case e.Mode&fs.ModeNamedPipe != 0:
		what = "a named pipe"
	case e.Mode&fs.ModeSocket != 0:
		what = "a socket"
	}
	return "is " + what + ", not a regular file"
}

// All reads to the end, which has to come after at most that many bytes.
func All(from io.Reader, most int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(from, most+1))
	if err == nil && int64(len(data)) > most {
		return nil, tooLong(most)
	}
	return data, err
}

func tooLong(most int64) error {
	if most%(1<<20) == 0 {
		return fmt.Errorf("is longer than %d MiB", most>>20)
	}
	return fmt.Errorf("is longer than %d bytes", most)
}

// at names the file as package os does.
func at(path string, err error) error {
	if err == nil {
		return nil
	}
	return &os.PathError{Op: "read", Path: path, Err: err}
}
