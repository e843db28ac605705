package ingress

import (
	"time"

	"github.com/volsfu/volsfu/internal/feedback"
	"github.com/volsfu/volsfu/internal/forward/track"
)

// uplink is the path from a publisher to the server: its loss, and the share of parity that it needs. The mutex of the
// ingress guards it, except for the share.
type uplink struct {
	loss       feedback.Loss
	protection track.Protection
}

// measure updates the share of parity, from the losses of the streams since the last call and the round-trip time. It
// takes the short deadline, at which receivers on short paths give up a frame: a repair over a long uplink is too late
// for such receivers, however long the ingress waits.
func (u *uplink) measure(streams map[uint32]*stream, rtt, deadline time.Duration) {
	var expected, lost int64
	for _, s := range streams {
		if s.missing != nil && s.track.Framed() {
			e, l := s.reception.Interval()
			expected, lost = expected+e, lost+l
		}
	}
	u.loss.Add(expected, lost)
	u.protection.Follow(u.loss.Share(), rtt, func(time.Duration) time.Duration { return deadline })
}
