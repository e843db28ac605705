// Package srtp protects RTP and RTCP (RFC 3711, RFC 7714) with keys that DTLS negotiated (RFC 5764): a Sealer writes protected packets straight into
// a send buffer, an Opener authenticates and decrypts received ones in place. AES-GCM for RTP is its own, on the standard library; RTCP, and RTP under
// the profile with HMAC-SHA1, go through Pion.
//
// A Sealer refuses to use an index twice, whatever its callers do: two packets under one nonce of AES-GCM give away the authentication key. An Opener
// keeps nothing of a packet before it is authenticated: a forged packet makes no state and moves neither rollover counter nor replay window.
//
// There are no goroutines and no locks here. RTP and RTCP have separate state, so that each of the two may belong to a goroutine of its own.
package srtp
