package frames

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/pion/rtp"

	"github.com/volsfu/volsfu/internal/forward/egress"
	"github.com/volsfu/volsfu/pkg/payload"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/pkg/vr2gather"
)

// keepingOutlet is an outlet that records its packets.
type keepingOutlet struct {
	egress.Outlet
	payloads [][]byte
}

func (o *keepingOutlet) Queue(_ *rtp.Header, body []byte) error {
	o.payloads = append(o.payloads, bytes.Clone(body))
	return nil
}

// numberedHeader returns a header of 20 bytes.
func numberedHeader() *rtp.Header {
	h := &rtp.Header{Version: 2}
	if err := h.SetExtension(1, []byte{0, 1}); err != nil {
		panic(err)
	}
	return h
}

// TestOutletRefuses checks packets that are never sent to a peer: packets with a header of another length, parity,
// payload v1 with a prefix, and malformed packets.
func TestOutletRefuses(t *testing.T) {
	packet := func(d payload.Descriptor, size int) []byte {
		body := make([]byte, payload.DescriptorSize+size)
		if _, err := d.MarshalTo(body); err != nil {
			t.Fatal(err)
		}
		return body
	}
	good := payload.Descriptor{Source: 1, Length: 20}
	for _, refused := range []struct {
		name   string
		header *rtp.Header
		body   []byte
	}{
		{"a header without a number", &rtp.Header{Version: 2}, packet(good, 20)},
		{"parity", numberedHeader(), packet(payload.Descriptor{Source: 1, Parity: 1, Index: 1, Length: 20},
			payload.FragmentSize)},
		{"a prefix", numberedHeader(), packet(payload.Descriptor{Source: 1, Length: 20, Prefixed: true}, 20)},
		{"a length that is wrong", numberedHeader(), packet(good, 19)},
		{"nothing", numberedHeader(), nil},
	} {
		kept := &keepingOutlet{}
		o := NewVR2GatherOutlet(kept, vr2gather.Track{Kind: volumetric.KindVideo}, 5)
		if err := o.Queue(refused.header, refused.body); !errors.Is(err, ErrNotVR2Gather) || len(kept.payloads) > 0 {
			t.Errorf("%s: %v, %d packets sent", refused.name, err, len(kept.payloads))
		}
		if err := o.Queue(numberedHeader(), packet(good, 20)); err != nil || len(kept.payloads) != 1 {
			t.Errorf("after %s: %v", refused.name, err)
		}
	}
}

// TestFrameNumbering compares the outgoing numbers with a transcript: frame, or "restart" and a frame; then the
// outgoing number.
func TestFrameNumbering(t *testing.T) {
	for _, transcript := range []string{
		"5=5 6=6 6=6 8=8 7=7 9=9",
		"30=30 restart 0=31 1=32 0=31 40=71",
		"30=30 restart 31=31 32=32",
		"restart 7=7 8=8",
		"1000=1000 3=1001 4=1002",
		"4294967295=4294967295 0=0 restart 4294967290=1",
	} {
		var n frameNumbering
		restarted := false
		for word := range strings.FieldsSeq(transcript) {
			if word == "restart" {
				restarted = true
				continue
			}
			var frame, want uint32
			if _, err := fmt.Sscanf(word, "%d=%d", &frame, &want); err != nil {
				t.Fatal(err)
			}
			if got := n.number(frame, restarted); got != want {
				t.Errorf("%q: %s gives %d", transcript, word, got)
			}
			restarted = false
		}
	}
}
