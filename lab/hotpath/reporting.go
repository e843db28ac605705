package hotpath

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/pion/rtcp"

	"github.com/volsfu/volsfu/internal/congestion"
	"github.com/volsfu/volsfu/internal/ecn"
	"github.com/volsfu/volsfu/internal/feedback"
	"github.com/volsfu/volsfu/lab/hotpath/mediasocket"
)

// reporter reports the packets of one receiver by RFC 8888. If the receiver's socket receives only a sample of the
// packets, the packets between two samples are reported as received with the second: a few milliseconds late, and
// whether they were lost or not. The estimate of the server must therefore be limited to one value.
//
// If packets are reported with ECT(1), one in markInterval is reported as marked, so that the server finds the path
// smooth and reads as many reports as in equilibrium.
type reporter struct {
	// codepoint is the codepoint with which packets are reported.
	codepoint ecn.Codepoint

	mu       sync.Mutex
	recorder *feedback.CongestionRecorder
	// newest are the highest sequence numbers by SSRC. sampled is set once the socket receives samples.
	newest  map[uint32]uint16
	sampled bool
}

func newReporter(codepoint ecn.Codepoint) *reporter {
	return &reporter{codepoint: codepoint, newest: make(map[uint32]uint16),
		recorder: feedback.NewCongestionRecorder(feedback.DefaultConfig().Transport, rand.Uint32())}
}

// received records an RTP packet. A nil reporter records nothing.
func (r *reporter) received(packet []byte, at time.Time) {
	if r == nil {
		return
	}
	number, ssrc := binary.BigEndian.Uint16(packet[2:]), binary.BigEndian.Uint32(packet[8:])
	size := len(packet) - mediasocket.RTPHeader + congestion.PacketOverhead
	r.mu.Lock()
	defer r.mu.Unlock()
	newest, known := r.newest[ssrc]
	if ahead := int16(number - newest); known && ahead <= 0 {
		return
	}
	if known && r.sampled && number-newest <= maxSampled {
		for between := newest + 1; between != number; between++ {
			r.recorder.Received(ssrc, between, size, r.codepoint, at)
		}
	}
	r.newest[ssrc] = number
	codepoint := r.codepoint
	if codepoint == ecn.ECT1 && number%markInterval == 0 {
		codepoint = ecn.CE
	}
	r.recorder.Received(ssrc, number, size, codepoint, at)
}

// markInterval is the number of packets of which one is marked. Two marks of packets of 1,500 bytes in a virtual round
// trip of 25 ms are 1.6 % of 60 Mbit/s (draft-briscoe-iccrg-prague-congestion-control section 2.4). It is a multiple of
// mediasocket.SampleInterval.
const markInterval = 64

// maxSampled bounds the packets of a stream that are reported with one sample: the samples between were lost.
const maxSampled = 8 * mediasocket.SampleInterval

// sample makes the reporter expect samples.
func (r *reporter) sample() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sampled = true
}

// reports returns the reports that are due, nil if there are none.
func (r *reporter) reports(now time.Time) []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	var reports []byte
	for {
		before := len(reports)
		if reports = r.recorder.AppendReports(reports, now); len(reports) == before {
			return reports
		}
	}
}

// reportCheck is how often a receiver looks for due reports: with at most a fifth of the usual interval between reports
// added, the server reads as many reports as from other receivers.
const reportCheck = 5 * time.Millisecond

// run sends reports until the context ends. Reports that cannot be sent are lost, as on a network.
func (r *reporter) run(ctx context.Context, write func([]rtcp.Packet) error) {
	ticker := time.NewTicker(reportCheck)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C:
			if reports := r.reports(now); reports != nil {
				raw := rtcp.RawPacket(reports)
				_ = write([]rtcp.Packet{&raw})
			}
		}
	}
}

// acceptReports changes an answer so that the server gets reports by RFC 8888 on all lines.
func acceptReports(sdp string) string {
	const multiplexed = "a=rtcp-mux\r\n"
	return strings.ReplaceAll(sdp, multiplexed, multiplexed+"a=rtcp-fb:* ack ccfb\r\n")
}
