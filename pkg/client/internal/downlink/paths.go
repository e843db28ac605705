package downlink

import (
	"encoding/binary"
	"time"

	"github.com/volsfu/volsfu/internal/ecn"
	"github.com/volsfu/volsfu/internal/redundancy"
)

// paths records the arrivals on each path of a server that sends copies on a second one.
type paths struct {
	// recorder is nil until a packet arrives on the second path.
	recorder   *redundancy.Recorder
	counts     [redundancy.Paths]PathCounts
	codepoints ecn.TwoPaths
}

// PathCounts counts the packets that arrived on one path: those that no other path had delivered, and the others.
type PathCounts struct{ First, Repeated uint64 }

// arrivedOn records the path on which an RTP packet arrived that no other path has delivered before.
func (r *Receiver) arrivedOn(path uint8, ssrc uint32, packet []byte, now time.Time) {
	const sequenceEnd = 4
	if path >= redundancy.Paths || len(packet) < sequenceEnd {
		return
	}
	r.paths.counts[path].First++
	if path != 0 || r.paths.recorder != nil {
		r.record(path, ssrc, binary.BigEndian.Uint16(packet[2:]), now)
	}
}

// Repeated records the path on which a packet arrived that has arrived before. A packet that left twice on one path
// does not count.
func (r *Receiver) Repeated(path uint8, ssrc uint32, sequence uint16, now time.Time) {
	if path >= redundancy.Paths || path == 0 && r.paths.recorder == nil {
		return
	}
	if r.record(path, ssrc, sequence, now) {
		r.paths.counts[path].Repeated++
	}
}

// record records an arrival. It reports false for the second of two packets that left on one path.
func (r *Receiver) record(path uint8, ssrc uint32, sequence uint16, now time.Time) bool {
	if r.paths.recorder == nil {
		r.paths.recorder = redundancy.NewRecorder(r.ssrc, now)
	}
	return r.paths.recorder.Arrived(path, ssrc, sequence, now)
}

// Paths returns the counts of each path, those of earlier peer connections included, and reports whether a packet has
// arrived on a second path.
func (r *Receiver) Paths() (counts [redundancy.Paths]PathCounts, used bool) {
	for _, c := range r.paths.counts[1:] {
		used = used || c != PathCounts{}
	}
	return r.paths.counts, used
}

// AppendPathReport appends a report about the paths as one RTCP compound, if one is due.
func (r *Receiver) AppendPathReport(dst []byte, now time.Time) []byte {
	if r.paths.recorder == nil {
		return dst
	}
	return r.paths.recorder.AppendReport(dst, now)
}
