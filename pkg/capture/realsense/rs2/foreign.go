//go:build (amd64 || arm64) && ((linux && cgo && !android) || (darwin && !ios) || windows)

package rs2

import "github.com/ebitengine/purego"

// Supported reports whether this program can open libraries.
const Supported = true

const unsupported = ""

// bind makes a Go function from a C function.
func bind(function any, address uintptr) { purego.RegisterFunc(function, address) }

// invoke calls a C function with integer and pointer arguments without allocating.
func invoke(address uintptr, arguments []uintptr) uintptr {
	result, _, _ := purego.SyscallN(address, arguments...)
	return result
}
