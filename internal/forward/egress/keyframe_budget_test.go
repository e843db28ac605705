package egress

import (
	"testing"
	"time"

	"github.com/pion/rtcp"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// TestKeyFrameRequestsAreLimited lets one receiver make far too many requests, in both formats, and another as many as
// browsers do.
func TestKeyFrameRequestsAreLimited(t *testing.T) {
	r := newRig(t, nil)
	s, other := r.subscribe(1000, volumetric.KindVideo), r.subscribe(2000, volumetric.KindVideo)
	const most = keyFramesPerSlot + leastKeyFrames
	request := &rtcp.FullIntraRequest{}
	for n := range 180 {
		request.FIR = append(request.FIR, rtcp.FIREntry{SSRC: 1000, SequenceNumber: uint8(n)})
	}
	interval := r.engine.cfg.KeyFrameInterval
	for round := 1; round <= 3; round++ {
		// The first requests alone use up the budget; the others are refused.
		s.rtcp(t, r.now, request)
		s.rtcp(t, r.now.Add(interval-time.Nanosecond), request)
		s.rtcp(t, r.now.Add(interval-time.Nanosecond), &rtcp.PictureLossIndication{MediaSSRC: 1000})
		other.rtcp(t, r.now, &rtcp.PictureLossIndication{MediaSSRC: 2000})
		r.run()
		r.now = r.now.Add(interval)
		stats := r.engine.Stats()
		if want := uint64(round * (most + 1)); stats.KeyFramesAsked != want {
			t.Errorf("%d requests came to slots after round %d, expected %d", stats.KeyFramesAsked, round, want)
		}
		if want := uint64(round * (361 - most)); stats.KeyFramesLimited != want {
			t.Errorf("%d were not looked at after round %d, expected %d", stats.KeyFramesLimited, round, want)
		}
	}
}
