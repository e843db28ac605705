package client

import (
	"bytes"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/volsfu/volsfu/pkg/client/internal/uplink"
	"github.com/volsfu/volsfu/pkg/payload"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// TestPublishersMakeParity compares the packets of one frame with each share of parity, and completes the frame without
// as many source packets as there are parity packets.
func TestPublishersMakeParity(t *testing.T) {
	tests := []struct {
		share float64
		size  int
		want  int
	}{
		{0, 50_000, 0}, {0.07, 100 * payload.FragmentSize, 7}, {0.07, 50_000, 4}, {0.25, 100, 1}, {0.25, 500_000, 110},
		{0.9, 4 * payload.FragmentSize, 1},
		{-1, 50_000, 0}, {math.NaN(), 50_000, 0},
	}
	for _, test := range tests {
		m := newRig(t, Config{})
		p, wires := published(t, m, described("body", volumetric.MIMEVolumetric, 1, 1))
		p.present.sent.SetParity(test.share)
		data := make([]byte, test.size-payload.PrefixSize)
		for i := range data {
			data[i] = byte(i * i >> 3)
		}
		if _, err := p.WriteFrame(0, 0, OutgoingFrame{Number: 7, Capture: time.Now(), Data: data}); err != nil {
			t.Fatal(err)
		}
		flush(m, time.Now().Add(time.Second))
		source := payload.SourceFragments(test.size)
		sent := wires[0].sent
		if len(sent) != source+test.want || !sent[len(sent)-1].Marker {
			t.Fatalf("share %v of %d packets: %d packets were sent, expected %d, with a marker on the last", test.share,
				source, len(sent), source+test.want)
		}
		r := payload.NewReassembler(payload.DefaultConfig())
		var frame *payload.Frame
		for _, packet := range sent[test.want:] {
			var d payload.Descriptor
			rest, err := d.Unmarshal(packet.Payload)
			if err != nil {
				t.Fatal(err)
			}
			if f, err := r.Push(&d, rest, epoch); err != nil {
				t.Fatal(err)
			} else if f != nil {
				frame = f
			}
		}
		if frame == nil || !bytes.Equal(frame.Data, data) || frame.Recovered != min(test.want, source) {
			t.Errorf("share %v of %d packets: the frame is not complete without its first %d packets", test.share,
				source, test.want)
		}
	}
}

// TestParityIsCounted loses packets of frames with one parity packet for three source packets. A packet that parity
// replaces counts as lost, not as recovered, and is not requested.
func TestParityIsCounted(t *testing.T) {
	m := newRig(t, Config{})
	body := described("body", volumetric.MIMEVolumetric, 1, 1)
	in := newIncoming(t, m, "4", volumetric.KindVideo, 1)
	assign(t, m, "4", 1, "ada", 0, &body)
	now := epoch
	send := func(frame uint32, lost ...int) {
		list, err := uplink.Fragment(payload.Descriptor{Parity: 3, Frame: frame}, make([]byte, 4000))
		if err != nil {
			t.Fatal(err)
		}
		for index, body := range list[:5] {
			if !slices.Contains(lost, index) {
				in.deliver(in.next+uint16(index), 3000*frame, body, now.Add(time.Duration(index)*time.Millisecond))
			}
		}
		in.next += 5
		now = now.Add(interval)
		m.downlink.Step(nil, now, 150*time.Millisecond)
	}
	send(10)
	send(11, 2)    // parity replaces one packet
	send(12, 4)    // unused parity
	send(13, 0, 1) // too many losses
	send(14)
	for range 10 {
		now = now.Add(interval)
		m.downlink.Step(nil, now, 150*time.Millisecond)
	}
	got := statsOf(t, m, "ada", 0)
	want := TileStats{
		Track: got.Track, FrameCounts: FrameCounts{Expected: 5, Complete: 4, Undecodable: 1}, Packets: 21,
		Bytes: got.Bytes,
		Lost:  4, Spared: 2, Replaced: 1, Gaps: 4, Requests: 2,
	}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// TestRequestsAfterParity: requests that wait for the end of a frame with parity no longer wait once the slot carries
// another publication, whose frames are not known.
func TestRequestsAfterParity(t *testing.T) {
	m := newRig(t, Config{})
	body, video := described("body", volumetric.MIMEVolumetric, 1, 1), described("camera", volumetric.MIMEH264, 1, 1)
	in := newIncoming(t, m, "4", volumetric.KindVideo, 1)
	assign(t, m, "4", 1, "ada", 0, &body)
	list, err := uplink.Fragment(payload.Descriptor{Parity: 3, Frame: 10}, make([]byte, 4000))
	if err != nil {
		t.Fatal(err)
	}
	// The frame ends in its parity, without a marker.
	for index, body := range list[:5] {
		in.deliver(in.next+uint16(index), 3000, body, epoch)
	}
	in.next += 5
	assign(t, m, "4", 2, "ada", 0, &video)
	for index := range uint16(6) {
		if index != 1 {
			in.deliver(in.next+index, 6000, []byte{0x61, byte(index)}, epoch.Add(time.Millisecond))
		}
	}
	asked := asked(m, epoch.Add(2*time.Millisecond))
	if len(asked) != 1 || asked[0] != in.next+1 {
		t.Errorf("asked for %v, want %d", asked, in.next+1)
	}
}
