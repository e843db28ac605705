// Package signalling is the websocket server: signalling v1 at signal.Path. It decides who may come in, reads and
// writes messages within limits, and hands them to internal/sfu. Each client has a goroutine that reads (the HTTP
// server's own) and one that writes, which owns the websocket's writing side; neither waits for another client.
//
// Servers of other protocols share the writing side of a websocket (Writer), the reading side (Inbox) and the limits of
// tokens and addresses (TokenLimits, AddressLimits).
package signalling
