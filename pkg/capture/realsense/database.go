package realsense

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// sqliteHeader is the length of the header of an SQLite database (sqlite.org/fileformat.html,
// section 1.3).
const sqliteHeader = 100

// checkFile returns an error for damage that is visible from outside: SQLite does not notice that
// the end of a file is missing until it reads there.
func checkFile(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return errors.New("not a regular file")
	case !strings.EqualFold(filepath.Ext(path), ".db3"):
		return nil // the library checks its own format
	}
	var header [sqliteHeader]byte
	if _, err := io.ReadFull(file, header[:]); err != nil {
		return fmt.Errorf("%d bytes, expected an SQLite database", info.Size())
	}
	return checkDatabase(&header, info.Size())
}

// checkDatabase compares the size of the database with its header.
func checkDatabase(header *[sqliteHeader]byte, size int64) error {
	if string(header[:16]) != "SQLite format 3\x00" {
		return errors.New("not an SQLite database")
	}
	page := int64(binary.BigEndian.Uint16(header[16:]))
	if page == 1 {
		page = 65536
	}
	if page < 512 || page&(page-1) != 0 {
		return fmt.Errorf("the page size is %d bytes, expected a power of 2 from 512 to 65536", page)
	}
	// The number of pages is valid only if the last writer updated it, which means that both change
	// counters agree.
	if [4]byte(header[24:]) != [4]byte(header[92:]) {
		return nil
	}
	if pages := int64(binary.BigEndian.Uint32(header[28:])); size < pages*page {
		return fmt.Errorf("the file is cut off: %d bytes of %d", size, pages*page)
	}
	return nil
}
