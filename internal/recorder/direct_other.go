//go:build !linux

package recorder

import "os"

// create creates a file that only this user can read.
func create(path string) (file *os.File, direct bool, err error) {
	file, err = os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	return file, false, err
}

func endDirect(*os.File) error { return nil }

// writeAt writes buffers to consecutive positions of a file.
func writeAt(file *os.File, data [][]byte, at int64) error {
	for _, b := range data {
		if _, err := file.WriteAt(b, at); err != nil {
			return err
		}
		at += int64(len(b))
	}
	return nil
}
