package frametrace

import (
	"testing"
	"time"

	"github.com/volsfu/volsfu/pkg/frametimes"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

var noon = time.Unix(1_800_000_000, 0)

// traced returns the collector of a participant that publishes and receives.
func traced() *Collector {
	t := New(true, true)
	t.SetIdentity("ada")
	return t
}

// taken returns the records for the program.
func (c *Collector) taken() (list []frametimes.Record) {
	for {
		select {
		case r, open := <-c.records:
			if !open {
				return list
			}
			list = append(list, r)
		default:
			return list
		}
	}
}

// TestSentTimes: a frame of 100 packets has stamps of its first packet, of the last packet of its first segment, and of
// its last packet.
func TestSentTimes(t *testing.T) {
	type packet struct {
		times *Sent
		mark  Mark
	}
	for _, packets := range []int{1, 2, 57, 58, 100} {
		s := &Sent{Publication: "body", Tile: 1, Quality: 2, Number: 9, Bytes: 1000, Capture: noon,
			Stages: Stages{Encoded: noon.Add(time.Millisecond)}}
		outgoing := make([]packet, packets)
		for i := range outgoing {
			if m := s.Mark(7, uint16(65530+i), i, packets); m != 0 {
				outgoing[i] = packet{s, m}
			}
		}
		marks := 0
		for i := range outgoing {
			if o := &outgoing[i]; o.times != nil {
				o.times.Leaves(o.mark, noon.Add(time.Duration(2+i)*time.Millisecond))
				marks++
			}
		}
		at := func(packet int) time.Time { return noon.Add(time.Duration(2+packet) * time.Millisecond) }
		if !s.first.Equal(at(0)) || !s.segment.Equal(at(min(57, packets)-1)) || !s.last.Equal(at(packets-1)) ||
			marks > 3 {
			t.Errorf("%d packets: first %v, segment %v, last %v, %d marks", packets, s.first, s.segment, s.last, marks)
		}
		r := s.record("ada", frametimes.Clock{Source: frametimes.SourceEstimated, Offset: time.Second},
			50*time.Millisecond)
		if got := r.Time(frametimes.Captured); !got.Equal(noon.Add(1050 * time.Millisecond)) {
			t.Errorf("captured at %v by the server's clock", got)
		}
		if r.Track.Tile != 1 || r.Track.Quality != 2 || r.Has(frametimes.Tiled) || !r.Has(frametimes.Encoded) {
			t.Errorf("the record is %+v", r)
		}
	}
	var none *Sent
	if m := none.Mark(7, 1, 0, 3); m != 0 {
		t.Errorf("a packet of a frame that is not traced has the mark %b", m)
	}
}

// TestStep: sent frames become a message for the server and records for the program, with the kernel's times.
func TestStep(t *testing.T) {
	tr := traced()
	sent := func(track int, number uint32) {
		at := noon.Add(time.Duration(number) * time.Second)
		tr.Left(&Sent{
			Publication: "body", Tile: track, Number: number, Bytes: 100, Capture: at, first: at.Add(time.Millisecond),
			segment: at.Add(2 * time.Millisecond),
			last:    at.Add(3 * time.Millisecond), ssrc: uint32(track), sequence: uint16(number),
		})
	}
	clock := frametimes.Clock{Source: frametimes.SourceEstimated, Offset: 5 * time.Millisecond, Bound: 70,
		Uncertainty: 30}
	sent(0, 1)
	if m := tr.Step(clock, 0, noon); m != nil {
		t.Errorf("the server gets %+v that it did not ask for", m)
	}
	if got := tr.taken(); len(got) != 1 || got[0].Track.Participant != "ada" {
		t.Errorf("the program gets %+v, expected its frame", got)
	}
	tr.SetReporting(true)
	for n := range uint32(3) {
		sent(0, n)
		sent(1, n)
	}
	kernel := noon.Add(time.Second + 1100*time.Microsecond)
	tr.Stamped(1, 1, KernelStamp{Hardware: kernel.Add(time.Microsecond)})
	tr.Stamped(1, 1, KernelStamp{Kernel: kernel})
	m := tr.Step(clock, 0, noon)
	if m == nil || len(m.Tracks) != 2 || len(m.Tracks[0].Frames) != 3 || m.Clock.Offset != 5e6 ||
		m.Host != signal.FrameHostSender {
		t.Fatalf("the server gets %+v", m)
	}
	if err := m.Validate(); err != nil {
		t.Error(err)
	}
	row := m.Tracks[1].Frames[1]
	want := []int64{1, 100, noon.Add(1005 * time.Millisecond).UnixMicro(), 0, -1, -1, -1, -1, -1, 1e6, 1.1e6, 1.101e6,
		2e6, 3e6}
	for i := range want {
		if row[i] != want[i] {
			t.Errorf("the row is %v, expected %v", row, want)
			break
		}
	}
	for n := range uint32(signal.MaxFrameTimes + 10) {
		sent(0, n)
	}
	if m := tr.Step(clock, 0, noon); m.Dropped != 10 || m.Validate() != nil {
		t.Errorf("%d dropped, %v, expected the 10 that do not fit", m.Dropped, m.Validate())
	}
	tr.End()
	tr.Left(&Sent{})
}

// server returns the server's report about a frame.
func server(number uint32, firstOut time.Duration) *signal.FrameTimes {
	return &signal.FrameTimes{Host: signal.FrameHostServer, Clock: signal.HostClock{Source: signal.ClockSystem},
		Tracks: []signal.TrackTimes{{
			Participant: "grace", Publication: "body",
			Frames: [][]int64{
				{int64(number), 500, noon.UnixMicro(), -1, -1, 0, 4e6, int64(firstOut), -1, -1, 6e6}, {1, 2}, nil,
			},
		}}}
}

// TestTold: the server's report is joined with the arrival times, and yields the packet with the shortest transit.
func TestTold(t *testing.T) {
	tr := traced()
	track := volumetric.TrackRef{TileRef: volumetric.TileRef{
		PublicationRef: volumetric.PublicationRef{Participant: "grace", Publication: "body"},
	}}
	receive := func(number int64, after time.Duration) {
		part := frametimes.Record{Track: track, Frame: number, Bytes: 400}
		part.Clocks[frametimes.Receiver] = frametimes.Clock{Source: frametimes.SourceEstimated, Offset: -time.Second}
		part.SetLocal(frametimes.FirstReceived, noon.Add(time.Second+after))
		tr.Received(&part, noon)
	}
	receive(1<<32+7, 5*time.Millisecond)
	tr.Told(server(8, 0), noon) // before the frame is complete
	receive(1<<32+8, 5*time.Millisecond)
	sent, arrived, ok := tr.Told(server(7, 2*time.Millisecond), noon)
	if !ok || !sent.Equal(noon.Add(2*time.Millisecond)) || !arrived.Equal(noon.Add(1005*time.Millisecond)) {
		t.Errorf("the quickest left at %v and arrived at %v, %v", sent, arrived, ok)
	}
	// A late packet of the frame is treated like a packet of another frame.
	if sent, arrived, ok := tr.Told(server(7, 480*time.Millisecond), noon); ok &&
		sent.Sub(arrived) > -1003*time.Millisecond {
		t.Errorf("the late packet left at %v, and the first one had arrived at %v", sent, arrived)
	}
	if _, _, ok := tr.Told(server(99, 0), noon); ok {
		t.Error("a frame that never came was quick")
	}
	relay := &signal.FrameTimes{
		Host:  signal.FrameHostRelay,
		Clock: signal.HostClock{Source: signal.ClockEstimated, Offset: 5e9, Bound: 1e6, Uncertainty: 2e4},
		Tracks: []signal.TrackTimes{{Participant: "grace", Publication: "body", Frames: [][]int64{
			{7, 0, noon.UnixMicro() - 20_000, 500, 1_000_500},
		}}},
	}
	tr.Told(relay, noon)
	relay.Host = "later"
	tr.Told(relay, noon)
	tr.Note(track, 1<<32+7, func(r *frametimes.Record) {
		r.SetLocal(frametimes.Shown,
			noon.Add(1032*time.Millisecond))
	})
	tr.Step(frametimes.Clock{Source: frametimes.SourceSystem}, 0, noon.Add(patience))
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
	if d, known := layers.Get(frametimes.RelayHold); !known || d != time.Millisecond {
		t.Errorf("%v in the sender's server, %v, expected 1 ms", d, known)
	}
	if d, known := layers.Get(frametimes.RelayNetwork); !known || d != 23*time.Millisecond-500 ||
		layers.Bound(frametimes.RelayNetwork) != time.Millisecond {
		t.Errorf("%v between the servers, %v, expected 23 ms less 500 ns", d, known)
	}
	later := records[1].Layers()
	if _, known := later.Get(frametimes.RelayHold); known {
		t.Error("a frame of which no other server has told has the time in that server")
	}
}

// TestTracingOff: nothing is kept while tracing is off.
func TestTracingOff(t *testing.T) {
	tr := New(false, false)
	if tr.TracesSent() {
		t.Error("frames are traced though nobody asked")
	}
	tr.Told(server(7, 0), noon)
	tr.Note(volumetric.TrackRef{}, 0, func(*frametimes.Record) { t.Error("stamps are added to a frame") })
	tr.Step(frametimes.Clock{Source: frametimes.SourceSystem}, 0, noon.Add(time.Hour))
	if got := tr.taken(); len(got) != 0 {
		t.Errorf("got %+v", got)
	}
}

// TestKernelStamps: the kernel times of a frame's first packet are found when the frame is complete.
func TestKernelStamps(t *testing.T) {
	var k KernelStamps
	k.First(1)
	for frame := range uint32(40) {
		for packet := range 3 {
			k.Set(KernelStamp{Kernel: noon.Add(time.Duration(10*int(frame)+packet) * time.Millisecond)})
			k.First(frame)
		}
	}
	if got := k.Find(39).Kernel; !got.Equal(noon.Add(390 * time.Millisecond)) {
		t.Errorf("got %v, expected the first packet's", got)
	}
	if got := k.Find(1); got != (KernelStamp{}) {
		t.Errorf("got %v of a frame of long ago", got)
	}
}

// FuzzTold: records can be made of every report of a server.
func FuzzTold(f *testing.F) {
	data, err := signal.Encode(server(7, time.Millisecond))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte(`{"type":"frame_times","host":"sender","clock":{"source":"x"},"tracks":[{"frames":[` +
		`[-1,-1,9223372036854775807,1,2,3,4,5,6,7,8,9,10,11]]}]}`))
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
			part.Track.Participant, part.Track.Publication, part.Track.Tile, part.Track.Quality = track.Participant,
				track.Publication, track.Tile, track.Quality
			part.Set(frametimes.FirstReceived, noon)
			tr.Received(&part, noon)
		}
		tr.Told(times, noon)
		tr.Step(frametimes.Clock{Source: frametimes.SourceSystem}, 0, noon.Add(time.Hour))
		for _, r := range tr.taken() {
			layers := r.Layers()
			layers.Sum()
			r.AppendJSON(nil)
		}
	})
}
