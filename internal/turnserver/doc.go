// Package turnserver is the TURN server (RFC 8656) for the clients of this process. It relays between a client and the
// media port of the process, and to no other address. Clients reach it over UDP, TCP, and TLS.
//
// A client's credential is bound to its session. An allocation can be made until the credential expires, and is
// refreshed for as long as the session lives. When the session ends, its allocations end.
//
// An allocation has one UDP socket on a loopback address, connected to the media port. The client is told another
// relayed address (RelayedAddress), because other hosts have no use for a loopback address. Every address of the media
// port that clients are told leads to the media port.
//
// Pion's goroutines read the clients' packets, and write to the clients. The filters in front of them (filter) drop
// what the server does not offer, and limit the requests of an address.
//
// A panic in Pion's goroutines would end the server, and cannot be confined. The filters therefore pass only messages
// that Pion's decoder has decoded before, under a guard, and whose attributes have the lengths that their readers
// expect. FuzzServer drives the rest: sequences of requests with valid and invalid credentials. What Pion calls here is
// guarded, except the reading and writing of packets.
package turnserver

import "errors"

// ErrConfig is wrapped with the invalid key and the expected values.
var ErrConfig = errors.New("invalid TURN configuration")

// PanicPlace is the place that Options.Guard receives for panics in callbacks of Pion.
const PanicPlace = "turn"

// realm is the realm of the credentials (RFC 8489 section 9.2).
const realm = "volsfu"
