// Package standin is a small server of the protocol of VR2Gather's original SFU, for tests of clients of such a server.
// By default it behaves as a peer needs; each of its Faults adds one fault of the original, or one that no server
// should have.
//
// One lock covers its whole state, which suffices for the few participants of a test.
package standin
