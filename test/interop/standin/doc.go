// Package standin is a small server of the protocol of VR2Gather's original SFU, for tests of clients of such a server.
// By default the server behaves as a peer needs; each of the Faults adds one fault of the original, or a fault that no
// server should have.
//
// One lock covers the whole state, which suffices for the few participants of a test.
package standin
