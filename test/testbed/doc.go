// Package testbed runs a server and clients in one process, for tests and for the lab. A Conference is the server with
// its clients. A Load is what a client publishes: prepared frames that name themselves, so that receivers can verify
// them. An Emulation is a Conference whose media pass an emulated network.
//
// A Conference belongs to the goroutine that made it; each Peer publishes and receives on goroutines of its own.
package testbed
