// Package oldpeer behaves like the Go peer and the native connector that VR2Gather ships, as far as a server can
// observe: it joins by the old websocket, answers offers, publishes tiles × qualities and audio, receives by fixed
// offsets and completes frames by counting bytes. In cases in which the original would panic, exit or show a broken
// frame, the Peer records a Fault, so that a test can connect a Peer to a server and report the faults of the server's
// messages and packets.
//
// The package uses plain Pion and shares no code with the server under test; fields that the original reads at fixed
// offsets are read at fixed offsets here.
//
// A Peer has one goroutine that reads the websocket, one that processes the messages, and one per received track; the
// counts have separate locks.
package oldpeer
