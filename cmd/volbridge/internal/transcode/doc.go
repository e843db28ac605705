// Package transcode turns what VR2Gather's clients exchange into what volsfu's others do and back, for volbridge: the
// server never does. Uncompressed point clouds (cwi0) become frames of another codec, sound (VR2A, which is Speex, and
// VR2a, which is samples) becomes Opus.
//
// A Pool has workers that live until it is closed, and of each stream of clouds works at one frame at a time, so that
// frames stay in order. Whoever submits never waits: of each stream at most one more frame waits, and the newest one
// wins. Packer and Unpacker are what the workers do. A Speaker and a Listener each transcode one sound, packet by
// packet as it comes, which takes a fraction of a millisecond. All four belong to one goroutine each.
package transcode
