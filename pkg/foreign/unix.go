//go:build (amd64 || arm64) && ((linux && cgo && !android) || (darwin && !ios))

package foreign

import (
	"runtime"

	"github.com/ebitengine/purego"
)

// Open loads the library with a path, or with a name that the system's loader searches, and returns the handle. Errors
// name the library and the reason. The description of an error belongs to the thread that called dlopen, so the thread
// must not change before purego reads the description.
func Open(path string) (uintptr, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	return purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
}

// Symbol returns the address of a function of the library with a handle, or false if the library lacks the function.
func Symbol(library uintptr, name string) (uintptr, bool) {
	address, err := purego.Dlsym(library, name)
	return address, err == nil
}
