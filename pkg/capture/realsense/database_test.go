package realsense

import (
	"encoding/binary"
	"strings"
	"testing"
)

func database(page uint16, pages uint32) *[sqliteHeader]byte {
	var header [sqliteHeader]byte
	copy(header[:], "SQLite format 3\x00")
	binary.BigEndian.PutUint16(header[16:], page)
	binary.BigEndian.PutUint32(header[28:], pages)
	return &header
}

func TestCheckDatabase(t *testing.T) {
	changed := database(4096, 10)
	changed[24] = 1
	tests := []struct {
		name   string
		header *[sqliteHeader]byte
		size   int64
		says   string // "" means no error
	}{
		{"whole", database(4096, 10), 40960, ""},
		{"one byte less", database(4096, 10), 40959, "40959 bytes of 40960"},
		{"pages of 64 KiB", database(1, 2), 131072, ""},
		{"half of them", database(1, 2), 65536, "65536 bytes of 131072"},
		{"a count that does not count", changed, 100, ""},
		{"odd pages", database(1000, 10), 40960, "1000 bytes"},
		{"no database", new([sqliteHeader]byte), 40960, "not an SQLite database"},
	}
	for _, test := range tests {
		err := checkDatabase(test.header, test.size)
		if (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: got %v, expected %q", test.name, err, test.says)
		}
	}
}

func FuzzCheckDatabase(f *testing.F) {
	f.Add(database(4096, 10)[:], int64(40960))
	f.Add(database(1, 1<<31)[:], int64(1))
	f.Fuzz(func(t *testing.T, data []byte, size int64) {
		var header [sqliteHeader]byte
		copy(header[:], data)
		if checkDatabase(&header, size) == nil && size < 0 && binary.BigEndian.Uint32(header[28:]) > 0 &&
			[4]byte(header[24:]) == [4]byte(header[92:]) {
			t.Errorf("%d bytes are enough for pages", size)
		}
	})
}
