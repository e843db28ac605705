//go:build !((amd64 || arm64) && ((linux && cgo && !android) || (darwin && !ios) || windows))

package rs2

// Supported reports whether this program can open libraries.
const Supported = false

// Without cgo, programs for Linux are static, and a static program has no loader that could open a
// library.
const unsupported = "this program was built without it: programs for macOS and Windows have it, and those for " +
	"Linux that are built with cgo, on amd64 and arm64"

func openLibrary(string) (uintptr, error) { panic("no library is opened where none is supported") }
func symbol(uintptr, string) (uintptr, bool) {
	panic("no symbol is looked for where none is supported")
}
func bind(any, uintptr)                 { panic("no function is bound where none is supported") }
func invoke(uintptr, []uintptr) uintptr { panic("no function is called where none is supported") }
