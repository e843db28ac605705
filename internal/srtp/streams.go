package srtp

import "errors"

// ErrTooManyStreams is the error of a packet with a new SSRC if an Opener already has its maximum of streams.
var ErrTooManyStreams = errors.New("too many streams")

// maxStreams bounds the SSRCs of an Opener, for RTP and for RTCP each. 16,384 are 9 publications with 15 tiles of 3
// qualities and the retransmissions, 20 times over. With a window of 8,192 packets the streams take 16 MiB at most, if
// a peer with the keys causes this.
const maxStreams = 1 << 14

// streams is the state of all streams in one direction, RTP or RTCP.
type streams struct {
	window int // of each stream, in packets
	limit  int // maximum number of streams, 0 for none
	bySSRC map[uint32]*replayWindow

	// Packets arrive in bursts of one stream: caching the last stream saves most look-ups.
	lastSSRC uint32
	last     *replayWindow
}

// newStreams returns the state of a direction without streams.
func newStreams(window, limit int) streams {
	return streams{window: window, limit: limit, bySSRC: make(map[uint32]*replayWindow)}
}

// find returns the window of a stream, nil if the stream has no packet yet, or ErrTooManyStreams if no stream can be
// added.
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

// accept records a fresh index of a stream, whose window is the result of find.
func (s *streams) accept(ssrc uint32, w *replayWindow, index uint64) {
	if w != nil {
		w.accept(index)
		return
	}
	w = newReplayWindow(s.window, index)
	s.bySSRC[ssrc] = w
	s.lastSSRC, s.last = ssrc, w
}
