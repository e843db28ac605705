//go:build !amd64 && !arm64

package packetlog

import "unsafe"

func prefetch(unsafe.Pointer, int) {}
