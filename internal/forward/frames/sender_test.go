package frames

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/pion/rtp"

	"github.com/volsfu/volsfu/internal/congestion/pacing"
	"github.com/volsfu/volsfu/internal/ecn"
	"github.com/volsfu/volsfu/internal/feedback"
	"github.com/volsfu/volsfu/internal/forward/egress"
	"github.com/volsfu/volsfu/pkg/payload"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// playedChannel is a data channel whose remote peer the test plays.
type playedChannel struct {
	sent   [][]byte
	unread int
	closed bool
}

// Send implements Channel.
func (c *playedChannel) Send(message []byte) error {
	if c.closed {
		return errors.New("closed")
	}
	c.sent = append(c.sent, bytes.Clone(message))
	c.unread += len(message)
	return nil
}

// Unacknowledged implements Channel.
func (c *playedChannel) Unacknowledged() int { return c.unread }

// frames reassembles the frames sent since the last call.
func (c *playedChannel) frames(t *testing.T) (frames []payload.Chunk) {
	t.Helper()
	assembler := payload.NewChunkAssembler(1 << 24)
	for _, message := range c.sent {
		var chunk payload.Chunk
		if err := chunk.Unmarshal(message); err != nil {
			t.Fatal(err)
		}
		frame, whole, err := assembler.Take(&chunk)
		if err != nil {
			t.Fatal(err)
		}
		if whole {
			frame.Data = bytes.Clone(frame.Data)
			frames = append(frames, frame)
		}
	}
	c.sent = nil
	return frames
}

// chunked is a receiver of chunked frames, with slots on channels.
type chunked struct {
	*rig
	receiver *limited
	sender   *Sender
	padding  *playedChannel
}

func newChunked(t *testing.T) *chunked {
	return newChunkedWithin(t, 1<<30)
}

// newChunkedWithin is newChunked with caches of that many bytes.
func newChunkedWithin(t *testing.T, cacheBytes int64) *chunked {
	r := newRig(t, pacing.Off, cacheBytes)
	// The estimator sets the backlog after packets have passed through the writer.
	receiver := &limited{r.writers.NewReceiver(fakePeer{}, 0), 128 << 10}
	c := &chunked{rig: r, receiver: receiver, padding: &playedChannel{}}
	c.sender = NewSender(receiver, 1<<20, c.padding)
	return c
}

// line adds a slot on a channel.
func (c *chunked) line() (*egress.Slot, *Outlet, *playedChannel) {
	channel := &playedChannel{}
	o := c.sender.NewOutlet(channel)
	return c.receiver.AddSlot(o, volumetric.KindVideo), o, channel
}

// TestChunks sends frames of all sizes over a channel, byte for byte. The track is never wrapped as VP8.
func TestChunks(t *testing.T) {
	c := newChunked(t)
	p := c.publish(c.ingress(), 10, volumetric.MIMEVolumetric)
	p.Parity = 2
	slot, _, channel := c.line()
	slot.Select(p.track, 7, c.now)
	c.run()
	p.Next()
	p.Send(c.now, p.Packets(1)...)
	c.run()
	channel.frames(t)
	var last uint32
	for i, size := range []int{0, 1, payload.FragmentSize, payload.ChunkSize - 1, payload.ChunkSize,
		payload.ChunkSize + 1, 150_000} {
		p.Next()
		packets := p.Packets(size)
		var want []byte
		for _, raw := range packets {
			var packet rtp.Packet
			var d payload.Descriptor
			if err := packet.Unmarshal(raw); err != nil {
				t.Fatal(err)
			}
			data, err := d.Unmarshal(packet.Payload)
			if err != nil {
				t.Fatal(err)
			}
			if d.Index < d.Source {
				want = append(want, data...)
			}
		}
		if len(packets) > 1 {
			packets[0], packets[1] = packets[1], packets[0]
		}
		p.Send(c.now, packets...)
		c.run()
		channel.unread = 0
		c.sender.Acknowledged(c.now)
		frames := channel.frames(t)
		if len(frames) != 1 || !bytes.Equal(frames[0].Data, want) {
			t.Fatalf("of a frame of %d bytes came %d frames, expected one as it was sent", size, len(frames))
		}
		if i > 0 && int32(frames[0].Timestamp-last) <= 0 {
			t.Errorf("timestamp %d after %d", frames[0].Timestamp, last)
		}
		last = frames[0].Timestamp
	}
}

