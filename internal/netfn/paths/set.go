package paths

import (
	"math/bits"
	"strconv"
	"strings"

	"github.com/volsfu/volsfu/internal/netfn/wire"
)

// Set is a set of paths: bit i is path i.
type Set uint8

// Has reports whether the set contains a path.
func (s Set) Has(path int) bool { return s&(1<<path) != 0 }

// Len returns the number of paths.
func (s Set) Len() int { return bits.OnesCount8(uint8(s)) }

// String returns the paths' indexes, "0+2", or "none".
func (s Set) String() string {
	if s == 0 {
		return "none"
	}
	var names []string
	for i := range wire.MaxPaths {
		if s.Has(i) {
			names = append(names, strconv.Itoa(i))
		}
	}
	return strings.Join(names, "+")
}

// contains reports whether every path of other is in the set.
func (s Set) contains(other Set) bool { return other&^s == 0 }

// of returns the set of one path.
func of(path int) Set { return 1 << path }
