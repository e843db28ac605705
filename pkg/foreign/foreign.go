//go:build (amd64 || arm64) && ((linux && cgo && !android) || (darwin && !ios) || windows)

package foreign

import "github.com/ebitengine/purego"

// Supported reports whether this program can open libraries.
const Supported = true

// Unsupported is the reason if Supported is false.
const Unsupported = ""

// Bind sets a variable of a function type to a Go function that calls a C function. The argument function points to the
// variable. Bind panics if the type has arguments or results that C functions cannot have.
func Bind(function any, address uintptr) { purego.RegisterFunc(function, address) }

// Invoke calls a C function with integer and pointer arguments and returns the register of the result, without
// allocating. The result of a narrow type may have other bits above the type's.
func Invoke(address uintptr, arguments []uintptr) uintptr {
	result, _, _ := purego.SyscallN(address, arguments...)
	return result
}
