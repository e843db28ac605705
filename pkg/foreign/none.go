//go:build !((amd64 || arm64) && ((linux && cgo && !android) || (darwin && !ios) || windows))

package foreign

// Supported reports whether this program can open libraries.
const Supported = false

// Unsupported is the reason if Supported is false. Without cgo, programs for Linux are static, and a static program has
// no loader that could open a library.
const Unsupported = "this program was built without it: programs for macOS and Windows have it, and those for " +
	"Linux that are built with cgo, on amd64 and arm64"

// Open is not called where libraries are not supported.
func Open(string) (uintptr, error) { panic("no library is opened where none is supported") }

// Symbol is not called where libraries are not supported.
func Symbol(uintptr, string) (uintptr, bool) {
	panic("no symbol is looked for where none is supported")
}

// Bind is not called where libraries are not supported.
func Bind(any, uintptr) { panic("no function is bound where none is supported") }

// Invoke is not called where libraries are not supported.
func Invoke(uintptr, []uintptr) uintptr { panic("no function is called where none is supported") }
