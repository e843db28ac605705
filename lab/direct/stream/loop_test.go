package stream

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/congestion"
	"github.com/volsfu/volsfu/internal/congestion/pacing"
	"github.com/volsfu/volsfu/internal/ecn"
	"github.com/volsfu/volsfu/internal/netem"
	"github.com/volsfu/volsfu/pkg/payload"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// noise has the random content of frames.
var noise = func() []byte {
	noise := make([]byte, 1<<20)
	_, _ = rand.NewChaCha8([32]byte{}).Read(noise)
	return noise
}()

// wire has the parameters on which both ends have agreed.
var wire = Wire{SSRC: 1, RetransmissionSSRC: 2, PayloadType: 96, RetransmissionPayloadType: 97, Extension: 3}

// loop is a sender and a receiver at the ends of an emulated link, in virtual time.
type loop struct {
	t        *testing.T
	now      time.Time
	sender   *Sender
	receiver *Receiver
	link     *netem.Link
	delay    time.Duration
	back     []compound

	number uint32
	sent   map[uint32][]byte
	left   map[uint32]Departure
	got    []*payload.Frame
	waits  []time.Duration
	random *rand.Rand
	due    []Packet
}

type compound struct {
	at   time.Time
	data []byte
}

// newLoop creates a link from a profile such as "rate=20Mbit,delay=10ms,loss=1%", with the given delay in the other
// direction.
func newLoop(t *testing.T, profile string, delay time.Duration, config SenderConfig) *loop {
	t.Helper()
	cfg, err := netem.ParseProfile(profile)
	if err != nil {
		t.Fatal(err)
	}
	link, err := netem.NewLink(cfg, 1, netem.NewDropTail(1<<20))
	if err != nil {
		t.Fatal(err)
	}
	now := time.Unix(1000, 0)
	sender, err := NewSender(config, now)
	if err != nil {
		t.Fatal(err)
	}
	wire := config.Wire
	return &loop{
		t: t, now: now, sender: sender, link: link, delay: delay,
		receiver: NewReceiver(ReceiverConfig{Wire: wire, Sender: 9}),
		sent:     make(map[uint32][]byte), left: make(map[uint32]Departure), random: rand.New(rand.NewPCG(1, 2)),
	}
}

// frame sends a frame of the given size.
func (l *loop) frame(size int) {
	l.t.Helper()
	l.number++
	data := payload.Prefix{FourCC: [4]byte{'r', 'a', 'w', '1'}, Capture: l.now}.AppendTo(nil)
	begin := l.random.IntN(len(noise) - size)
	data = append(data, noise[begin:begin+size-len(data)]...)
	if err := l.sender.Send(Frame{Number: l.number, Capture: l.now, Data: data}, l.now); err != nil {
		l.t.Fatal(err)
	}
	l.sent[l.number] = data
}

// pass advances the time by d in steps of a millisecond.
func (l *loop) pass(d time.Duration) {
	l.t.Helper()
	for end := l.now.Add(d); l.now.Before(end); l.now = l.now.Add(time.Millisecond) {
		for len(l.back) > 0 && !l.back[0].at.After(l.now) {
			for _, packet := range Compound(l.back[0].data) {
				l.sender.RTCP(packet, l.now, 2*l.delay)
			}
			l.back = l.back[1:]
		}
		l.due = l.sender.Step(l.now, l.due[:0])
		for i := range l.due {
			data := make([]byte, congestion.PacketOverhead+len(l.due[i].Payload))
			n, err := l.due[i].Header.MarshalTo(data)
			if err != nil {
				l.t.Fatal(err)
			}
			data = data[:n+copy(data[n:], l.due[i].Payload)]
			l.link.Send(&netem.Packet{Payload: data, Size: congestion.PacketOverhead + len(l.due[i].Payload),
				ECN: l.due[i].ECN}, l.now)
		}
		for _, d := range l.sender.Departures(nil) {
			l.left[d.Number] = d
		}
		for _, p := range l.link.Deliver(l.now) {
			if f := l.receiver.RTP(p.Payload, p.ECN, l.now); f != nil {
				l.got = append(l.got, f)
				l.waits = append(l.waits, f.Last.Sub(f.Prefix.Capture))
			}
		}
		for _, c := range l.receiver.Step(l.now, 2*l.delay, nil) {
			l.back = append(l.back, compound{l.now.Add(l.delay), c})
		}
	}
}

