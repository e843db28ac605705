package switching

import (
	"errors"
	"testing"
	"time"
)

func TestPassesThroughUnchanged(t *testing.T) {
	w := newWire(t, "video/volumetric")
	w.write(65534, 9000, false, fragment(0, 7, 1, 3))
	w.write(65535, 9000, true, fragment(0, 7, 2, 3))
	w.write(0, 12000, true, fragment(0, 8, 0, 1))
	w.write(0, 12000, true, fragment(0, 8, 0, 1)) // duplicate
	if got := w.sent[2]; got.Timestamp != 12000 || !got.Marker || got.SSRC != mediaSSRC ||
		got.PayloadType != mediaType {
		t.Errorf("got %+v", got.Header)
	}
	w.expect(65534, 65535, 0)
}

func TestSwapVolumetric(t *testing.T) {
	w := newWire(t, "video/volumetric")
	w.write(100, 9000, false, fragment(0, 7, 0, 2))
	w.write(101, 9000, true, fragment(0, 7, 1, 2))
	w.write(102, 12000, false, fragment(0, 8, 0, 3)) // cut by the swap
	w.swap()
	// Same publication: timestamps and frame numbers are shared. The swap is in the middle of frame
	// 8; frame 9 arrives from its second packet on.
	w.now = w.now.Add(time.Second)
	w.write(5000, 12000, true, fragment(1, 8, 3, 4))
	w.write(5002, 15000, false, fragment(1, 9, 1, 3))
	w.write(5001, 15000, false, fragment(1, 9, 0, 3))
	w.write(5003, 15000, true, fragment(1, 9, 2, 3))
	if got := w.sent[len(w.sent)-1]; got.Timestamp != 15000 || !got.Marker {
		t.Errorf("got %+v, expected timestamp 15000 and the marker", got.Header)
	}
	w.expect(100, 101, 102, 104, 103, 105)
	// Another publication: the timestamp advances by the elapsed time.
	w.swap()
	w.now = w.now.Add(100 * time.Millisecond)
	w.write(5004, 777_000, true, fragment(1, 9_000, 0, 1))
	if got := w.sent[0]; got.SequenceNumber != 106 || got.Timestamp != 24000 {
		t.Errorf("got %+v, expected number 106 and timestamp 24000", got.Header)
	}
}

func TestSwapAtMarkerOrTimestamp(t *testing.T) {
	w := newWire(t, "video/opaque")
	w.write(100, 9000, false, []byte{1})
	w.write(101, 9000, true, []byte{2})
	w.swap()
	w.now = w.now.Add(33 * time.Millisecond)
	w.write(20_000, 500_000, false, []byte{3}) // perhaps the middle of a frame
	w.write(20_001, 500_000, true, []byte{4})
	w.write(20_003, 503_000, false, []byte{5}) // the beginning of the frame may be missing
	w.write(20_004, 506_000, false, []byte{6})
	w.write(20_005, 506_000, true, []byte{7})
	w.expect(100, 101, 102, 103)
}

func TestSwapWaitsForKeyFrame(t *testing.T) {
	key, inter := join([]byte{0x10}, vp8Key), []byte{0x10, 0x01}
	w := newWire(t, "video/VP8", WithKeyFrameWait(200*time.Millisecond))
	w.write(100, 9000, true, inter) // the first track is forwarded from its first packet on
	w.swap()
	w.write(500, 1000, true, inter)
	w.write(501, 4000, true, inter)
	w.write(502, 7000, true, key)
	w.write(503, 10_000, true, inter)
	w.expect(100, 101, 102)
	// No key frame in time.
	w.swap()
	w.write(9000, 1000, true, inter)
	w.now = w.now.Add(201 * time.Millisecond)
	w.write(9001, 4000, true, inter)
	w.write(9002, 7000, true, inter)
	w.expect(103, 104)
	// After a failed swap no key frame is awaited, whether the track began with one or not.
	fail := func() {
		t.Helper()
		if err := w.factory.Swap(
			mediaSSRC,
			func() error { return errors.ErrUnsupported },
		); !errors.Is(
			err,
			errors.ErrUnsupported,
		) {
			t.Errorf("got %v", err)
		}
	}
	fail()
	w.write(9003, 10_000, true, inter)
	w.expect(105)
	w.swap()
	w.write(700, 10_000, true, key)
	w.write(701, 13_000, true, inter)
	fail()
	w.write(702, 16_000, true, inter)
	w.expect(106, 107, 108)
}

