// Package description implements the session descriptions (SDP, RFC 8866) of peer connections whose lines all share one
// transport (BUNDLE, RFC 8843): it converts between text and structs, has the offer of an endpoint, and implements the
// rules of offer and answer (RFC 3264, RFC 8829).
//
// The package is pure and keeps no state. Its values are plain data; they belong to the goroutine that made or parsed
// them.
//
// # Position of the transport attributes
//
// The ICE credentials and the DTLS fingerprint are written at session level and in the first line that is not rejected,
// which is the tagged line of the bundle; candidates are in that line only. Browsers and Pion read them at session
// level (RFC 8839 section 5.4, RFC 8122 section 5), other implementations in the tagged line. No other line repeats
// them, so that descriptions of hundreds of lines stay small. a=setup is in every line, because Pion reads it in lines
// only.
package description
