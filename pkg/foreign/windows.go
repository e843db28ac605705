//go:build windows && (amd64 || arm64)

package foreign

import (
	"fmt"

	"golang.org/x/sys/windows"
)

// Open loads the library with a path, or with a name that the system's loader searches, and returns the handle. Errors
// name the library and the reason.
func Open(path string) (uintptr, error) {
	handle, err := windows.LoadLibrary(path)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", path, err)
	}
	return uintptr(handle), nil
}

// Symbol returns the address of a function of the library with a handle, or false if the library lacks the function.
func Symbol(library uintptr, name string) (uintptr, bool) {
	address, err := windows.GetProcAddress(windows.Handle(library), name)
	return address, err == nil
}
