//go:build (amd64 || arm64) && ((linux && cgo && !android) || (darwin && !ios))

package rs2

import (
	"runtime"

	"github.com/ebitengine/purego"
)

// openLibrary loads a library. The description of an error belongs to the thread that called dlopen, so the thread must
// not change before purego reads the description.
func openLibrary(path string) (uintptr, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	return purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
}

func symbol(library uintptr, name string) (uintptr, bool) {
	address, err := purego.Dlsym(library, name)
	return address, err == nil
}
