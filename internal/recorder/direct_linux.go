package recorder

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// maxVector is the number of buffers of one write: 4 MiB.
const maxVector = 64

// create creates a file that only this user can read, and reports whether it is open for direct writing: the kernel
// neither copies the data nor keeps a copy of the file in memory.
func create(path string) (file *os.File, direct bool, err error) {
	const flags = os.O_WRONLY | os.O_CREATE | os.O_EXCL
	file, err = os.OpenFile(path, flags|unix.O_DIRECT, 0o600)
	if !errors.Is(err, unix.EINVAL) {
		return file, err == nil, err
	}
	// A file system without direct writing may have created the file.
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, false, err
	}
	file, err = os.OpenFile(path, flags, 0o600)
	return file, false, err
}

// endDirect ends direct writing.
func endDirect(file *os.File) error {
	flags, err := unix.FcntlInt(file.Fd(), unix.F_GETFL, 0)
	if err != nil {
		return err
	}
	_, err = unix.FcntlInt(file.Fd(), unix.F_SETFL, flags&^unix.O_DIRECT)
	return err
}

// writeAt writes buffers to consecutive positions of a file.
func writeAt(file *os.File, data [][]byte, at int64) error {
	for len(data) > 0 {
		n, err := unix.Pwritev(int(file.Fd()), data[:min(len(data), maxVector)], at)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return &os.PathError{Op: "write", Path: file.Name(), Err: err}
		}
		at += int64(n)
		for len(data) > 0 && n >= len(data[0]) {
			n -= len(data[0])
			data = data[1:]
		}
		if n > 0 {
			data[0] = data[0][n:]
		}
	}
	return nil
}
