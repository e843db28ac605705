// Package payload turns frames into RTP payloads and back: payload v1 ("video/volumetric", 90 kHz). It owns the 16-byte descriptor that begins
// every packet, the prefix that begins a frame's data, the fragmentation of frames, their reassembly and the parity that repairs them.
// docs/payload.md describes the same format for those who write other clients.
//
// A Fragmenter and a Reassembler serve one stream each and belong to the goroutine that calls them; they hold no locks and start no
// goroutines. Only Frame.Release may be called from anywhere: a completed frame belongs to whoever received it until then.
package payload
