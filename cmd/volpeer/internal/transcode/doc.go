// Package transcode turns VR2Gather's uncompressed point clouds (cwi0) into frames of another codec and back, for volpeer bridge: the server never does.
//
// A Pool has workers that live until it is closed, and of each stream works at one frame at a time, so that frames stay in order. Whoever submits never waits: of each
// stream at most one more frame waits, and the newest one wins. Packer and Unpacker are what the workers do; each belongs to one goroutine.
package transcode