func TestSwapHoldsPacketsMeanwhile(t *testing.T) {
	w := newWire(t, "video/opaque")
	w.write(100, 9000, true, []byte{1})
	err := w.factory.Swap(mediaSSRC, func() error {
		w.write(101, 12000, false, []byte{2})
		w.write(800, 70_000, false, []byte{3})
		return errors.ErrUnsupported
	})
	if !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("got %v", err)
	}
	// The swap failed: the first track continues at a frame whose beginning is known.
	w.write(102, 12000, true, []byte{4})
	w.write(103, 15000, true, []byte{5})
	w.expect(100, 101)
	if err := w.factory.Swap(7, nil); !errors.Is(err, ErrUnknownStream) {
		t.Errorf("got %v, expected %v", err, ErrUnknownStream)
	}
}

func TestSwapUnannounced(t *testing.T) {
	w := newWire(t, "video/opaque", WithDiscontinuity(100))
	w.write(100, 9000, true, []byte{1})
	w.write(200, 12000, true, []byte{2}) // loss
	// First the number is too far, then the timestamp.
	w.write(301, 15000, true, []byte{3})
	w.write(302, 18000, true, []byte{4})
	w.write(303, 18000+11*90_000, true, []byte{5})
	w.write(304, 21000+11*90_000, true, []byte{6})
	w.expect(100, 200, 201, 202)
	// A late packet of the previous track is not a swap. Newer packets are: the previous track
	// takes over again.
	w.write(305, 24000+11*90_000, false, []byte{7})
	w.write(301, 15000, true, []byte{3})
	w.write(306, 24000+11*90_000, true, []byte{7})
	w.expect(203, 204)
	// A pause is no swap: the timestamp may advance by the elapsed time.
	w.now = w.now.Add(time.Minute)
	w.write(307, 24000+71*90_000, true, []byte{8})
	w.expect(205)
	// The quality distinguishes tracks whose numbers and timestamps are close.
	v := newWire(t, "video/volumetric")
	v.write(100, 9000, true, fragment(0, 7, 0, 1))
	v.write(103, 12000, true, fragment(2, 8, 0, 1))
	v.write(104, 15000, true, fragment(2, 9, 0, 1))
	v.write(101, 18000, true, fragment(0, 10, 0, 1)) // back to the first track
	v.expect(100, 101, 102, 103)
	// A distant frame number also means another track. The unfinished frame of the first track is
	// not awaited, and a frame without its beginning does not begin.
	v.write(102, 21000, false, fragment(0, 11, 0, 9))
	v.write(103, 21000, true, fragment(0, 5000, 1, 2))
	v.write(104, 24000, true, fragment(0, 5001, 0, 1))
	v.expect(104, 105)
}

// TestSwapToAnotherPublication expects that two tracks whose frame numbers are close by chance are
// not treated as one publication.
func TestSwapToAnotherPublication(t *testing.T) {
	w := newWire(t, "video/volumetric")
	w.write(100, 9000, true, fragment(0, 7, 0, 1))
	w.swap()
	w.now = w.now.Add(time.Second)
	w.write(500, 1<<31, true, fragment(0, 5, 0, 1))
	if got := w.sent[1]; got.SequenceNumber != 101 || got.Timestamp != 99_000 {
		t.Errorf("got %+v, expected number 101 and timestamp 99000", got.Header)
	}
}

func TestSwapAudio(t *testing.T) {
	w := newWire(t, "audio/opus")
	w.write(100, 960, true, []byte{1})
	w.swap()
	w.now = w.now.Add(20 * time.Millisecond)
	w.write(7, 500, false, []byte{2})
	w.write(9, 2420, false, []byte{3})
	w.expect(100, 101, 103)
}

func TestSwapH264WithDelimiter(t *testing.T) {
	w := newWire(t, "video/H264")
	w.write(100, 9000, true, []byte{0x41, 1})
	w.swap()
	w.write(1, 1000, true, []byte{0x41, 1})
	w.write(2, 4000, false, []byte{0x09, 0xf0}) // access unit delimiter
	w.write(3, 4000, false, []byte{0x06, 5})    // supplemental enhancement information
	w.write(4, 4000, false, []byte{0x67, 0x42})
	w.write(5, 4000, true, []byte{0x65, 0x88})
	w.expect(100, 101, 102)
}
