package shadow

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"k8s.io/klog/v2"
)

// fileLimit is how long the file grows. The one before it is kept under the same name
// with ".1".
const fileLimit = 64 << 20

// File takes differences as lines of JSON. It is at most twice fileLimit on disk.
type File struct {
	path   string
	logger klog.Logger
	file   *os.File
	size   int64
	limit  int64
	failed bool // the last line was not written
}

// OpenFile opens the file, whose lines stay, or makes it.
func OpenFile(path string, logger klog.Logger) (*File, error) {
	f := &File{path: path, logger: logger, limit: fileLimit}
	if err := f.open(); err != nil {
		return nil, err
	}
	return f, nil
}

func (f *File) open() error {
	file, err := os.OpenFile(f.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	at, err := file.Stat()
	if err != nil {
		return fmt.Errorf("%w (%v)", err, file.Close())
	}
	f.file, f.size = file, at.Size()
	return nil
}

// write adds a line. What cannot be written is lost; that it is so is logged once.
func (f *File) write(r *Record) {
	line, err := json.Marshal(r)
	if err == nil {
		err = f.add(append(line, '\n'))
	}
	if err != nil && !f.failed {
		f.logger.Error(err, "Failed to write the findings of the shadow", "file", f.path)
	}
	f.failed = err != nil
}

func (f *File) add(line []byte) error {
	if f.file == nil {
		if err := f.open(); err != nil {
			return err
		}
	}
	if f.size+int64(len(line)) > f.limit {
		closed := f.file.Close()
		f.file = nil // until it is opened, now or for the next line
		if err := errors.Join(closed, os.Rename(f.path, f.path+".1"), f.open()); err != nil {
			return err
		}
	}
	n, err := f.file.Write(line)
	f.size += int64(n)
	return err
}