// estimating returns the settings of a sender that estimates the rate.
func estimating(start volumetric.Bitrate) SenderConfig {
	cfg := congestion.DefaultConfig()
	cfg.Start = start
	return SenderConfig{Wire: wire, Congestion: cfg, Estimate: true, Pacing: pacing.Default, Budget: time.Second / 30}
}

// adapt sends frames at the estimated rate for the given time.
func (l *loop) adapt(d time.Duration) {
	for end := l.now.Add(d); l.now.Before(end); {
		l.frame(int(float64(l.sender.Estimate()) * 0.95 / 8 / 30))
		l.pass(time.Second / 30)
	}
}

// TestComplete: on a link without losses, every frame arrives unchanged, spread over 0.4 of its interval.
func TestComplete(t *testing.T) {
	config := estimating(0)
	config.Estimate = false
	l := newLoop(t, "rate=200Mbit,delay=5ms", 5*time.Millisecond, config)
	for range 60 {
		l.frame(100_000)
		l.pass(time.Second / 30)
	}
	l.pass(100 * time.Millisecond)
	if len(l.got) != 60 {
		t.Fatalf("%d of 60 frames arrived", len(l.got))
	}
	for i, f := range l.got {
		if f.Number != uint32(i+1) || !bytes.Equal(f.Data, l.sent[f.Number][payload.PrefixSize:]) {
			t.Errorf("frame %d differs from the sent frame", f.Number)
		}
		d := l.left[f.Number]
		// With timers of 1 ms, packets are sent up to 1 ms late, and packets due within 2 ms are sent together.
		if spread := d.Last.Sub(d.First); i > 10 && (spread < 9*time.Millisecond || spread > 15*time.Millisecond) {
			t.Errorf("frame %d left within %v, expected 0.4 of its interval", f.Number, spread)
		}
	}
	if s := l.receiver.Stats(); s.NACKs.Asked != 0 || s.Malformed != 0 || s.Frames.Frames != 60 {
		t.Errorf("got %+v", s)
	}
}

// TestRepairs: packets lost by the link are retransmitted.
func TestRepairs(t *testing.T) {
	config := estimating(0)
	config.Estimate = false
	l := newLoop(t, "rate=200Mbit,delay=10ms,loss=2%", 10*time.Millisecond, config)
	for range 150 {
		l.frame(60_000)
		l.pass(time.Second / 30)
	}
	l.pass(300 * time.Millisecond)
	if len(l.got) < 148 {
		t.Errorf("%d of 150 frames arrived, although lost packets were requested", len(l.got))
	}
	for _, f := range l.got {
		if !bytes.Equal(f.Data, l.sent[f.Number][payload.PrefixSize:]) {
			t.Errorf("frame %d differs from the sent frame", f.Number)
		}
	}
	if s := l.receiver.Stats(); s.NACKs.Recovered < 100 {
		t.Errorf("%d of some 160 lost packets were recovered", s.NACKs.Recovered)
	}
}

// TestFindsCapacity: with either form of reports, the estimate rises from 2 Mbit/s to about the capacity of the link
// and stays there without a queue. Then the capacity falls.
func TestFindsCapacity(t *testing.T) {
	t.Run("by number", func(t *testing.T) { findsCapacity(t, estimating(2_000_000)) })
	config := estimating(2_000_000)
	config.Wire.ByStream = true
	t.Run("by stream", func(t *testing.T) { findsCapacity(t, config) })
}

func findsCapacity(t *testing.T, config SenderConfig) {
	l := newLoop(t, "rate=20Mbit,delay=10ms", 10*time.Millisecond, config)
	l.adapt(6 * time.Second)
	if e := l.sender.Estimate(); e < 14_000_000 || e > 22_000_000 {
		t.Errorf("after 6 s the estimate is %v, expected about 20 Mbit/s", e)
	}
	l.waits = nil
	l.adapt(3 * time.Second)
	slices.Sort(l.waits)
	if p95 := l.waits[len(l.waits)*95/100]; p95 > 80*time.Millisecond {
		t.Errorf("frames take %v (95 %%), expected no queue", p95)
	}
	worse, err := netem.ParseProfile("rate=6Mbit,delay=10ms")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.link.Reconfigure(worse, l.now); err != nil {
		t.Fatal(err)
	}
	l.adapt(4 * time.Second)
	if e := l.sender.Estimate(); e < 3_000_000 || e > 7_000_000 {
		t.Errorf("4 s after the fall of the capacity the estimate is %v, expected about 6 Mbit/s", e)
	}
	if s := l.sender.Stats(); s.Probes == 0 || s.Overuses == 0 {
		t.Errorf("got %+v", s)
	}
	if len(l.got) < 330 {
		t.Errorf("%d of 390 frames arrived", len(l.got))
	}
}

