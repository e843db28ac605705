package switching

import (
	"testing"

	"github.com/pion/rtp"
)

func TestLateKeyFrameDoesNotOpen(t *testing.T) {
	r := &reader{codec: newCodec("video/VP8", 90_000)}
	key := join([]byte{0x10}, vp8Key)
	for i, sequence := range []uint16{10, 12, 11, 12} {
		h := &rtp.Header{SequenceNumber: sequence, Timestamp: 3000 * uint32(sequence)}
		if i == 0 {
			r.follows(nil, h, nil)
		}
		if p := r.read(h, key, nil, false, dawn); p.Opens != (i < 2) {
			t.Errorf("packet %d opens: %t", sequence, p.Opens)
		}
	}
}

func TestReader(t *testing.T) {
	r := &reader{codec: newCodec("video/opaque", 0)}
	for i, test := range []struct {
		sequence  uint16
		timestamp uint32
		body      string
		extended  int64
		opens     bool
	}{
		{65534, 3000, "in the middle", 65534, false},
		{65535, 6000, "", 65535, false}, // padding
		{0, 6000, "begins", 65536, true},
		{1, 6000, "goes on", 65537, false},
		{4, 9000, "after a gap", 65540, false},
		{3, 8000, "late", 65539, false},
		{5, 12000, "begins", 65541, true},
		{6, 11000, "begins, in another order of presentation", 65542, true},
	} {
		h := &rtp.Header{SequenceNumber: test.sequence, Timestamp: test.timestamp}
		if i == 0 {
			r.follows(nil, h, nil)
		}
		p := r.read(h, []byte(test.body), nil, false, dawn)
		if p.Sequence != test.extended || p.Opens != test.opens || !p.Key {
			t.Errorf("packet %d: got %+v, expected number %d, opens %t", i, p, test.extended, test.opens)
		}
	}
}
