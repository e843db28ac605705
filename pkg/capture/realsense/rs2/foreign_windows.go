//go:build amd64 || arm64

package rs2

import (
	"fmt"

	"golang.org/x/sys/windows"
)

func openLibrary(path string) (uintptr, error) {
	handle, err := windows.LoadLibrary(path)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", path, err)
	}
	return uintptr(handle), nil
}

func symbol(library uintptr, name string) (uintptr, bool) {
	address, err := windows.GetProcAddress(windows.Handle(library), name)
	return address, err == nil
}