// TestTooLarge: frames delayed by the limit are dropped completely, and arriving frames are complete.
func TestTooLarge(t *testing.T) {
	config := estimating(2_000_000)
	config.Congestion.Max = 2_000_000
	l := newLoop(t, "rate=50Mbit,delay=10ms", 10*time.Millisecond, config)
	for range 90 {
		l.frame(40_000) // 9.6 Mbit/s
		l.pass(time.Second / 30)
	}
	l.pass(time.Second)
	dropped := 0
	for _, d := range l.left {
		if d.Dropped {
			dropped++
		}
	}
	if dropped < 50 || len(l.got)+dropped > 90 || len(l.got) < 10 {
		t.Errorf("%d frames arrived and %d were dropped, of 90 frames of five times the limit", len(l.got), dropped)
	}
	for _, f := range l.got {
		if !bytes.Equal(f.Data, l.sent[f.Number][payload.PrefixSize:]) {
			t.Errorf("frame %d differs from the sent frame", f.Number)
		}
	}
	if s := l.receiver.Stats(); s.NACKs.Asked != 0 {
		t.Errorf("%d packets were requested, although only complete frames were dropped", s.NACKs.Asked)
	}
}

// TestSteps: the sender has no next step while it has no work.
func TestSteps(t *testing.T) {
	config := estimating(0)
	config.Estimate = false
	l := newLoop(t, "rate=50Mbit,delay=10ms", 10*time.Millisecond, config)
	if next := l.sender.Next(); !next.IsZero() {
		t.Errorf("without frames the next step is due at %v", next)
	}
	l.frame(50_000)
	if next := l.sender.Next(); next.IsZero() || next.After(l.now) {
		t.Errorf("expected the first packet immediately, not at %v", next)
	}
	l.pass(20 * time.Millisecond)
	if next := l.sender.Next(); !next.IsZero() {
		t.Errorf("after all packets the next step is due at %v", next)
	}
	if l.sender.Estimate() != 0 || l.sender.Stats() != (congestion.Stats{}) {
		t.Error("expected no estimate")
	}
}

