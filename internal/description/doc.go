// Package description is the session descriptions (SDP, RFC 8866) of peer connections whose lines all share one transport (BUNDLE, RFC 8843): it
// turns text into structs and structs into text, says what an endpoint offers, and knows the rules of offer and answer (RFC 3264, RFC 8829).
//
// It is pure and keeps no state. Its values are plain data; they belong to whoever made or parsed them.
//
// # Where the transport stands
//
// The credentials of ICE and the fingerprint of DTLS are written at session level and in the first line that is not rejected, which is the one that
// BUNDLE tags; candidates stand in that line alone. Browsers and Pion read them at session level (RFC 8839 section 5.4, RFC 8122 section 5), others
// in the tagged line. No other line repeats them, so that descriptions of hundreds of lines stay small. a=setup stands in every line, since Pion
// reads it in lines only.
package description
