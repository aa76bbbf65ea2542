package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// lockFile takes the lock of a file for as long as the file stays open, that is
// at most until the process ends.
func lockFile(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("the lab's directory: %w", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		file.Close()
		return nil, fmt.Errorf("%s is in use by another lab (%w): end that one, or name another directory", filepath.Dir(path), err)
	}
	return file, nil
}
