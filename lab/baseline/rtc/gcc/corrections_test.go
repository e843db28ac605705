package gcc

import (
	"testing"
	"time"

	"github.com/pion/interceptor"
	"github.com/pion/rtcp"
	"github.com/pion/rtp"
)

// TestGroupsEnd drains a queue: packets that left 2 ms apart arrive 1 ms apart. Pion's groups never end in this case.
func TestGroupsEnd(t *testing.T) {
	const packets = 500
	acks := make([]Acknowledgment, packets)
	begun := time.Unix(1, 0)
	for i := range acks {
		acks[i].Departure = begun.Add(time.Duration(i) * 2 * time.Millisecond)
		acks[i].Arrival = begun.Add(time.Second + time.Duration(i)*time.Millisecond)
	}
	in := make(chan []Acknowledgment, 1)
	in <- acks
	close(in)
	var groups []arrivalGroup
	newArrivalGroupAccumulator().run(in, func(g arrivalGroup) { groups = append(groups, g) })
	if len(groups) != 4 {
		t.Fatalf("%d groups of 500 ms, expected 4 that have ended", len(groups))
	}
	for i, g := range groups {
		if lasted := g.arrival.Sub(g.began); lasted > burstDuration {
			t.Errorf("group %d lasted %v, expected %v at most", i, lasted, burstDuration)
		}
	}
}

// TestHistory acknowledges a packet after 16,000 later packets. Pion forgets the packet after 250.
func TestHistory(t *testing.T) {
	const extension, packets = 5, 16_000
	f := NewFeedbackAdapter()
	begun := time.Unix(1, 0)
	for i := range packets {
		number, err := rtp.TransportCCExtension{TransportSequence: uint16(i)}.Marshal()
		header := &rtp.Header{Version: 2}
		if err == nil {
			err = header.SetExtension(extension, number)
		}
		if err == nil {
			err = f.OnSent(begun.Add(time.Duration(i)*time.Millisecond), header, 1200,
				interceptor.Attributes{TwccExtensionAttributesKey: uint8(extension)})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	acks, err := f.OnTransportCCFeedback(begun, &rtcp.TransportLayerCC{
		BaseSequenceNumber: 0, PacketStatusCount: 1, ReferenceTime: 1,
		PacketChunks: []rtcp.PacketStatusChunk{
			&rtcp.RunLengthChunk{PacketStatusSymbol: rtcp.TypeTCCPacketReceivedSmallDelta, RunLength: 1},
		},
		RecvDeltas: []*rtcp.RecvDelta{{Type: rtcp.TypeTCCPacketReceivedSmallDelta, Delta: 250}},
	})
	if err != nil || len(acks) != 1 || !acks[0].Departure.Equal(begun) || acks[0].Arrival.IsZero() {
		t.Errorf("%+v, %v; expected the acknowledgement of the first packet", acks, err)
	}
}
