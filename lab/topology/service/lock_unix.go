//go:build unix

package service

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// lock prevents other processes from making sockets in a folder until the returned function is called.
func lock(folder string) (unlock func(), err error) {
	file, err := os.Open(folder)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("lock %s: %w", folder, err)
	}
	return func() { _ = file.Close() }, nil
}
