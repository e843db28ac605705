// Package e2ee encrypts the frames of a room from publisher to receiver, so that the server between them reads only the
// parts that it needs. docs/encryption.md specifies the format. The package uses SFrame (RFC 9605, package sframe) and
// decides what RFC 9605 leaves to the application: secrets and epochs (Keys), key identifiers and counters (Sealer),
// the metadata that is authenticated with a frame (Subject), and protection against replays (Opener).
package e2ee
