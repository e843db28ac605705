package edge

import "errors"

// Errors of New, Check and Detach. Each is wrapped in a sentence that names the interface, program or capability.
var (
	// ErrForeignProgram is a program of someone else at a place where this edge attaches its own.
	ErrForeignProgram = errors.New("a foreign BPF program is in the way")
	// ErrPrivileges are missing capabilities, or a file system that the process may not mount.
	ErrPrivileges = errors.New("missing privileges")
	// ErrUnsupported is a kernel or a device that can carry no program.
	ErrUnsupported = errors.New("not supported by this kernel")
	// ErrRunning is an edge of the same name in another process.
	ErrRunning = errors.New("the edge is running already")
	// ErrHost is a path that the host does not have: no such interface, or an interface without the address.
	ErrHost = errors.New("the host does not have this path")
)
