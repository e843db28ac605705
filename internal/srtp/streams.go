package srtp

import "errors"

// ErrTooManyStreams is a packet with a new SSRC when there are as many as an Opener keeps state for.
var ErrTooManyStreams = errors.New("too many streams")

// maxStreams bounds the SSRCs of an Opener, for RTP and for RTCP each. 16,384 are 9 publications with 15 tiles of 3 qualities and their retransmissions,
// 20 times over. With a window of 8,192 packets they take 16 MiB at most, if a peer that holds the keys tries.
const maxStreams = 1 << 14

// streams is the state of all streams in one direction, RTP or RTCP.
type streams struct {
	window int // of each stream, in packets
	limit  int // on the number of streams, 0 for none
	bySSRC map[uint32]*replayWindow

	// Packets come in bursts of one stream: the last one found saves most look-ups.
	lastSSRC uint32
	last     *replayWindow
}

// newStreams makes the state of a direction without streams.
func newStreams(window, limit int) streams {
	return streams{window: window, limit: limit, bySSRC: make(map[uint32]*replayWindow)}
}

// find gives the window of a stream, nil where it has no packet yet, or ErrTooManyStreams where it can have none.
func (s *streams) find(ssrc uint32) (*replayWindow, error) {
	if s.last != nil && s.lastSSRC == ssrc {
		return s.last, nil
	}
	w := s.bySSRC[ssrc]
	switch {
	case w != nil:
		s.lastSSRC, s.last = ssrc, w
	case s.limit > 0 && len(s.bySSRC) >= s.limit:
		return nil, ErrTooManyStreams
	}
	return w, nil
}

// accept remembers a fresh index of a stream, whose window is as find gave it.
func (s *streams) accept(ssrc uint32, w *replayWindow, index uint64) {
	if w != nil {
		w.accept(index)
		return
	}
	w = newReplayWindow(s.window, index)
	s.bySSRC[ssrc] = w
	s.lastSSRC, s.last = ssrc, w
}
