//go:build !((amd64 || arm64) && ((linux && cgo && !android) || (darwin && !ios) || windows))

package foreign

// Supported reports whether this program can open libraries.
const Supported = false

// Unsupported is the reason if Supported is false. Without cgo, programs for Linux are static, and a static program has
// no loader that could open a library.
const Unsupported = "this program was built without support for libraries: programs for macOS and Windows have the " +
	"support, and programs for Linux that are built with cgo, on amd64 and arm64"

// Open panics: libraries are not supported.
func Open(string) (uintptr, error) { panic("no library is opened if libraries are not supported") }

// Symbol panics: libraries are not supported.
func Symbol(uintptr, string) (uintptr, bool) {
	panic("no symbol is looked for if libraries are not supported")
}

// Bind panics: libraries are not supported.
func Bind(any, uintptr) { panic("no function is bound if libraries are not supported") }

// Invoke panics: libraries are not supported.
func Invoke(uintptr, []uintptr) uintptr {
	panic("no function is called if libraries are not supported")
}
