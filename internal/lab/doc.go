// Package lab measures what volsfu claims. A Conference is a server and clients in one process; Load is what a client publishes: prepared
// frames that name themselves, so that receivers can tell whether what came is what was sent. The checks build on it.
//
// A Conference belongs to the goroutine that made it; each Peer publishes and receives on goroutines of its own.
package lab