// TestOnlyCompleteFramesAreSentAsChunks loses a packet of a frame between publisher and server.
func TestOnlyCompleteFramesAreSentAsChunks(t *testing.T) {
	c := newChunked(t)
	p := c.publish(c.ingress(), 10, volumetric.MIMEVolumetric)
	slot, _, channel := c.line()
	slot.Select(p.track, 7, c.now)
	c.run()
	for n := range 4 {
		p.Next()
		packets := p.Packets(5 * payload.FragmentSize)
		if n == 2 {
			packets = append(packets[:1], packets[2:]...)
		}
		p.Send(c.now, packets...)
		c.run()
		c.now = c.now.Add(40 * time.Millisecond)
		c.run()
	}
	if frames := channel.frames(t); len(frames) != 3 {
		t.Errorf("%d frames were sent, expected three of four", len(frames))
	}
}

// fragment queues a packet of a frame of that length, as a switcher forwards it.
func fragment(o *Outlet, t *testing.T, frame uint32, timestamp uint32, length, index int) {
	t.Helper()
	d := payload.Descriptor{Source: uint16(payload.SourceFragments(length)), Index: uint16(index), Frame: frame,
		Length: uint32(length)}
	body := make([]byte, payload.DescriptorSize+d.DataSize())
	if _, err := d.MarshalTo(body); err != nil {
		t.Fatal(err)
	}
	h := &rtp.Header{SSRC: o.SSRC(), SequenceNumber: uint16(100*frame) + uint16(index), Timestamp: timestamp}
	if err := o.Queue(h, body); err != nil {
		t.Fatal(err)
	}
}

func whole(o *Outlet, t *testing.T, frame uint32, length int) {
	t.Helper()
	for i := range payload.SourceFragments(length) {
		fragment(o, t, frame, 3000*frame, length, i)
	}
}

// TestTheNewestFrameIsServed uses a receiver that acknowledges nothing. Frames are dropped as a whole, and the receiver
// gets the newest frame of each slot when it resumes.
func TestTheNewestFrameIsServed(t *testing.T) {
	c := newChunked(t)
	slot, first, channel := c.line()
	_, second, other := c.line()
	const length = 60_000
	var numbers []uint32
	for frame := uint32(1); frame <= 20; frame++ {
		whole(first, t, frame, length)
		whole(second, t, frame, length)
	}
	for _, f := range channel.frames(t) {
		numbers = append(numbers, f.Frame)
	}
	if len(numbers) == 0 || len(numbers) > 3 {
		t.Fatalf("frames %v were sent to a receiver that acknowledges nothing, expected the first ones", numbers)
	}
	dropped := 0
	for _, e := range c.receiver.TakeEvents(nil) {
		if e.Slot == slot && e.Dropped == egress.DroppedBudget {
			dropped += e.DroppedFrames
		}
	}
	if want := 20 - len(numbers) - 1; dropped != want {
		t.Errorf("%d frames of the first slot were dropped, expected %d: one waits", dropped, want)
	}
	channel.unread, other.unread = 0, 0
	other.frames(t)
	c.sender.Acknowledged(c.now)
	for i, ch := range []*playedChannel{channel, other} {
		if frames := ch.frames(t); len(frames) != 1 || frames[0].Frame != 20 {
			t.Errorf("channel %d: %d frames were sent once it went on, expected the newest alone", i, len(frames))
		}
	}
	// A late packet of an older frame is ignored.
	fragment(first, t, 19, 3000*19, length, 0)
	if len(channel.frames(t)) != 0 {
		t.Error("an older frame follows a newer one")
	}
}

