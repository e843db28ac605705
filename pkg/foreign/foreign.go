//go:build (amd64 || arm64) && ((linux && cgo && !android) || (darwin && !ios) || windows)

package foreign

import "github.com/ebitengine/purego"

// Supported reports whether this program can open libraries.
const Supported = true

// Unsupported is the reason if Supported is false.
const Unsupported = ""

// Bind makes a Go function of a C function: function is a pointer to a variable of a type of function.
func Bind(function any, address uintptr) { purego.RegisterFunc(function, address) }

// Invoke calls a C function with integer and pointer arguments without allocating.
func Invoke(address uintptr, arguments []uintptr) uintptr {
	result, _, _ := purego.SyscallN(address, arguments...)
	return result
}
