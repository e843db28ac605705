package recorder

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/forward/packetlog"
	"github.com/volsfu/volsfu/internal/forward/track"
	"github.com/volsfu/volsfu/pkg/payload"
	"github.com/volsfu/volsfu/pkg/recording"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/switching"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/wait"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a recording of one publication without the goroutine that reads logs. The time is virtual.
type rig struct {
	t        testing.TB
	now      time.Time
	recorder *Recorder
	track    *track.Track
	pool     *packetlog.Pool
	sequence int64
	number   uint32
	start    time.Time
}

func newRig(t testing.TB, mime string, change func(*Config)) *rig {
	t.Helper()
	c := DefaultConfig()
	c.Directory, c.MinFree, c.RetryInterval = filepath.Join(t.TempDir(), "recordings"), 0, time.Second
	if change != nil {
		change(&c)
	}
	recorder, err := open(c, "test", zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, recorder: recorder, pool: packetlog.NewPool(), now: time.Now(), start: time.Now()}
	clock := packetlog.NewClock(func() time.Time { return r.now })
	tracks := track.NewTracks(clock, packetlog.Limits{Age: time.Second, Bytes: 32 << 20}, packetlog.NewBudget(1<<30))
	r.track = tracks.New(track.Config{Codec: volumetric.Codec{MIMEType: mime, ClockRate: 90000}})
	return r
}

// publish adds the publication of the track to a recording.
func (r *rig) publish(g *Recording) {
	id := g.Publish(r.now, "ada", recording.All, volumetric.Publication{
		Name: "body", Kind: volumetric.KindVideo, Mode: volumetric.ModeAlternatives, Codec: r.track.Codec(),
		Tiles: make([]volumetric.Tile, 1), Qualities: make([]volumetric.QualityLevel, 1),
	})
	g.Read(r.now, id, 0, 0, r.track, true)
}

// frame passes the packets of the next frame to the track, except those of the lost indexes. Its data begins with its
// number.
func (r *rig) frame(size int, parity uint16, lost ...int) []byte {
	r.t.Helper()
	r.number++
	data := make([]byte, size)
	binary.BigEndian.PutUint32(data, r.number)
	prefix := payload.Prefix{FourCC: [4]byte{'t', 'e', 's', 't'}, Stamp: 1<<63 + uint64(r.number)}
	var f payload.Fragmenter
	d := payload.Descriptor{Prefixed: true, Frame: r.number, Parity: parity}
	if err := f.Begin(d, append(prefix.AppendTo(nil), data...)); err != nil {
		r.t.Fatal(err)
	}
	for i := range f.Packets() {
		body, err := f.AppendPacket(nil, i)
		if err != nil {
			r.t.Fatal(err)
		}
		missing := false
		for _, n := range lost {
			missing = missing || n == i
		}
		r.packet(body, !missing, i == f.Packets()-1)
	}
	r.now = r.now.Add(time.Second / 30)
	return data
}

// packet passes a packet to the track, or leaves out its number.
func (r *rig) packet(body []byte, present, marker bool) {
	r.sequence++
	if !present {
		return
	}
	p := r.pool.Get(body)
	p.Facts = switching.Packet{Sequence: r.sequence, Timestamp: r.number * 3000, Marker: marker, Last: r.track.Audio()}
	p.Order = r.track.Now()
	r.track.Publish(p)
}

// written ends a recording and returns its records except the heads.
func (r *rig) written(g *Recording) (list []recording.Record, damage recording.Damage) {
	r.t.Helper()
	g.Stop(r.now, "test")
	g.Wait(context.Background())
	return read(r.t, g.disk.folder)
}

// read returns the records of a recording except the heads.
func read(t testing.TB, folder string) (list []recording.Record, damage recording.Damage) {
	t.Helper()
	reader, err := recording.Open(folder)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = reader.Close() }()
	for {
		next, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return list, reader.Damage()
		}
		if err != nil {
			t.Fatal(err)
		}
		switch next := next.(type) {
		case *recording.Head:
		case *recording.Frame:
			next.Data = append([]byte(nil), next.Data...)
			list = append(list, next)
		default:
			list = append(list, next)
		}
	}
}

// numbers returns the numbers of the frames in a list.
func numbers(list []recording.Record) (n []uint32) {
	for _, r := range list {
		if f, ok := r.(*recording.Frame); ok {
			n = append(n, f.Number)
		}
	}
	return n
}

