//go:build (amd64 || arm64) && ((linux && cgo && !android) || (darwin && !ios))

package rs2

import "github.com/ebitengine/purego"

func openLibrary(path string) (uintptr, error) {
	return purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
}

func symbol(library uintptr, name string) (uintptr, bool) {
	address, err := purego.Dlsym(library, name)
	return address, err == nil
}
