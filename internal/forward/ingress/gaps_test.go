package ingress

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/volsfu/volsfu/internal/forward/track"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// TestGaps loses packets of frames of all lengths at random, including whole frames, and lets some arrive late. The
// gaps of the track are the lost packets of frames with arrived packets.
func TestGaps(t *testing.T) {
	type numbered struct {
		frame, index int
		packet       []byte
	}
	// As many frames with gaps as a track remembers.
	const kept = 32
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 3))
		r := newRig(t, nil)
		p := r.publish(r.ingress(&fakePeer{}), 10, volumetric.MIMEVolumetric)
		// All packets, in the order of their numbers.
		var packets []numbered
		var lost []int64
		partly := make(map[int]bool)
		for frame := range kept {
			p.Next()
			whole := random.IntN(5) == 0
			for index, packet := range p.Packets(1144 * (1 + random.IntN(40))) {
				if frame > 0 && (whole || random.IntN(3) == 0) {
					lost = append(lost, int64(len(packets)))
				} else {
					partly[frame] = true
					p.Send(r.now, packet)
				}
				packets = append(packets, numbered{frame, index, packet})
			}
		}
		stream := streamOf(p.track)
		want := make(map[int][]int)
		var numbers []int64
		for _, n := range lost {
			if at := packets[n]; partly[at.frame] {
				want[at.frame] = append(want[at.frame], at.index)
			}
			numbers = append(numbers, stream.facts.first+n)
		}
		// Packets of one frame may be given up at different times.
		half := random.IntN(len(numbers))
		stream.lose(numbers[:half])
		stream.lose(numbers[half:])
		checkGaps(t, p.track, want)
		for _, n := range lost {
			if at := packets[n]; random.IntN(3) == 0 {
				stream.missing.Received(stream.facts.first+n, r.now)
				p.Send(r.now, at.packet)
				want[at.frame] = slices.DeleteFunc(want[at.frame], func(index int) bool { return index == at.index })
			}
		}
		checkGaps(t, p.track, want)
	}
}

// checkGaps fails unless the track has exactly these gaps, by frame index and indexes of missing packets.
func checkGaps(t *testing.T, of *track.Track, want map[int][]int) {
	t.Helper()
	known := 0
	for frame, missing := range want {
		gap := of.Losses().Gaps().Find(1<<32 + 1 + int64(frame))
		if gap == nil && len(missing) > 0 ||
			gap != nil && !slices.Equal(gap.Lost(nil, track.MaxFramePackets), missing) {
			t.Errorf("the gap of frame %d is %+v, expected that %v are lost", frame, gap, missing)
		}
		if gap != nil {
			known++
		}
	}
	if gaps := of.Losses().Gaps(); len(gaps.Frames) != known {
		t.Errorf("there are %d gaps, expected %d", len(gaps.Frames), known)
	}
}
