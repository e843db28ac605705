// Package testbed runs a server and clients in one process, for tests and for the lab. A Conference is the server with
// the clients. A Load describes a client's publication of generated frames. Each frame contains its number, tile and
// quality, so that receivers can verify the frame. An Emulation is a Conference whose media passes through an emulated
// network.
//
// A Conference belongs to the goroutine that made it. Each Peer publishes and receives on goroutines of its own.
package testbed
