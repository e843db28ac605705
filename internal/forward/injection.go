package forward

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/pion/rtp"

	"github.com/volsfu/volsfu/pkg/payload"
)

// Injector feeds a track with whole frames that came by another way than RTP, as if its publisher had sent them in packets: everything behind it is the same. It is for
// one goroutine at a time.
type Injector struct {
	ingress    *Ingress
	header     rtp.Header
	fragmenter payload.Fragmenter
	packet     [rtpHeader + payload.MaxPacketSize]byte
}

// rtpHeader is the size in bytes of an RTP header without extensions (RFC 3550 section 5.1).
const rtpHeader = 12

// NewInjector binds a track to frames that are injected, in place of what it was bound to.
func (i *Ingress) NewInjector(t *Track) *Injector {
	j := &Injector{ingress: i, header: rtp.Header{Version: 2, SSRC: rand.Uint32(), SequenceNumber: uint16(rand.Uint32())}}
	i.Bind(j.header.SSRC, 0, t)
	return j
}

// Frame sends a frame whose descriptor names its quality, its number, and whether its data begins with a prefix. Errors say what is wrong with the frame.
func (j *Injector) Frame(d payload.Descriptor, data []byte, timestamp uint32, now time.Time) error {
	if err := j.fragmenter.Begin(d, data); err != nil {
		return err
	}
	packets := j.fragmenter.Packets()
	if packets > maxFramePackets {
		return fmt.Errorf("%w: %d packets, expected at most %d", payload.ErrFrame, packets, maxFramePackets)
	}
	j.header.Timestamp = timestamp
	for n := range packets {
		j.header.Marker = n == packets-1
		size, err := j.header.MarshalTo(j.packet[:])
		if err != nil {
			panic("a header without extensions has room for itself: " + err.Error())
		}
		packet, err := j.fragmenter.AppendPacket(j.packet[:size], n)
		if err != nil {
			return err
		}
		j.header.SequenceNumber++
		j.ingress.RTP(j.header.SSRC, packet, now)
	}
	j.ingress.Flush()
	return nil
}
