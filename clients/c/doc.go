//go:build cgo

// Command c is pkg/client as a C library: go build -buildmode=c-shared. volsfu.h is its documentation, README.md tells how to build and use it.
//
// Every exported function looks its handles up, copies what C passed in, calls a guest.Guest, and turns errors into statuses. No panic leaves it, and no
// pointer of Go's: what C keeps is in C's memory, which the tables below find by number. Functions run on the threads that call them; goroutines are
// those of the guests.
package main

import "github.com/volsfu/volsfu/clients/c/internal/handle"

// The tables of everything that has a handle.
var (
	sessions   = handle.NewTable[*session](1, "session")
	publishers = handle.NewTable[*publisher](2, "publisher")
	frames     = handle.NewTable[held](3, "frame")
	events     = handle.NewTable[held](4, "event")
)

// main is never run: a program of C has its own.
func main() {}
