// Package bridge is the core of volbridge, which connects VR2Gather's native connector to a server of signalling v1.
// The package has the handshake with the connector, the conversion between frames and datagrams, the numbering of
// capture instants, the client numbers, and the reasons of drops.
//
// The package opens no sockets and reads no clocks. All methods take the time and return the actions. Types have no
// locks and are owned by one goroutine at a time. Only Tally is safe for concurrent use.
package bridge
