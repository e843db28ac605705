//go:build cgo

// Command c is pkg/client as a C library: go build -buildmode=c-shared -tags portable. volsfu.h is its
// documentation; README.md explains building and use.
//
// Every exported function resolves its handles, copies the arguments from C, calls a guest.Guest,
// and converts errors to statuses. No panic and no Go pointer leaves a function: data kept by C is
// in C's memory, which the tables below find by number. Functions run on the threads that call
// them; only the guests have goroutines.
package main

import "github.com/volsfu/volsfu/clients/c/internal/handle"

// These are the tables of everything with a handle.
var (
	sessions   = handle.NewTable[*session](1, "session")
	publishers = handle.NewTable[*publisher](2, "publisher")
	frames     = handle.NewTable[held](3, "frame")
	events     = handle.NewTable[held](4, "event")
	messages   = handle.NewTable[held](5, "message")
	listeners  = handle.NewTable[*listener](6, "listener")
)

// main never runs: a C program has its own.
func main() {}
