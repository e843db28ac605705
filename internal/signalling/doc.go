// Package signalling is the websocket server of signalling v1 at signal.Path. The package authenticates clients,
// reads and writes messages within limits, and passes the messages to internal/sfu. Each client has a reading goroutine
// (that of the HTTP server) and a writing goroutine, which owns the websocket's writing side. Neither waits for another
// client.
//
// Servers of other protocols share the writing side of a websocket (Writer), the reading side (Inbox) and the limits of
// tokens and addresses (TokenLimits, AddressLimits).
package signalling
