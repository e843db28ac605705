package interop

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/pkg/vr2gather"
	"github.com/volsfu/volsfu/test/claim"
	"github.com/volsfu/volsfu/test/program"
	"github.com/volsfu/volsfu/test/testbed"
)

// unityRoom has a space in its name, to test the quoting of command lines.
const unityRoom = "the room"

// unityBridge builds volbridge as the repository builds it where there is no C compiler.
func unityBridge(t *testing.T) string {
	t.Helper()
	return program.Static().Path(t, "volbridge")
}

// unityWatcher is a receiver in Go that keeps the hash of every frame and every packet of sound.
type unityWatcher struct {
	session *client.Session
	mu      sync.Mutex
	// frames holds "tile quality hash" of every frame, in order.
	frames []string
	sound  []string
}

func newUnityWatcher(t *testing.T, c *testbed.Conference) *unityWatcher {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	s, err := client.Join(ctx, client.Config{URL: c.Server.URL(), Room: unityRoom, Identity: "watcher", Receive: true})
	if err != nil {
		t.Fatal(err)
	}
	w := &unityWatcher{session: s}
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.watch()
	}()
	t.Cleanup(func() {
		_ = s.Close()
		<-done
	})
	return w
}

func (w *unityWatcher) watch() {
	frames, packets, events := w.session.Frames(), w.session.Packets(), w.session.Events()
	for {
		select {
		case f, open := <-frames:
			if !open {
				return
			}
			if f.Track.Participant == "unity-1" {
				w.note(&w.frames, fmt.Sprintf("%d %d %s", f.Track.Tile, f.Track.Quality, unityHash(f.Whole)))
			}
		case p, open := <-packets:
			if !open {
				return
			}
			if packet, err := vr2gather.ParsePacket(volumetric.KindAudio, p.Payload); err == nil {
				w.note(&w.sound, unityHash(packet.Data))
			}
		case _, open := <-events:
			if !open {
				return
			}
		}
	}
}

func (w *unityWatcher) note(list *[]string, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	*list = append(*list, text)
}

// seen returns the records since the given counts.
func (w *unityWatcher) seen(list *[]string, since int) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone((*list)[since:])
}

// choose requests a quality of all publications of the Unity client.
func (w *unityWatcher) choose(t *testing.T, quality volumetric.Quality) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	ref := volumetric.PublicationRef{Participant: "unity-1", Publication: "body"}
	if err := w.session.SetQuality(ctx, signal.Choice{PublicationRef: ref, Quality: signal.Only(quality)}); err != nil {
		t.Error(err)
	}
}

