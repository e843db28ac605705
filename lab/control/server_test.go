package control

import (
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/congestion"
	"github.com/volsfu/volsfu/internal/congestion/pacing"
	"github.com/volsfu/volsfu/internal/feedback"
	"github.com/volsfu/volsfu/internal/netem"
)

// TestRepairsUnpaced: without pacing, all retransmissions are sent as soon as they are requested, as in the real
// server. With pacing they wait: a frame of 200 packets takes 0.4 s at 2.5 times the first estimate.
func TestRepairsUnpaced(t *testing.T) {
	for mode, everything := range map[pacing.Mode]bool{pacing.Off: true, pacing.Burst5ms: false} {
		plan, err := mode.Plan()
		if err != nil {
			t.Fatal(err)
		}
		o := DefaultOptions()
		o.RTT = 20 * time.Millisecond
		link, err := netem.NewLink(netem.Config{Delay: o.RTT / 2}, 1, nil)
		if err != nil {
			t.Fatal(err)
		}
		l := newLedger()
		s := newServer(1, &o, congestion.New(congestion.GCC, congestion.DefaultConfig(), epoch), plan, link, l, 0)
		if !plan.Off() {
			// Without a report the server does not limit its rate.
			s.SetPath(s.Stats().Path(), 0)
		}
		const packets = 200
		f := outgoing{bytes: packets * fragmentSize, source: packets, planned: packets, begun: true}
		for index := range packets {
			s.release(fragment{&f, index}, 0)
		}
		for number := range packets {
			s.repeat(0, uint16(number), o.RTT)
		}
		size := int64(fragmentSize + originalSize + congestion.PacketOverhead)
		if repeated := l.sentBytes[feedback.Retransmission] / size; repeated == packets != everything {
			t.Errorf("%s: %d of %d packets are repeated at once", mode, repeated, packets)
		}
	}
}
