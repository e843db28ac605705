//go:build amd64 || arm64

package packetlog

import "unsafe"

// prefetch begins to load lines of the cache, the first of which contains p.
//
//go:noescape
func prefetch(p unsafe.Pointer, lines int)