func unityHash(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// unityPublisher publishes frames like VR2Gather's clients, in Go, of two tiles at two qualities, until the test ends,
// and keeps their hashes.
type unityPublisher struct {
	mu   sync.Mutex
	sent map[string]bool
}

func newUnityPublisher(t *testing.T, c *testbed.Conference, first, second volumetric.BoundingBox) *unityPublisher {
	t.Helper()
	body := volumetric.Publication{
		Name: "body", Kind: volumetric.KindVideo, Mode: volumetric.ModeAlternatives, VR2Gather: true, FrameRate: 30,
		Codec: volumetric.Codec{MIMEType: volumetric.MIMEVolumetric, ClockRate: 90000, Format: "codec=cwi1"},
		Tiles: []volumetric.Tile{{Box: first}, {Box: second}}, Qualities: make([]volumetric.QualityLevel, 2),
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	s, err := client.Join(ctx, client.Config{
		URL: c.Server.URL(), Room: unityRoom, Identity: "gopher-7", Publications: []volumetric.Publication{body},
		MinUplink: testbed.Everything, QueueBudget: patience,
	})
	if err != nil {
		t.Fatal(err)
	}
	p := &unityPublisher{sent: make(map[string]bool)}
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		p.publish(s.Publisher("body"), stop)
	}()
	t.Cleanup(func() {
		close(stop)
		<-done
		_ = s.Close()
	})
	return p
}

func (p *unityPublisher) publish(publisher *client.Publisher, stop <-chan struct{}) {
	random := rand.New(rand.NewPCG(1, 2))
	ticker := time.NewTicker(time.Second / 30)
	defer ticker.Stop()
	for number := uint32(0); ; number++ {
		for track := range 4 {
			quality := volumetric.Quality(track % 2)
			data := make([]byte, 15_000*(int(quality)+1)+random.IntN(1000))
			for i := range data {
				data[i] = byte(random.Uint32())
			}
			now := time.Now()
			frame := append(vr2gather.NewFrameHeader(vr2gather.CodecOctree, len(data), now).Append(nil), data...)
			p.mu.Lock()
			p.sent[fmt.Sprintf("%d %d %s", track/2, quality, unityHash(frame))] = true
			p.mu.Unlock()
			// Before the connection, frames are dropped, as for a camera that was switched on early.
			_, _ = publisher.WriteFrame(track/2, quality,
				client.OutgoingFrame{Number: number, Capture: now, Codec: vr2gather.CodecOctree, Data: frame})
		}
		select {
		case <-ticker.C:
		case <-stop:
			return
		}
	}
}

// unityEnough is the number of frames that shows that a stream flows.
const unityEnough = 40

// TestUnityBridge sends frames from C# through a real bridge and a real server to a watcher in Go, and in the other
// direction, switches qualities in both directions, and kills the bridge. The program passes a secret to the bridge.
func TestUnityBridge(t *testing.T) {
	core, bridge := unityCore(t), unityBridge(t)
	c := startUnityConference(t)
	watcher, publisher := newUnityWatcher(t, c),
		newUnityPublisher(t, c, volumetric.BoundingBox{}, volumetric.BoundingBox{})
	unity := startUnity(t, nil, core, "bridge", bridge, c.Server.URL(), unityRoom, "unity-1", strconv.Itoa(portPair(t)),
		"1", "2", "2", "a secret of this test")
	unity.await(t, "event Ready")
	// Frames of 1.2 and 2.4 kB need 1.7 Mbit/s together: the bridge assumes 2 Mbit/s, and cannot probe for more on a
	// busy machine.
	unity.say("publish 1200")

	upwards := func(quality int) {
		t.Helper()
		since := len(watcher.seen(&watcher.frames, 0))
		eventually(t, fmt.Sprintf("the watcher has frames of both tiles at quality %d", quality), func() bool {
			frames := watcher.seen(&watcher.frames, since)
			return unityCount(frames, fmt.Sprintf("0 %d ", quality)) >= unityEnough &&
				unityCount(frames, fmt.Sprintf("1 %d ", quality)) >= unityEnough
		})
	}
	downwards := func(quality int) {
		t.Helper()
		eventually(t, fmt.Sprintf("C# has frames of both tiles at quality %d", quality), func() bool {
			frames := unity.said("frame 7 ")
			return unityCount(frames, fmt.Sprintf("0 %d ", quality)) >= unityEnough &&
				unityCount(frames, fmt.Sprintf("1 %d ", quality)) >= unityEnough
		})
	}
	upwards(1)
	downwards(1)
	watcher.choose(t, 0)
	upwards(0)
	unity.do("choose 7 0,0")
	downwards(0)
	eventually(t, "the watcher hears something", func() bool {
		// The first frames of sound define its format, and have been dropped by the time the watcher's line exists.
		unity.do("sound 30")
		unity.await(t, "spoken")
		return len(watcher.seen(&watcher.sound, 0)) >= 20
	})
	unity.do("counts")
	if got := unity.await(t, "counts "); !strings.HasPrefix(got, "starts=1 malformed=0 foreign=0 ") ||
		!strings.Contains(got, " contradictions=0 duplicates=0 ") {
		t.Errorf("counts: %s", got)
	}
	unity.killBridge(t)
	upwards(0)
	downwards(0)
	// Both arrive within minutes, or the test would have failed before.
	measured(t, claim.Information("bridges that were killed, and came again", 1, ""))
	frames, wrong := unity.checkDownwards(publisher)
	measured(t, claim.Information("frames from Go through server and bridge to C#", float64(frames), ""))
	measured(t, claim.Exactly("frames that C# received and nobody sent, by their hashes", int64(wrong), "", 0))
	frames, sounds, wrong := unity.checkUpwards(t, watcher)
	measured(t, claim.Information("frames from C# through bridge and server to Go", float64(frames), ""))
	measured(t, claim.Information("frames of sound from C# through bridge and server to Go", float64(sounds), ""))
	measured(t, claim.Exactly("frames that Go received and C# did not send, by their hashes", int64(wrong), "", 0))
}

// killBridge kills the bridge that was started last, and waits for the next one.
func (u *unityPuppet) killBridge(t *testing.T) {
	t.Helper()
	u.mark = 0
	started := u.said("event Started ")
	pid, err := strconv.Atoi(started[len(started)-1])
	if err != nil {
		t.Fatal(err)
	}
	process, err := os.FindProcess(pid)
	if err != nil {
		t.Fatal(err)
	}
	u.do("counts")
	if err := process.Kill(); err != nil {
		t.Fatal(err)
	}
	u.await(t, "event Ended")
	u.await(t, "event Started")
	u.await(t, "event Ready")
}

// checkDownwards counts the frames received in C#, and those of them that were not published in Go.
func (u *unityPuppet) checkDownwards(p *unityPublisher) (frames, wrong int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, line := range u.lines {
		// frame CLIENT TILE QUALITY NUMBER HASH
		if words := strings.Fields(line); words[0] == "frame" {
			frames++
			if !p.sent[words[2]+" "+words[3]+" "+words[5]] {
				wrong++
			}
		}
	}
	return frames, wrong
}

// checkUpwards counts the frames that the watcher received, and those of them that C# did not publish. Since the
// announcement by C# may be read after the frame has arrived, the counts are those of the frames that had arrived
// before C# was queried again.
func (u *unityPuppet) checkUpwards(t *testing.T, w *unityWatcher) (frames, sounds, wrong int) {
	t.Helper()
	came, heard := w.seen(&w.frames, 0), w.seen(&w.sound, 0)
	u.do("counts")
	u.await(t, "counts ")
	sent := make(map[string]bool)
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, line := range u.lines {
		if rest, ok := strings.CutPrefix(line, "sent "); ok {
			sent[rest] = true
		}
	}
	for _, frame := range came {
		if !sent[frame] {
			wrong++
		}
	}
	for _, hash := range heard {
		if !sent["sound 0 "+hash] {
			wrong++
		}
	}
	return len(came), len(heard), wrong
}

// unityCount returns the number of lines with the given prefix.
func unityCount(lines []string, beginning string) int {
	n := 0
	for _, line := range lines {
		if strings.HasPrefix(line, beginning) {
			n++
		}
	}
	return n
}
