package ingress

import (
	"github.com/volsfu/volsfu/internal/forward/injection"
	"github.com/volsfu/volsfu/internal/forward/track"
	"github.com/volsfu/volsfu/internal/transport"
)

// maxHeldPackets bounds the packets that one ingress holds, and those that a stream that stops keeps: 200 Mbit/s for
// 150 ms with packets of 1,200 bytes.
const maxHeldPackets = 3072

// waiting is a stream that takes a track over with its first packet.
type waiting struct {
	track        *track.Track
	ssrc, repair uint32
	origin       uint32
	// injector is not nil if the packets come from an injector.
	injector *injection.Injector
	held     []heldPacket
	// behind is set if the stream has carried a frame that the former connection carries, too, since the last call of
	// Succeed. Later frames arrive over both.
	behind bool
	// looks counts the looks of the goroutine since packets wait: a measure of the time that does not include stalls of
	// this program, in which packets of the former connection have not been read.
	looks int
}

// heldPacket is a packet that waits, with a copy of its info.
type heldPacket struct {
	packet []byte
	info   transport.PacketInfo
	// framed is set for payload v1. frame is its number, index the index of the packet in the frame.
	framed    bool
	frame     uint32
	index     int64
	timestamp uint32
}

// keptPacket is a packet of a stream that stops, with a copy of its info. repaired is set if the packet arrived as a
// retransmission.
type keptPacket struct {
	packet   []byte
	info     transport.PacketInfo
	repaired bool
}

// equal reports whether both wait for the same packets. p may be nil.
func (p *waiting) equal(w *waiting) bool {
	return p != nil && p.track == w.track && p.repair == w.repair && p.injector == w.injector
}

// waitingStreams are the streams of an ingress that wait, by SSRC, at most one for each track. held is the number of
// their packets. The mutex of the ingress guards them.
type waitingStreams struct {
	streams map[uint32]*waiting
	held    int
}

// has reports whether a stream still waits.
func (q *waitingStreams) has(w *waiting) bool { return q.streams[w.ssrc] == w }

// put adds a stream. No other stream with the SSRC may wait.
func (q *waitingStreams) put(w *waiting) {
	if q.streams == nil {
		q.streams = make(map[uint32]*waiting)
	}
	q.streams[w.ssrc] = w
}

// take removes a stream, and returns its packets.
func (q *waitingStreams) take(w *waiting) []heldPacket {
	delete(q.streams, w.ssrc)
	held := w.held
	q.held -= len(held)
	w.held = nil
	return held
}

// remove removes the stream with an SSRC, if there is one, and ends its injector.
func (q *waitingStreams) remove(ssrc uint32) {
	w := q.streams[ssrc]
	if w == nil {
		return
	}
	if w.injector != nil {
		w.injector.End()
	}
	q.take(w)
}

// forget removes the stream that waits for a track, if there is one.
func (q *waitingStreams) forget(t *track.Track) {
	for ssrc, w := range q.streams {
		if w.track == t {
			q.remove(ssrc)
		}
	}
}

// clear removes all streams.
func (q *waitingStreams) clear() {
	for ssrc := range q.streams {
		q.remove(ssrc)
	}
}

// hold keeps a packet of a stream. hold reports false if the ingress holds maxHeldPackets already.
func (q *waitingStreams) hold(w *waiting, h heldPacket) bool {
	if q.held == maxHeldPackets {
		return false
	}
	if len(w.held) == 0 {
		w.looks = 0
	}
	w.held = append(w.held, h)
	q.held++
	return true
}

// drop drops the first packet of a stream, whose frame the former connection carries.
func (q *waitingStreams) drop(w *waiting) {
	if len(w.held) > 0 {
		w.held, w.behind = w.held[1:], true
		q.held--
	}
}

// filled returns the streams with packets.
func (q *waitingStreams) filled() (list []*waiting) {
	for _, w := range q.streams {
		if len(w.held) > 0 {
			list = append(list, w)
		}
	}
	return list
}

// sweep discards incomplete frames whose chunks no longer arrive, of the injectors of the streams.
func (q *waitingStreams) sweep() {
	for _, w := range q.streams {
		if w.injector != nil {
			w.injector.Sweep()
		}
	}
}

// injected reports whether a stream waits for the packets of an injector.
func (q *waitingStreams) injected() bool {
	for _, w := range q.streams {
		if w.injector != nil {
			return true
		}
	}
	return false
}
