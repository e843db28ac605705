package codectest

import (
	"syscall"
	"testing"
)

// mapped maps memory outside of Go's heap, writes to all of it and unmaps it.
func mapped(t *testing.T, size int) {
	memory, err := syscall.Mmap(-1, 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < size; i += 4096 {
		memory[i] = 1
	}
	if err := syscall.Munmap(memory); err != nil {
		t.Error(err)
	}
}
