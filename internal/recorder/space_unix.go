//go:build unix && !openbsd && !netbsd && !solaris && !illumos && !aix

package recorder

import "golang.org/x/sys/unix"

// freeBytes returns the bytes that the process may still write in the file system of a directory.
func freeBytes(directory string) (int64, bool) {
	var s unix.Statfs_t
	if err := unix.Statfs(directory, &s); err != nil {
		return 0, false
	}
	return int64(s.Bavail) * int64(s.Bsize), true
}
