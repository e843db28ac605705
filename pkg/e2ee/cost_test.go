package e2ee

import (
	"testing"
	"time"

	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/codec/codectest"
	"github.com/volsfu/volsfu/pkg/codec/draco"
)

// sealingShare is the largest time for encrypting a frame, as a share of the time for encoding the frame by Draco.
const sealingShare = 0.05

// measureSealing encodes and encrypts frames of a cloud in turn, and returns the shortest time of each. The shortest
// time is the one that other programs disturbed least.
func measureSealing(t testing.TB, points, turns int) (encoding, sealing time.Duration, size int) {
	t.Helper()
	if !draco.Available() {
		t.Skip("built without Draco")
	}
	fastest, err := codec.ByName("draco")
	if err != nil {
		t.Fatal(err)
	}
	encoder := fastest.NewEncoder()
	cloud := codectest.Cloud(1, points)
	params := codec.Params{PositionBits: 11, Speed: 10, Box: codectest.Box}
	sealer := NewSealer(keysOf(t, 0, oneSecret), "alice")
	var frame, sealed []byte
	for turn := range turns {
		begin := time.Now()
		if frame, err = encoder.Encode(frame[:0], cloud, params); err != nil {
			t.Fatal(err)
		}
		encoded := time.Now()
		if sealed, err = sealer.Seal(sealed[:0], body(uint32(turn)), frame); err != nil {
			t.Fatal(err)
		}
		end := time.Now()
		if took := encoded.Sub(begin); turn == 0 || took < encoding {
			encoding = took
		}
		if took := end.Sub(encoded); turn == 0 || took < sealing {
			sealing = took
		}
	}
	return encoding, sealing, len(frame)
}

// TestSealingIsCheap compares encryption with encoding at Draco's fastest speed.
func TestSealingIsCheap(t *testing.T) {
	encoding, sealing, size := measureSealing(t, 40_000, 20)
	t.Logf("a frame of %d bytes is encoded in %v and encrypted in %v", size, encoding, sealing)
	if share := float64(sealing) / float64(encoding); share > sealingShare {
		t.Errorf("encryption takes %.1f %% of encoding, expected at most %g %%", 100*share, 100*sealingShare)
	}
}

func BenchmarkSealing(b *testing.B) {
	for b.Loop() {
		encoding, sealing, size := measureSealing(b, 40_000, 30)
		b.ReportMetric(100*float64(sealing)/float64(encoding), "%-of-encoding")
		b.ReportMetric(float64(encoding.Microseconds()), "µs-encoding")
		b.ReportMetric(float64(sealing.Nanoseconds())/1e3, "µs-sealing")
		b.ReportMetric(float64(size), "bytes")
	}
}
