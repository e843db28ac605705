// Package sframe encrypts and authenticates frames of media as defined by SFrame (RFC 9605), with the cipher suites
// that use AES-GCM. The package has the header, the derivation of keys and salts from a base key, and the encryption of
// one frame. Choosing key identifiers, counters and base keys is the task of the caller; package e2ee does so for the
// rooms of this system.
//
// An SFrame ciphertext is a header with a key identifier (KID) and a counter (CTR), the encrypted data, and a tag of 16
// bytes. The tag also covers the header and the metadata, which both sides know and which is not sent with the
// ciphertext.
package sframe
