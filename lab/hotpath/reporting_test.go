package hotpath

import (
	"encoding/binary"
	"strings"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/ecn"
	"github.com/volsfu/volsfu/internal/feedback"
	"github.com/volsfu/volsfu/lab/hotpath/mediasocket"
)

// numberedRTP returns an RTP packet with a sequence number.
func numberedRTP(ssrc uint32, number uint16) []byte {
	packet := make([]byte, 1200)
	packet[0], packet[1] = 128, 96
	binary.BigEndian.PutUint16(packet[2:], number)
	binary.BigEndian.PutUint32(packet[8:], ssrc)
	return packet
}

// TestReporter reports all packets of a stream, of which first all and then samples are received.
func TestReporter(t *testing.T) {
	for codepoint, marks := range map[ecn.Codepoint]int{ecn.ECT1: 10, ecn.NotECT: 0} {
		const ssrc, first, packets = 7, 65_000, 64 * 10
		history, r, now := feedback.NewCongestionHistory(), newReporter(codepoint), time.Now()
		counts := make(map[ecn.Codepoint]int)
		for i := range packets {
			number := uint16(first + i)
			history.Sent(ssrc, number, 1200, feedback.Media, codepoint, now)
			if i == packets/2 {
				r.sample()
			}
			if i <= packets/2 || number%mediasocket.SampleInterval == 0 || i == packets-1 {
				r.received(numberedRTP(ssrc, number), now.Add(5*time.Millisecond))
			}
			now = now.Add(200 * time.Microsecond)
			if i == packets-1 {
				now = now.Add(time.Second)
			}
			for reports := r.reports(now); len(reports) > 0; {
				size := 4 * (int(binary.BigEndian.Uint16(reports[2:])) + 1)
				for _, result := range history.Feedback(reports[:size], now, nil) {
					if !result.Received {
						t.Errorf("packet %d was reported as lost", result.Sequence)
					}
					counts[result.ECN]++
				}
				reports = reports[size:]
			}
		}
		if counts[ecn.CE] != marks || counts[codepoint] != packets-marks {
			t.Errorf("reported as %v: %v, expected %d packets with %d marks", codepoint, counts, packets, marks)
		}
	}
	var none *reporter
	none.received(numberedRTP(1, 1), time.Now())
}

func TestAcceptReports(t *testing.T) {
	const answer = "v=0\r\nm=video 9 UDP/TLS/RTP/SAVPF 96\r\na=rtcp-mux\r\n" +
		"m=audio 9 UDP/TLS/RTP/SAVPF 111\r\na=rtcp-mux\r\n"
	if got := acceptReports(answer); strings.Count(got, "a=rtcp-mux\r\na=rtcp-fb:* ack ccfb\r\n") != 2 {
		t.Errorf("got %q", got)
	}
}
