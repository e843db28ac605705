// Package transcode converts between the formats of VR2Gather's clients and those of volsfu's other clients. volbridge
// uses it; the server never transcodes. Uncompressed point clouds (cwi0) are converted to frames of another codec.
// Audio (VR2A, which is Speex, and VR2a, which is uncompressed) is converted to Opus.
//
// A Pool has workers that run until it is closed. A Pool processes one frame of a stream at a time, so that frames stay
// in order. Submit never blocks: at most one further frame of a stream waits, and a newer frame replaces it. The
// workers use Packer and Unpacker. OpusTranscoder and VoiceTranscoder each transcode one audio stream packet by packet,
// which takes a fraction of a millisecond. Each of these four is owned by one goroutine.
package transcode