// TestAcknowledgementsAreReports checks that acknowledged packets are reported as arrived, in order of sending, and
// dropped packets as lost.
func TestAcknowledgementsAreReports(t *testing.T) {
	c := newChunked(t)
	_, o, channel := c.line()
	history := feedback.NewCongestionHistory()
	const length = 10 * payload.FragmentSize
	now := c.now
	sent := make(map[int64]uint32)
	for frame := uint32(1); frame <= 3; frame++ {
		for i := range 10 {
			sequence := uint16(100*frame) + uint16(i)
			sent[history.Sent(o.SSRC(), sequence, 1200, feedback.Media, ecn.NotECT, now)] = frame
		}
		whole(o, t, frame, length)
		now = now.Add(33 * time.Millisecond)
	}
	message := payload.ChunkHeaderSize + length
	got := make(map[uint32]int)
	take := func() {
		for _, report := range c.sender.Acknowledged(now) {
			for _, r := range history.Feedback(report, now, nil) {
				if r.Received {
					got[sent[r.Sequence]]++
				}
			}
		}
		now = now.Add(acknowledgementInterval)
	}
	take()
	if len(got) != 0 {
		t.Fatalf("%v are reported before anything was acknowledged", got)
	}
	// The first frame, and of the second the header and three and a half fragments.
	channel.unread = 2*message - payload.ChunkHeaderSize - 3*payload.FragmentSize - payload.FragmentSize/2
	take()
	if got[1] != 10 || got[2] != 3 || got[3] != 0 {
		t.Errorf("of the frames are reported %v, expected ten packets and three", got)
	}
	channel.unread = 0
	take()
	if got[1] != 10 || got[2] != 10 || got[3] != 10 {
		t.Errorf("of the frames are reported %v, expected all", got)
	}
}

// TestProbesArePadded checks that repeated packets of a probe are sent on a channel of their own, and are reported like
// all others.
func TestProbesArePadded(t *testing.T) {
	c := newChunked(t)
	_, o, channel := c.line()
	h := &rtp.Header{SSRC: o.RetransmissionSSRC(), SequenceNumber: 7}
	if err := o.Queue(h, make([]byte, 900)); err != nil {
		t.Fatal(err)
	}
	if len(c.padding.sent) != 1 || len(channel.sent) != 0 {
		t.Fatalf("%d messages of padding and %d of media", len(c.padding.sent), len(channel.sent))
	}
	c.padding.unread = 0
	var report feedback.CongestionReport
	reports := c.sender.Acknowledged(c.now)
	if len(reports) != 1 || report.Unmarshal(reports[0]) != nil || len(report.Streams) != 1 ||
		report.Streams[0].SSRC != h.SSRC {
		t.Errorf("%d reports, %+v", len(reports), report)
	}
}

// TestNonsenseInChunks queues packets other than payload v1, and frames beyond the limit.
func TestNonsenseInChunks(t *testing.T) {
	c := newChunked(t)
	_, o, channel := c.line()
	long := payload.Descriptor{Source: uint16(payload.SourceFragments(2 << 20)), Frame: 1, Length: 2 << 20}
	body := make([]byte, payload.DescriptorSize+long.DataSize())
	if _, err := long.MarshalTo(body); err != nil {
		t.Fatal(err)
	}
	for _, body := range [][]byte{nil, {1, 2, 3}, body} {
		if err := o.Queue(&rtp.Header{SSRC: o.SSRC()}, body); !errors.Is(err, ErrNotChunked) {
			t.Errorf("%d bytes: %v", len(body), err)
		}
	}
	if _, _, ok := o.PayloadType(volumetric.MIMEH264); ok {
		t.Error("takes H264, for which there is no decoder behind a data channel")
	}
	channel.closed = true
	whole(o, t, 5, 100)
	channel.closed = false
	whole(o, t, 6, 100)
	if frames := channel.frames(t); len(frames) != 1 || frames[0].Frame != 6 {
		t.Errorf("%d frames after the channel has opened, expected one", len(frames))
	}
}