func TestSettings(t *testing.T) {
	bad := estimating(0)
	bad.Pacing = "slowly"
	if _, err := NewSender(bad, time.Now()); err == nil {
		t.Error("expected an error for the pacing mode")
	}
	bad = estimating(0)
	bad.Congestion.Loss.Bias = -5
	if _, err := NewSender(bad, time.Now()); err == nil {
		t.Error("expected an error for the estimator's settings")
	}
	s, err := NewSender(estimating(0), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Send(Frame{Data: []byte{1}}, time.Now()); err == nil {
		t.Error("expected an error for a frame without prefix")
	}
}

// FuzzSender: for any reports and requests of a receiver, the sender continues.
func FuzzSender(f *testing.F) {
	f.Add([]byte{0x81, 205, 0, 3, 0, 0, 0, 9, 0, 0, 0, 1, 0, 1, 0xff, 0xff})
	f.Add([]byte{0x8f, 205, 0, 5, 0, 0, 0, 9, 0, 0, 0, 1, 0, 1, 0, 2, 0, 0, 0, 0, 0x20, 2, 4, 4})
	f.Add([]byte{0x81, 205, 0xff, 0xff})
	f.Add([]byte{0x8b, 205, 0, 5, 0, 0, 0, 9, 0, 0, 0, 1, 0, 1, 0, 1, 0xe0, 0, 0, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, datagram []byte) {
		now := time.Unix(0, 0)
		config := estimating(0)
		config.Wire.ByStream = len(datagram) > 1 && datagram[0]&0x1f == 11
		s, err := NewSender(config, now)
		if err != nil {
			t.Fatal(err)
		}
		data := payload.Prefix{}.AppendTo(nil)
		data = append(data, make([]byte, 5000)...)
		if err := s.Send(Frame{Number: 1, Capture: now, Data: data}, now); err != nil {
			t.Fatal(err)
		}
		var packets []Packet
		for ms := range 60 {
			at := now.Add(time.Duration(ms) * time.Millisecond)
			if ms == 40 {
				for _, packet := range Compound(datagram) {
					s.RTCP(packet, at, 0)
				}
			}
			packets = s.Step(at, packets)
		}
		if len(packets) < 5 || len(packets) > 1000 {
			t.Fatalf("%d packets of a frame of 5", len(packets))
		}
	})
}

// FuzzReceiver: for any packets, memory is bounded and the receiver continues. Input is cut into packets by their first
// byte.
func FuzzReceiver(f *testing.F) {
	now := time.Unix(0, 0)
	config := estimating(0)
	config.Estimate = false
	s, err := NewSender(config, now)
	if err != nil {
		f.Fatal(err)
	}
	data := payload.Prefix{FourCC: [4]byte{'r', 'a', 'w', '1'}}.AppendTo(nil)
	if err := s.Send(Frame{Number: 1, Capture: now, Data: append(data, 1, 2, 3)}, now); err != nil {
		f.Fatal(err)
	}
	var stream []byte
	for _, p := range s.Step(now, nil) {
		packet := make([]byte, 200)
		n, err := p.Header.MarshalTo(packet)
		if err != nil {
			f.Fatal(err)
		}
		packet = append(packet[:n], p.Payload...)
		stream = append(append(stream, byte(len(packet))), packet...)
	}
	f.Add(stream)
	f.Add([]byte{12, 0x80, 97, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2})
	f.Fuzz(func(t *testing.T, stream []byte) {
		wire := wire
		wire.ByStream = len(stream)%2 == 0
		r := NewReceiver(ReceiverConfig{Wire: wire, Sender: 9, MaxFrameBytes: 1 << 16})
		at := now
		for len(stream) > 0 {
			n := min(int(stream[0]), len(stream)-1)
			packet := append([]byte(nil), stream[1:1+n]...)
			stream = stream[1+n:]
			if frame := r.RTP(packet, ecn.CE, at); frame != nil && len(frame.Data) > 1<<16 {
				t.Fatalf("a frame of %d bytes", len(frame.Data))
			}
			at = at.Add(time.Millisecond)
			r.Step(at, 0, nil)
		}
	})
}

// deafen sends frames of the given size for the given time; no reports arrive.
func (l *loop) deafen(d time.Duration, size int) {
	for end := l.now.Add(d); l.now.Before(end); {
		l.frame(size)
		for range 33 {
			l.pass(time.Millisecond)
			l.back = nil
		}
	}
}

// TestWithoutReports: the sender steps before its first frame, as in Run. The first probe follows the first packets
// nevertheless. After sender.UsualGrace, the estimate does not limit the rate.
func TestWithoutReports(t *testing.T) {
	l := newLoop(t, "rate=200Mbit,delay=5ms", 5*time.Millisecond, estimating(2e6))
	l.pass(300 * time.Millisecond)
	// 60 kB at 30 frames per second are 15 Mbit/s.
	l.deafen(200*time.Millisecond, 60_000)
	if probes := l.sender.Stats().Probes; probes == 0 {
		t.Error("no probe has begun after 200 ms of frames")
	}
	l.deafen(1500*time.Millisecond, 60_000)
	before := l.number
	l.deafen(500*time.Millisecond, 60_000)
	for number := before + 1; number < l.number; number++ {
		if d := l.left[number]; d.Dropped || d.Last.IsZero() || d.Last.Sub(d.First) > 20*time.Millisecond {
			t.Errorf("frame %d left as %+v, expected it within its interval", number, d)
		}
	}
}

// TestReportsStop: the rate falls when a receiver stops reporting.
func TestReportsStop(t *testing.T) {
	l := newLoop(t, "rate=20Mbit,delay=5ms", 5*time.Millisecond, estimating(2e6))
	l.pass(300 * time.Millisecond)
	l.adapt(3 * time.Second)
	before := l.sender.Estimate()
	l.deafen(1500*time.Millisecond, 20_000)
	if after := l.sender.Estimate(); before < 10e6 || after > before/2 {
		t.Errorf("the estimate is %d after 1.5 s without a report, %d before", after, before)
	}
}
