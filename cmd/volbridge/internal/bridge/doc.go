// Package bridge is the core of volbridge, which stands between VR2Gather's native connector and a server of signalling
// v1: the handshake with the connector, frames from datagrams and datagrams from frames, the numbers of capture
// instants, who is which client, and what is dropped, by reason.
//
// It opens no sockets and reads no clocks: everything is stepped with now, and returns what is to be done. Its values
// keep no locks and belong to whoever calls them, one goroutine at a time; only a Tally may be used by many at once.
package bridge
