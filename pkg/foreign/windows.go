//go:build windows && (amd64 || arm64)

package foreign

import (
	"fmt"

	"golang.org/x/sys/windows"
)

// Open loads a library.
func Open(path string) (uintptr, error) {
	handle, err := windows.LoadLibrary(path)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", path, err)
	}
	return uintptr(handle), nil
}

// Symbol returns the address of a function of a library.
func Symbol(library uintptr, name string) (uintptr, bool) {
	address, err := windows.GetProcAddress(windows.Handle(library), name)
	return address, err == nil
}