// lostIn returns the last losses in a list.
func lostIn(list []recording.Record) (last recording.Lost) {
	for _, r := range list {
		if l, ok := r.(*recording.Lost); ok {
			last = *l
		}
	}
	return last
}

// settle waits until the disk has taken everything.
func (r *rig) settle(g *Recording) {
	r.t.Helper()
	wait.Until(r.t, "the queue is empty", func() bool { return g.queued.Load() == 0 })
}

func TestFrames(t *testing.T) {
	r := newRig(t, volumetric.MIMEVolumetric, nil)
	g := r.recorder.Start("lab", r.now)
	r.publish(g)
	first := r.frame(5000, 0)
	r.frame(0+4, 0)
	r.frame(5000, 1, 2)    // parity replaces the packet
	r.frame(5000, 0, 1, 3) // two packets are missing
	for range 60 {
		r.frame(3000, 0)
		g.step(r.now)
	}
	list, damage := r.written(g)
	if got := numbers(list); len(got) != 63 || got[2] != 3 || got[3] != 5 {
		t.Errorf("frames %v, expected all but 4", got)
	}
	for _, record := range list {
		f, ok := record.(*recording.Frame)
		if !ok {
			continue
		}
		if f.Number == 1 && (string(f.Data) != string(first) || f.Codec.String() != "test" || f.Capture != 1<<63+1 ||
			!f.Prefixed || f.At.Sub(r.start).Abs() > time.Second) {
			t.Errorf("the first frame is %+v", f)
		}
	}
	if lost := lostIn(list); lost.Incomplete != 1 || lost.Total() != 1 {
		t.Errorf("lost %+v, expected one incomplete frame", lost)
	}
	if damage != (recording.Damage{}) {
		t.Errorf("damage %+v", damage)
	}
	if s := r.recorder.Stats(); s.Frames != 63 || s.Incomplete != 1 || s.QueuedBytes != 0 || s.Rooms != 0 {
		t.Errorf("%+v", s)
	}
	info, err := os.Stat(filepath.Join(g.disk.folder, recording.SegmentName(1)))
	if err != nil || info.Mode().Perm() != 0o600 || info.Size() != r.recorder.Stats().DiskBytes {
		t.Errorf("the segment is %v, %v", info, err)
	}
}

// TestLogThatIsTooShort: the packets that a log has removed before the recording read them are counted.
func TestLogThatIsTooShort(t *testing.T) {
	r := newRig(t, volumetric.MIMEVolumetric, nil)
	g := r.recorder.Start("lab", r.now)
	r.publish(g)
	r.frame(100, 0)
	g.step(r.now)
	for range 90 { // three seconds
		r.frame(100, 0)
	}
	list, _ := r.written(g)
	lost := lostIn(list)
	if frames := uint64(len(numbers(list))); lost.Overrun < 50 || frames+lost.Overrun != 91 {
		t.Errorf("%d frames, lost %+v, expected 91 together", frames, lost)
	}
}

