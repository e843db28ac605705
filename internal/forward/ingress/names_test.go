package ingress

import (
	"testing"

	"github.com/pion/rtp"

	"github.com/volsfu/volsfu/internal/forward/track"
	"github.com/volsfu/volsfu/internal/transport"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// namedPacket returns a packet of H264 with names in header extensions, by identifier.
func namedPacket(t *testing.T, ssrc uint32, sequence uint16, payload []byte, names map[uint8]string) []byte {
	t.Helper()
	p := rtp.Packet{Header: rtp.Header{Version: 2, SSRC: ssrc, SequenceNumber: sequence, PayloadType: 96},
		Payload: payload}
	for id, name := range names {
		if err := p.SetExtension(id, []byte(name)); err != nil {
			t.Fatal(err)
		}
	}
	data, err := p.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestStreamsAreBoundByName binds two encodings and a line by the names in their packets. Further packets need no name,
// a name does not bind a second SSRC, and retransmissions reach their encoding.
func TestStreamsAreBoundByName(t *testing.T) {
	const layer, mid, repaired = 2, 1, 3
	r := newRig(t, nil)
	i := r.ingress(&fakePeer{})
	extensions := NameExtensions{Layer: layer, MID: mid, Retransmission: repaired}
	followers := map[string]*reader{}
	for name, of := range map[string]Name{"low": {Layer: "low"}, "high": {Layer: "high"}, "desk": {MID: "desk"}} {
		made := r.tracks.New(track.Config{Codec: volumetric.Codec{MIMEType: volumetric.MIMEH264, ClockRate: 90000}})
		followers[name] = follow(made)
		i.BindByName(extensions, of, made)
	}
	send := func(ssrc uint32, sequence uint16, payload string, names map[uint8]string) {
		i.RTP(ssrc, namedPacket(t, ssrc, sequence, []byte(payload), names), &transport.PacketInfo{At: r.now})
		i.Flush()
	}
	send(10, 1, "unnamed", nil)
	send(11, 100, "low 1", map[uint8]string{layer: "low", mid: "1"})
	send(12, 200, "high 1", map[uint8]string{layer: "high", mid: "1"})
	send(13, 300, "desk 1", map[uint8]string{mid: "desk"})
	send(11, 101, "low 2", nil)
	send(14, 400, "a second stream with the name", map[uint8]string{layer: "low", mid: "1"})
	// Packet 102 is lost and comes on the RTX stream, which begins with the original number.
	send(11, 103, "low 4", nil)
	send(15, 1, "\x00\x66low 3", map[uint8]string{repaired: "low", mid: "1"})
	send(15, 2, "\x00\x68low 5", nil)
	send(16, 1, "\x00\x69low 6", map[uint8]string{repaired: "low"})
	for name, want := range map[string][]string{
		"low": {"low 1", "low 2", "low 4", "low 3", "low 5"}, "high": {"high 1"}, "desk": {"desk 1"},
	} {
		var got []string
		for _, payload := range followers[name].read(t) {
			got = append(got, string(payload))
		}
		if len(got) != len(want) {
			t.Errorf("%s has %q, expected %q", name, got, want)
			continue
		}
		for n := range got {
			if got[n] != want[n] {
				t.Errorf("%s has %q, expected %q", name, got, want)
			}
		}
	}
	if n := r.stats().UnknownSSRC; n != 3 {
		t.Errorf("%d packets count as unknown, expected 3", n)
	}
}
