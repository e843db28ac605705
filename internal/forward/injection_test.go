package forward

import (
	"bytes"
	"errors"
	"testing"

	"github.com/volsfu/volsfu/pkg/payload"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// TestInjection sends frames that came by no RTP to a receiver, which cannot tell the difference.
func TestInjection(t *testing.T) {
	r := newRig(t, nil)
	ingress := r.ingress(&fakePeer{})
	track := r.engine.NewTrack(TrackConfig{Codec: volumetric.Codec{MIMEType: volumetric.MIMEVolumetric, ClockRate: 90000}, Quality: 1})
	j := ingress.NewInjector(track)
	s := r.subscribe(1000, volumetric.KindVideo)
	s.slot.Select(track, 7, r.now)
	r.run()
	for frame, size := range []int{3000, 0, payload.FragmentSize, 70_000} {
		data := bytes.Repeat([]byte{byte(frame), 2, 3}, size/3+1)[:size]
		before := len(s.outlet.sent())
		if err := j.Frame(payload.Descriptor{Quality: 1, Frame: uint32(frame)}, data, uint32(frame)*3000, r.now); err != nil {
			t.Fatal(err)
		}
		r.run()
		var got []byte
		sent := s.outlet.sentFrom(before)
		for i, p := range sent {
			var d payload.Descriptor
			part, err := d.Unmarshal(p.Payload)
			if err != nil || d.Frame != uint32(frame) || int(d.Index) != i || p.Marker != (i == len(sent)-1) {
				t.Fatalf("packet %d of frame %d is %+v, marker %t: %v", i, frame, d, p.Marker, err)
			}
			got = append(got, part...)
		}
		if !bytes.Equal(got, data) {
			t.Errorf("frame %d of %d bytes came as %d", frame, size, len(got))
		}
	}
	checkContinuous(t, s.outlet.sent())
	if err := j.Frame(payload.Descriptor{Frame: 9, Prefixed: true}, []byte{1}, 0, r.now); !errors.Is(err, payload.ErrFrame) {
		t.Errorf("a frame without its prefix: %v", err)
	}
}