// TestKilled: a copy of the segment at any time, as a killed server leaves it, has all frames that were written.
func TestKilled(t *testing.T) {
	r := newRig(t, volumetric.MIMEVolumetric, nil)
	g := r.recorder.Start("lab", r.now)
	r.publish(g)
	for n := range 40 {
		// Chunks pass after 250 ms, which are seven frames here.
		for range 8 {
			r.frame(100+n*997, 0)
		}
		g.step(r.now)
		r.settle(g)
		data, err := os.ReadFile(filepath.Join(g.disk.folder, recording.SegmentName(1)))
		if errors.Is(err, os.ErrNotExist) && n == 0 {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		left := t.TempDir()
		if err := os.WriteFile(filepath.Join(left, recording.SegmentName(1)), data, 0o600); err != nil {
			t.Fatal(err)
		}
		list, damage := read(t, left)
		if got := numbers(list); len(got) < 8*n || got[len(got)-1] != uint32(len(got)) || damage.Skipped != 0 ||
			damage.Torn >= blockSize || damage.CutOff != 1 {
			t.Fatalf("%d frames of %d are left, damage %+v", len(got), r.number, damage)
		}
	}
	if list, damage := r.written(g); len(numbers(list)) != 320 || damage != (recording.Damage{}) {
		t.Errorf("%d frames, damage %+v", len(numbers(list)), damage)
	}
}

// TestSegments: a recording has several segments, each of which begins with the state of the room.
func TestSegments(t *testing.T) {
	r := newRig(t, volumetric.MIMEVolumetric, func(c *Config) { c.SegmentBytes = 100_000 })
	g := r.recorder.Start("../lab", r.now)
	if folder := filepath.Dir(filepath.Dir(g.disk.folder)); folder != r.recorder.config.Directory {
		t.Errorf("the room is recorded in %s, outside of %s", g.disk.folder, r.recorder.config.Directory)
	}
	for _, identity := range []string{"ada", "eve"} {
		joined := signal.Participant{Identity: identity}
		g.State("participant\x00"+identity, &signal.ParticipantJoined{Participant: joined})
	}
	g.State("participant\x00eve\x00pose", &signal.Pose{Publication: "body"})
	r.publish(g)
	for range 100 {
		r.frame(10_000, 0)
		g.step(r.now)
	}
	g.State("participant\x00eve", nil)
	for range 100 {
		r.frame(10_000, 0)
		g.step(r.now)
	}
	list, damage := r.written(g)
	if got := numbers(list); len(got) != 200 || damage != (recording.Damage{}) {
		t.Errorf("%d frames, damage %+v", len(got), damage)
	}
	paths, err := recording.Segments(g.disk.folder)
	if err != nil || len(paths) < 15 {
		t.Fatalf("%d segments, %v", len(paths), err)
	}
	for i, path := range []string{paths[1], paths[len(paths)-1]} {
		reader, err := recording.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		var kinds []string
		for {
			next, err := reader.Next()
			if err != nil {
				t.Fatal(err)
			}
			if _, ok := next.(*recording.Frame); ok {
				break
			}
			kinds = append(kinds, strings.TrimPrefix(fmt.Sprintf("%T", next), "*recording."))
		}
		_ = reader.Close()
		want := []string{"Head Message Message Message Publication", "Head Message Publication"}[i]
		if got := strings.Join(kinds, " "); got != want {
			t.Errorf("segment %s begins with %s, expected %s", path, got, want)
		}
	}
}

// TestSlowDisk: frames beyond the queue are discarded and counted, and reading never waits for the disk.
func TestSlowDisk(t *testing.T) {
	r := newRig(t, volumetric.MIMEVolumetric, func(c *Config) { c.QueueBytes = 1 << 20 })
	g := r.recorder.begin("lab", r.now)
	r.publish(g)
	for range 100 {
		r.frame(50_000, 0)
		g.step(r.now)
	}
	if queued := g.queued.Load(); queued < 1<<20 || queued > 2<<20 {
		t.Errorf("%d bytes are queued, expected about 1 MiB", queued)
	}
	r.recorder.ending.Go(g.write)
	r.settle(g)
	r.frame(50_000, 0)
	g.step(r.now)
	list, damage := r.written(g)
	got, lost := numbers(list), lostIn(list)
	if uint64(len(got))+lost.Discarded != 101 || lost.Discarded < 60 || got[len(got)-1] != 101 {
		t.Errorf("%d frames, the last %d, lost %+v, expected 101 together", len(got), got[len(got)-1], lost)
	}
	if damage.Skipped+damage.Torn != 0 {
		t.Errorf("damage %+v", damage)
	}
}

// TestLimit: at a limit nothing more is written, and the recording continues when there is room.
func TestLimit(t *testing.T) {
	r := newRig(t, volumetric.MIMEVolumetric, func(c *Config) { c.MaxBytes, c.SegmentBytes = 2_000_000, 200_000 })
	g := r.recorder.Start("lab", r.now)
	r.publish(g)
	record := func(frames int) {
		for range frames {
			r.frame(20_000, 0)
			g.step(r.now)
			r.settle(g)
		}
	}
	record(200)
	if bytes := r.recorder.Stats().DiskBytes; bytes > 1_000_000 || bytes < 700_000 {
		t.Errorf("a room has %d bytes, expected at most half of the limit of 2,000,000", bytes)
	}
	s := r.recorder.Stats()
	if s.Failures == 0 || s.Discarded == 0 {
		t.Errorf("%+v, expected failures and discarded frames", s)
	}
	r.recorder.ledger.mu.Lock()
	r.recorder.ledger.most = 20_000_000
	r.recorder.ledger.mu.Unlock()
	record(60)
	list, _ := r.written(g)
	got := numbers(list)
	if got[len(got)-1] != 260 {
		t.Errorf("the last frame is %d, expected 260", got[len(got)-1])
	}
	if lost := lostIn(list); lost.Discarded+uint64(len(got)) != 260 {
		t.Errorf("%d frames, lost %+v, expected 260 together", len(got), lost)
	}
}

// TestChunksAfterAFailure: the frames of all chunks after a failure are discarded, also those of the segment's last
// chunk.
func TestChunksAfterAFailure(t *testing.T) {
	r := newRig(t, volumetric.MIMEVolumetric, func(c *Config) { c.MinFree = math.MaxInt64 })
	g := r.recorder.begin("lab", r.now)
	r.publish(g)
	for range 2 {
		r.frame(5000, 0)
		g.step(r.now)
		r.now = r.now.Add(chunkTime)
		g.step(r.now)
	}
	r.frame(5000, 0)
	g.Stop(r.now, "test")
	if chunks := len(g.chunks); chunks != 3 {
		t.Fatalf("%d chunks are queued, expected 3", chunks)
	}
	g.write()
	if s := r.recorder.Stats(); s.Frames != 0 || g.unwritten.Load() != 3 {
		t.Errorf("%d frames count as written and %d as not written, expected 0 and 3", s.Frames, g.unwritten.Load())
	}
}

// TestOldestSegmentsAreDeleted: a room deletes its own segments at its half, and the oldest of all at the limit.
func TestOldestSegmentsAreDeleted(t *testing.T) {
	r := newRig(t, volumetric.MIMEVolumetric, func(c *Config) {
		c.MaxBytes, c.SegmentBytes, c.DeleteOldest = 2_000_000, 200_000, true
	})
	for room := range 3 {
		g := r.recorder.Start(fmt.Sprint(room), r.now)
		r.publish(g)
		for range 200 {
			r.frame(20_000, 0)
			g.step(r.now)
			r.settle(g)
		}
		list, damage := r.written(g)
		if got := numbers(list); len(got) < 30 || got[len(got)-1] != uint32(200*(room+1)) ||
			damage != (recording.Damage{}) {
			t.Errorf("room %d has %d frames, the last %d, damage %+v", room, len(got), got[len(got)-1], damage)
		}
	}
	s := r.recorder.Stats()
	if s.DiskBytes > 2_000_000 || s.Deleted == 0 || s.Failures != 0 {
		t.Errorf("%+v", s)
	}
	if rooms := r.recorder.ledger.rooms; rooms["0"] > 300_000 || rooms["1"] < 600_000 || rooms["2"] < 600_000 {
		t.Errorf("the rooms have %v bytes, expected that the segments of the first are deleted", rooms)
	}
	again, err := openLedger(&r.recorder.config)
	if err != nil {
		t.Fatal(err)
	}
	if bytes, _ := again.usage(); bytes != s.DiskBytes {
		t.Errorf("after a restart %d bytes are known, expected %d", bytes, s.DiskBytes)
	}
}

// TestFreeSpace: nothing is written if the file system would have less than the minimum free.
func TestFreeSpace(t *testing.T) {
	r := newRig(t, volumetric.MIMEVolumetric, func(c *Config) { c.MinFree = math.MaxInt64 })
	g := r.recorder.Start("lab", r.now)
	r.publish(g)
	r.frame(100, 0)
	g.Stop(r.now, "test")
	g.Wait(t.Context())
	if s := r.recorder.Stats(); s.Failures == 0 || s.Bytes != 0 {
		t.Errorf("%+v, expected a failure", s)
	}
}

// TestUnwritableFolder: a recording that cannot be written goes on when it can, from the state of the room.
func TestUnwritableFolder(t *testing.T) {
	r := newRig(t, volumetric.MIMEVolumetric, nil)
	g := r.recorder.Start("lab", r.now)
	room := filepath.Dir(g.disk.folder)
	if err := os.WriteFile(room, []byte("in the way"), 0o600); err != nil {
		t.Fatal(err)
	}
	r.publish(g)
	for range 30 {
		r.frame(20_000, 0)
		g.step(r.now)
	}
	wait.Until(t, "the disk has failed", func() bool { return g.failed.Load() != 0 })
	r.settle(g)
	if err := os.Remove(room); err != nil {
		t.Fatal(err)
	}
	r.now = r.now.Add(2 * time.Second)
	for range 30 {
		r.frame(20_000, 0)
		g.step(r.now)
	}
	list, _ := r.written(g)
	got := numbers(list)
	if len(got) < 30 || got[len(got)-1] != 60 || lostIn(list).Discarded+uint64(len(got)) != 60 {
		t.Errorf("frames %v, lost %+v, expected 60 together", got, lostIn(list))
	}
	if _, ok := list[0].(*recording.Publication); !ok {
		t.Errorf("the recording begins with %T", list[0])
	}
}
