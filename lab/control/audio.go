package control

import (
	"time"

	"github.com/volsfu/volsfu/internal/congestion"
	"github.com/volsfu/volsfu/internal/ecn"
	"github.com/volsfu/volsfu/internal/netem"
	"github.com/volsfu/volsfu/lab"
)

// Audio is Opus at 48 kbit/s in packets of 20 ms.
const (
	audioInterval = 20 * time.Millisecond
	audioPayload  = 120
)

// audio is the audio that the server sends to a receiver. A packet leaves as soon as it is captured, because the server
// never holds audio, with the codepoint of the media. Neither the estimator nor the receiver's reports count these
// packets, 74 kbit/s.
type audio struct {
	id     uint64
	next   time.Duration    // when the next packet is captured
	waited lab.Distribution // times at the bottleneck's queue
}

// send sends the packet that is due.
func (a *audio) send(link *netem.Link, codepoint ecn.Codepoint, now time.Time) {
	a.next += audioInterval
	link.Send(&netem.Packet{Size: audioPayload + congestion.PacketOverhead, Flow: a.id, ECN: codepoint}, now)
}
