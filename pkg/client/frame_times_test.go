package client

import (
	"testing"
	"time"

	"github.com/pion/rtp"

	"github.com/volsfu/volsfu/pkg/frametimes"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

var noon = time.Unix(1_800_000_000, 0)

// traced is a tracing of a participant that publishes and receives.
func traced() *tracing {
	t := newTracing(Config{FrameTimes: true, Receive: true})
	t.joined("ada")
	return t
}

// taken gives the records that the program was handed.
func (t *tracing) taken() (list []frametimes.Record) {
	for {
		select {
		case r, open := <-t.records:
			if !open {
				return list
			}
			list = append(list, r)
		default:
			return list
		}
	}
}

// TestSentTimes: a frame of 100 packets has stamps of its first, of that which ends its first segment, and of its last.
func TestSentTimes(t *testing.T) {
	p := &Publisher{publication: volumetric.Publication{Name: "body", Tiles: make([]volumetric.Tile, 2), Qualities: make([]volumetric.QualityLevel, 3)}}
	for _, packets := range []int{1, 2, 57, 58, 100} {
		s := &sentTimes{publisher: p, track: 5, number: 9, bytes: 1000, capture: noon, stages: Stages{Encoded: noon.Add(time.Millisecond)}}
		outgoing := make([]outgoing, packets)
		for i := range outgoing {
			outgoing[i].header = rtp.Header{SSRC: 7, SequenceNumber: uint16(65530 + i)}
			s.mark(&outgoing[i], i, packets)
		}
		marks := 0
		for i := range outgoing {
			if o := &outgoing[i]; o.times != nil {
				o.times.leaves(o.mark, noon.Add(time.Duration(2+i)*time.Millisecond))
				marks++
			} else if o.mark != 0 {
				t.Errorf("packet %d of %d has a mark and no times", i, packets)
			}
		}
		at := func(packet int) time.Time { return noon.Add(time.Duration(2+packet) * time.Millisecond) }
		if !s.first.Equal(at(0)) || !s.segment.Equal(at(min(57, packets)-1)) || !s.last.Equal(at(packets-1)) || marks > 3 {
			t.Errorf("%d packets: first %v, segment %v, last %v, %d marks", packets, s.first, s.segment, s.last, marks)
		}
		r := s.record("ada", frametimes.Clock{Source: frametimes.SourceEstimated, Offset: time.Second}, 50*time.Millisecond)
		if got := r.Time(frametimes.Captured); !got.Equal(noon.Add(1050 * time.Millisecond)) {
			t.Errorf("captured at %v by the server's clock", got)
		}
		if r.Track.Tile != 1 || r.Track.Quality != 2 || r.Has(frametimes.Tiled) || !r.Has(frametimes.Encoded) {
			t.Errorf("the record is %+v", r)
		}
	}
	var none *sentTimes
	none.mark(&outgoing{}, 0, 3)
}

// TestStep: sent frames become a message for the server and records for the program, the kernel's stamps among them.
func TestStep(t *testing.T) {
	tr := traced()
	p := &Publisher{publication: volumetric.Publication{Name: "body", Tiles: make([]volumetric.Tile, 2), Qualities: make([]volumetric.QualityLevel, 1)}}
	sent := func(track int, number uint32) {
		at := noon.Add(time.Duration(number) * time.Second)
		tr.left(&sentTimes{
			publisher: p, track: track, number: number, bytes: 100, capture: at, first: at.Add(time.Millisecond), segment: at.Add(2 * time.Millisecond),
			last: at.Add(3 * time.Millisecond), ssrc: uint32(track), sequence: uint16(number),
		})
	}
	clock := frametimes.Clock{Source: frametimes.SourceEstimated, Offset: 5 * time.Millisecond, Bound: 70, Uncertainty: 30}
	sent(0, 1)
	if m := tr.step(clock, 0, noon); m != nil {
		t.Errorf("the server gets %+v that it did not ask for", m)
	}
	if got := tr.taken(); len(got) != 1 || got[0].Track.Participant != "ada" {
		t.Errorf("the program gets %+v, expected its frame", got)
	}
	tr.asked(true)
	for n := range uint32(3) {
		sent(0, n)
		sent(1, n)
	}
	kernel := noon.Add(time.Second + 1100*time.Microsecond)
	tr.stamped(sentStamp{1, 1, time.Time{}, kernel.Add(time.Microsecond)})
	tr.stamped(sentStamp{1, 1, kernel, time.Time{}})
	m := tr.step(clock, 0, noon)
	if m == nil || len(m.Tracks) != 2 || len(m.Tracks[0].Frames) != 3 || m.Clock.Offset != 5e6 || m.Host != signal.FrameHostSender {
		t.Fatalf("the server gets %+v", m)
	}
	if err := m.Validate(); err != nil {
		t.Error(err)
	}
	row := m.Tracks[1].Frames[1]
	want := []int64{1, 100, noon.Add(1005 * time.Millisecond).UnixMicro(), 0, -1, -1, -1, -1, -1, 1e6, 1.1e6, 1.101e6, 2e6, 3e6}
	for i := range want {
		if row[i] != want[i] {
			t.Errorf("the row is %v, expected %v", row, want)
			break
		}
	}
	for n := range uint32(signal.MaxFrameTimes + 10) {
		sent(0, n)
	}
	if m := tr.step(clock, 0, noon); m.Dropped != 10 || m.Validate() != nil {
		t.Errorf("%d dropped, %v, expected the 10 that do not fit", m.Dropped, m.Validate())
	}
	tr.end()
	tr.left(&sentTimes{publisher: p})
}

// server is what the server tells of a frame.
func server(number uint32, firstOut time.Duration) *signal.FrameTimes {
	return &signal.FrameTimes{Host: signal.FrameHostServer, Clock: signal.HostClock{Source: signal.ClockSystem}, Tracks: []signal.TrackTimes{{
		Participant: "grace", Publication: "body",
		Frames: [][]int64{{int64(number), 500, noon.UnixMicro(), -1, -1, 0, 4e6, int64(firstOut), -1, -1, 6e6}, {1, 2}, nil},
	}}}
}

// TestTold: what the server says joins what was received, and tells which packet was quickest.
func TestTold(t *testing.T) {
	tr := traced()
	track := volumetric.TrackRef{TileRef: volumetric.TileRef{PublicationRef: volumetric.PublicationRef{Participant: "grace", Publication: "body"}}}
	receive := func(number int64, after time.Duration) {
		part := frametimes.Record{Track: track, Frame: number, Bytes: 400}
		part.Clocks[frametimes.Receiver] = frametimes.Clock{Source: frametimes.SourceEstimated, Offset: -time.Second}
		part.SetLocal(frametimes.FirstReceived, noon.Add(time.Second+after))
		tr.received(&part, noon)
	}
	receive(1<<32+7, 5*time.Millisecond)
	tr.told(server(8, 0), noon) // before the frame is whole
	receive(1<<32+8, 5*time.Millisecond)
	sent, arrived, ok := tr.told(server(7, 2*time.Millisecond), noon)
	if !ok || !sent.Equal(noon.Add(2*time.Millisecond)) || !arrived.Equal(noon.Add(1005*time.Millisecond)) {
		t.Errorf("the quickest left at %v and arrived at %v, %v", sent, arrived, ok)
	}
	// A packet of the frame that came late is told of as if it were another frame.
	if sent, arrived, ok := tr.told(server(7, 480*time.Millisecond), noon); ok && sent.Sub(arrived) > -1003*time.Millisecond {
		t.Errorf("the late packet left at %v, and the first one had arrived at %v", sent, arrived)
	}
	if _, _, ok := tr.told(server(99, 0), noon); ok {
		t.Error("a frame that never came was quick")
	}
	session := &Session{media: &media{tracing: tr}, config: Config{ClockShift: 30 * time.Millisecond}}
	began := noon.Add(time.Second)
	session.FrameDecoded(&Frame{Track: track, Number: 1<<32 + 7}, began, began.Add(time.Millisecond))
	session.FrameShown(track, 1<<32+7, began, began.Add(2*time.Millisecond))
	tr.step(frametimes.Clock{Source: frametimes.SourceSystem}, 0, noon.Add(timesPatience))
	records := tr.taken()
	if len(records) != 2 || records[0].Receiver != "ada" || records[0].Frame != 1<<32+7 {
		t.Fatalf("got %+v, expected the two frames that came", records)
	}
	for _, r := range records {
		if r.Bytes != 400 {
			t.Errorf("frame %d has %d bytes, expected 400 whoever was the first to tell", r.Frame, r.Bytes)
		}
	}
	r := records[0]
	if got := r.Time(frametimes.Shown); !got.Equal(noon.Add(32 * time.Millisecond)) {
		t.Errorf("shown at %v, expected 32 ms after noon by the server's clock", got)
	}
	layers := r.Layers()
	if d, known := layers.Get(frametimes.ServerHold); !known || d != 2*time.Millisecond {
		t.Errorf("held for %v, %v, expected 2 ms", d, known)
	}
	if d, known := layers.Get(frametimes.ProtocolDownNetwork); !known || d != 3*time.Millisecond {
		t.Errorf("%v from the server, %v, expected 3 ms", d, known)
	}
}

// TestTracingOff: nothing is kept that nobody wants.
func TestTracingOff(t *testing.T) {
	tr := newTracing(Config{Receive: true})
	if tr.traces() {
		t.Error("frames are traced though nobody asked")
	}
	tr.told(server(7, 0), noon)
	session := &Session{media: &media{tracing: tr}}
	session.FrameDecoded(&Frame{}, noon, noon)
	tr.step(frametimes.Clock{Source: frametimes.SourceSystem}, 0, noon.Add(time.Hour))
	if got := tr.taken(); len(got) != 0 {
		t.Errorf("got %+v", got)
	}
}

// TestKernelStamps: those of a frame's first packet are found when the frame is complete.
func TestKernelStamps(t *testing.T) {
	var k kernelStamps
	k.first(1)
	for frame := range uint32(40) {
		for packet := range 3 {
			k.now = kernelStamp{kernel: noon.Add(time.Duration(10*int(frame)+packet) * time.Millisecond)}
			k.first(frame)
		}
	}
	if got := k.take(39).kernel; !got.Equal(noon.Add(390 * time.Millisecond)) {
		t.Errorf("got %v, expected the first packet's", got)
	}
	if got := k.take(1); got != (kernelStamp{}) {
		t.Errorf("got %v of a frame of long ago", got)
	}
}

// TestHostClock: what is estimated, what is taken for right, and what is found of that.
func TestHostClock(t *testing.T) {
	const ahead = 40 * time.Millisecond
	exchange := func(c *hostClock) {
		t.Helper()
		for i := range 20 {
			sent := noon.Add(time.Duration(i) * time.Second)
			// A server whose clock is ahead, a millisecond away.
			if err := c.answered(c.local(sent), sent.Add(ahead+time.Millisecond), sent.Add(ahead+time.Millisecond), sent.Add(2*time.Millisecond)); err != nil {
				t.Fatal(err)
			}
		}
	}
	now := noon.Add(20 * time.Second)
	estimated := newHostClock(Config{URL: "ws://192.0.2.1"})
	if estimated.source != frametimes.SourceEstimated || !estimated.asks(false) {
		t.Errorf("elsewhere the source is %q", estimated.source)
	}
	if got := estimated.toServer(now); !got.Equal(now) {
		t.Errorf("nothing is known, and %v is %v", now, got)
	}
	exchange(&estimated)
	if miss := estimated.toServer(now).Sub(now) - ahead; miss.Abs() > 100*time.Microsecond {
		t.Errorf("the estimate is off by %v", miss)
	}
	// One that arrived before it left says nothing, one that was quicker than the answers does.
	before := estimated.state(now)
	estimated.travelled(now.Add(ahead+480*time.Millisecond), now)
	if got := estimated.state(now); got != before {
		t.Errorf("the clock was %+v and is %+v, by a packet that cannot have been", before, got)
	}
	estimated.travelled(now.Add(ahead-200*time.Microsecond), now)
	if got := estimated.state(now); got.Bound >= before.Bound || (got.Offset-ahead).Abs() > got.Bound {
		t.Errorf("the clock was %+v and is %+v, though a packet took no more than 200 µs", before, got)
	}
	shifted := newHostClock(Config{URL: "ws://127.0.0.1", ClockShift: time.Minute})
	exchange(&shifted)
	state := shifted.state(now)
	if miss := shifted.toServer(now).Sub(now) - ahead; shifted.source != frametimes.SourceEstimated || miss.Abs() > 100*time.Microsecond {
		t.Errorf("a clock that is moved is off by %v", miss)
	}
	if miss := state.Offset - ahead + time.Minute; miss.Abs() > 100*time.Microsecond || state.Bound < time.Millisecond || state.Disagreement != 0 {
		t.Errorf("the clock is %+v", state)
	}
	system := newHostClock(Config{URL: "ws://localhost"})
	if system.source != frametimes.SourceSystem || system.asks(false) || !system.asks(true) {
		t.Errorf("on one host the source is %q", system.source)
	}
	exchange(&system)
	state = system.state(now)
	if state.Offset != 0 || (state.Disagreement-ahead).Abs() > 100*time.Microsecond || state.Bound < ahead || !system.toServer(now).Equal(now) {
		t.Errorf("a clock that is taken for right is %+v", state)
	}
}

// FuzzTold: whatever a server tells, records can be made of it.
func FuzzTold(f *testing.F) {
	data, err := signal.Encode(server(7, time.Millisecond))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte(`{"type":"frame_times","host":"sender","clock":{"source":"x"},"tracks":[{"frames":[[-1,-1,9223372036854775807,1,2,3,4,5,6,7,8,9,10,11]]}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := signal.DecodeFromServer(data)
		if err != nil {
			return
		}
		times, ok := m.(*signal.FrameTimes)
		if !ok {
			return
		}
		tr := traced()
		for _, track := range times.Tracks {
			part := frametimes.Record{}
			part.Track.Participant, part.Track.Publication, part.Track.Tile, part.Track.Quality = track.Participant, track.Publication, track.Tile, track.Quality
			part.Set(frametimes.FirstReceived, noon)
			tr.received(&part, noon)
		}
		tr.told(times, noon)
		tr.step(frametimes.Clock{Source: frametimes.SourceSystem}, 0, noon.Add(time.Hour))
		for _, r := range tr.taken() {
			layers := r.Layers()
			layers.Sum()
			r.AppendJSON(nil)
		}
	})
}
