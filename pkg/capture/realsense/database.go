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

// sqliteHeader is the length of what a database of SQLite begins with (sqlite.org/fileformat.html, section 1.3).
const sqliteHeader = 100

// checkFile tells what is wrong with a recording that can be seen from outside: SQLite does not miss the end of a file before it needs it.
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
		return errors.New("it is no file")
	case !strings.EqualFold(filepath.Ext(path), ".db3"):
		return nil // the library knows what it reads
	}
	var header [sqliteHeader]byte
	if _, err := io.ReadFull(file, header[:]); err != nil {
		return fmt.Errorf("%d bytes, expected a database of SQLite", info.Size())
	}
	return checkDatabase(&header, info.Size())
}

// checkDatabase holds the size of a database against what its header says.
func checkDatabase(header *[sqliteHeader]byte, size int64) error {
	if string(header[:16]) != "SQLite format 3\x00" {
		return errors.New("it is no database of SQLite")
	}
	page := int64(binary.BigEndian.Uint16(header[16:]))
	if page == 1 {
		page = 65536
	}
	if page < 512 || page&(page-1) != 0 {
		return fmt.Errorf("its pages have %d bytes, expected a power of 2 from 512 to 65536", page)
	}
	// The number of pages counts where the last writer knew of it: where both change counters agree.
	if [4]byte(header[24:]) != [4]byte(header[92:]) {
		return nil
	}
	if pages := int64(binary.BigEndian.Uint32(header[28:])); size < pages*page {
		return fmt.Errorf("it was cut off: %d bytes of %d", size, pages*page)
	}
	return nil
}
