// Package payload converts frames to RTP payloads and back (payload v1, "video/volumetric", 90 kHz clock). Package
// payload defines the 16-byte descriptor at the start of every packet, the prefix at the start of a frame's data, the
// fragmentation and reassembly of frames, and the parity that repairs frames. docs/payload.md describes the same format
// for authors of other clients.
//
// A Fragmenter and a Reassembler serve one stream each and belong to the goroutine that calls them.
// They hold no locks and start no goroutines. Only Frame.Release is safe to call from any
// goroutine: the receiver of a completed frame owns the frame until Release.
package payload
