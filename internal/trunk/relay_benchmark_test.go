package trunk

import (
	"fmt"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pion/rtp"

	"github.com/volsfu/volsfu/internal/allocate"
	"github.com/volsfu/volsfu/internal/forward/track"
	"github.com/volsfu/volsfu/pkg/payload"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/wait"
)

// arrivalTimes has the times at which the packets of a receiver leave its slots.
type arrivalTimes struct {
	mu    sync.Mutex
	times map[[3]uint32]time.Time
}

// timedOutlet is one slot of a receiver with arrivalTimes.
type timedOutlet struct {
	viewerOutlet
	arrivals *arrivalTimes
}

func (o timedOutlet) Queue(h *rtp.Header, body []byte) error {
	var d payload.Descriptor
	if _, err := d.Unmarshal(body); err != nil || h.SSRC != o.SSRC() {
		return err
	}
	o.arrivals.mu.Lock()
	defer o.arrivals.mu.Unlock()
	o.arrivals.times[[3]uint32{uint32(o.index), d.Frame, uint32(d.Index)}] = time.Now()
	return nil
}

// timeArrivals adds a receiver of tracks at a node.
func timeArrivals(n *node, tracks []*track.Track) *arrivalTimes {
	a := &arrivalTimes{times: map[[3]uint32]time.Time{}}
	receiver := n.engine.NewReceiver(&viewerPeer{}, 0)
	for i, made := range tracks {
		receiver.AddSlot(timedOutlet{viewerOutlet{nil, i}, a}, volumetric.KindVideo).Select(made, 1, time.Now())
	}
	n.t.Cleanup(receiver.Close)
	return a
}

// processorTime returns the processor time of the process.
func processorTime(b *testing.B) time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// BenchmarkRelay sends frames of 40 tracks of 5 Mbit/s each over a trunk on the loopback interface, at 30 frames per
// second. The processor time per packet is that of both ends, without that of a run in which no node takes the tracks.
// With receivers at both nodes, latency is the time by which a packet reaches that of the taking node later.
//
//	go test ./internal/trunk -run '^$' -bench Relay -benchtime 300x
func BenchmarkRelay(b *testing.B) {
	for _, receivers := range []bool{false, true} {
		b.Run(fmt.Sprintf("receivers=%t", receivers), func(b *testing.B) { benchmarkRelay(b, receivers) })
	}
}

func benchmarkRelay(b *testing.B, receivers bool) {
	const tracks, frame, interval = 40, 200_000_000 / 8 / 30 / 40, time.Second / 30
	a := newAuthority()
	one, two := a.start(b, "one", options{measured: true}), a.start(b, "two", options{measured: true})
	p := publish(b, one, tracks, 1)
	mirrored := mirrorAt(two, "one", tracks, 1)
	connect(b, one, two, "one", "two")
	publishFrames := func(frames int) (used time.Duration, packets int) {
		before := processorTime(b)
		for range frames {
			begin := time.Now()
			for i, publisher := range p.publishers {
				publisher.Next()
				made := publisher.Packets(frame)
				publisher.Send(time.Now(), made...)
				packets += len(made)
				time.Sleep(time.Until(begin.Add(interval * 3 / 4 * time.Duration(i+1) / tracks)))
			}
			time.Sleep(time.Until(begin.Add(interval)))
		}
		return processorTime(b) - before, packets
	}
	idle, sent := publishFrames(b.N)
	all := slices.Repeat([]allocate.QualitySet{allocate.Qualities(0)}, tracks)
	takeAt(two, "one", all...)
	wait.Until(b, "the slots", func() bool {
		return !slices.ContainsFunc(p.tracks, func(made *track.Track) bool { return made.Followers() == 0 })
	})
	var local, remote *arrivalTimes
	if receivers {
		local, remote = timeArrivals(one, p.tracks), timeArrivals(two, mirrored)
	}
	publishFrames(60)
	before := two.stats().Received.Packets
	b.ResetTimer()
	used, _ := publishFrames(b.N)
	b.StopTimer()
	relayed := two.stats().Received.Packets - before
	if float64(relayed) < 0.98*float64(sent) {
		b.Errorf("%d packets relayed, %d published", relayed, sent)
	}
	if !receivers {
		b.ReportMetric(float64((used-idle).Nanoseconds())/1000/float64(relayed), "µs/packet")
		return
	}
	local.mu.Lock()
	defer local.mu.Unlock()
	remote.mu.Lock()
	defer remote.mu.Unlock()
	var added []time.Duration
	for key, at := range remote.times {
		if left, known := local.times[key]; known {
			added = append(added, at.Sub(left))
		}
	}
	slices.Sort(added)
	for _, share := range []float64{0.5, 0.99} {
		b.ReportMetric(added[int(share*float64(len(added)-1))].Seconds()*1000, fmt.Sprintf("ms-p%.0f", 100*share))
	}
}