// TestBytesInFlightAreBounded checks the receiver's backlog: frames and padding beyond the backlog are dropped, and
// waiting frames continue when there is room.
func TestBytesInFlightAreBounded(t *testing.T) {
	c := newChunked(t)
	_, o, channel := c.line()
	const length, backlog = 50_000, 100_000
	c.receiver.backlog = backlog
	frame := uint32(0)
	fill := func() (frames int) {
		channel.sent = nil
		for range 20 {
			frame++
			whole(o, t, frame, length)
		}
		return len(channel.sent)
	}
	if n := fill(); n != 2 {
		t.Errorf("%d frames of %d bytes were sent at once, expected two: with them more than %d are under way", n,
			length, backlog)
	}
	pad := func() int {
		c.padding.sent = nil
		if err := o.Queue(&rtp.Header{SSRC: o.RetransmissionSSRC(), SequenceNumber: uint16(frame)},
			make([]byte, 900)); err != nil {
			t.Fatal(err)
		}
		return len(c.padding.sent)
	}
	if pad() != 0 {
		t.Error("padding was sent on top")
	}
	channel.unread = 0
	channel.sent = nil
	c.sender.Acknowledged(c.now)
	if frames := channel.frames(t); len(frames) != 1 || frames[0].Frame != frame {
		t.Errorf("%d frames were sent once all was acknowledged, expected the one that waited", len(frames))
	}
	if pad() != 1 {
		t.Error("padding was not sent although there is room")
	}
	c.padding.unread, channel.unread = 0, 0
	c.sender.Acknowledged(c.now)
	c.receiver.backlog = 0
	if n := fill(); n != 1 {
		t.Errorf("%d frames were sent without a backlog, expected one: something is always under way", n)
	}
}

// TestWaitingIsNoQueueDelay checks that the wait of a packet for the rest of its frame, and for room, does not count as
// delay of the path.
func TestWaitingIsNoQueueDelay(t *testing.T) {
	c := newChunked(t)
	_, o, channel := c.line()
	history := feedback.NewCongestionHistory()
	const length, trip = 10 * payload.FragmentSize, 30 * time.Millisecond
	send := func(frame uint32, apart time.Duration) {
		for i := range 10 {
			history.Sent(o.SSRC(), uint16(100*frame)+uint16(i), 1200, feedback.Media, ecn.NotECT, c.now)
			fragment(o, t, frame, 3000*frame, length, i)
			if i < 9 {
				c.now = c.now.Add(apart)
			}
		}
	}
	var delays []time.Duration
	acknowledge := func() {
		c.now = c.now.Add(trip)
		channel.unread = 0
		for _, report := range c.sender.Acknowledged(c.now) {
			for _, r := range history.Feedback(report, c.now, nil) {
				delays = append(delays, r.Arrived-time.Duration(r.Sent.UnixNano()))
			}
		}
	}
	send(1, 0)
	acknowledge()
	send(2, 2*time.Millisecond)
	acknowledge()
	// The third frame delays the fourth by 50 ms.
	c.receiver.backlog = 0
	send(3, 0)
	send(4, 0)
	c.now = c.now.Add(50 * time.Millisecond)
	acknowledge()
	before := len(delays)
	acknowledge()
	if before != 30 || len(delays) != 40 {
		t.Fatalf("%d and %d packets are reported, expected 30 and 40", before, len(delays))
	}
	for i, d := range delays {
		want := delays[0]
		if i >= 20 && i < 30 {
			want += 50 * time.Millisecond
		}
		if off := d - want; off > 2*time.Millisecond || off < -2*time.Millisecond {
			t.Errorf("packet %d took %v more than the first", i, d-delays[0])
		}
	}
}
