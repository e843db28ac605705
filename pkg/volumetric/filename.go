package volumetric

import (
	"fmt"
	"strings"
)

// FileName returns a name of a room, participant or publication as part of a file name: all bytes except letters,
// digits, - and _ are written as %XX. Different names have different results.
func FileName(name string) string {
	var b strings.Builder
	for _, c := range []byte(name) {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_' {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}
