// Package srtp protects RTP and RTCP (RFC 3711, RFC 7714) with keys negotiated by DTLS (RFC 5764). A Sealer writes
// protected packets directly into a send buffer; an Opener authenticates and decrypts received packets in place.
// AES-GCM for RTP is implemented here, on the standard library; RTCP, and RTP under the profile with HMAC-SHA1, use
// Pion.
//
// A Sealer never uses an index twice, whatever the callers do: two packets with one nonce of AES-GCM reveal the
// authentication key. An Opener keeps no state of a packet before authentication: a forged packet creates no state and
// does not move the rollover counter or the replay window.
//
// There are no goroutines and no locks. RTP and RTCP have separate state, so RTP and RTCP may belong to different
// goroutines.
package srtp
