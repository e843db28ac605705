// Package frametrace gathers the times of frames that a client sends and receives, exchanges them with the server, and
// delivers one record per frame to the program.
//
// A Collector is safe for concurrent use: the receiving goroutine adds complete frames, the sending goroutine adds
// frames that have left, and the session's goroutine steps the Collector. A Sent belongs to the sending goroutine until
// Left. A KernelStamps belongs to the owner of its stream.
package frametrace

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/volsfu/volsfu/pkg/frametimes"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

const (
	// patience is the time for which the times of a frame are gathered. Reports of sender and server arrive after up to
	// half a second and the transit time, and decoding and playout need as long.
	patience = 2 * time.Second
	// keptFrames bounds the frames whose times are gathered: those of two seconds at 4,096 tile frames per second, in 5
	// MB.
	keptFrames = 8192
	// backlog is the number of records that may wait for the program. A program that does not read loses new records.
	backlog = 4096
	// keptStamps bounds the kernel's stamps of sent packets that wait for their frames.
	keptStamps = 512
)

// Collector gathers the times of frames. Its mutex is taken for frames, not for packets.
type Collector struct {
	records chan frametimes.Record

	// receiving is set while the times of received frames are gathered, reporting while the server wants the times of
	// sent frames, and keeping while the program does.
	receiving, reporting, keeping atomic.Bool

	mu       sync.Mutex
	identity string
	joiner   *frametimes.Joiner
	sent     []*Sent
	stamps   []packetStamp
	// dropped is the number of sent frames that the next message to the server leaves out.
	dropped int
}

// packetStamp is the stamp of a packet that was sent.
type packetStamp struct {
	ssrc     uint32
	sequence uint16
	KernelStamp
}

// New returns a collector that gathers the times of received frames, and of sent frames for the program.
func New(receiving, sent bool) *Collector {
	c := &Collector{
		records: make(chan frametimes.Record, backlog),
		joiner:  frametimes.NewJoiner(patience, keptFrames),
	}
	c.SetWanted(receiving, sent)
	return c
}

// SetWanted sets whether the program wants the times of received and of sent frames.
func (c *Collector) SetWanted(receiving, sent bool) {
	c.receiving.Store(receiving)
	c.keeping.Store(sent)
}

// SetReporting sets whether the server wants the times of sent frames.
func (c *Collector) SetReporting(wanted bool) { c.reporting.Store(wanted) }

// SetIdentity sets the identity of this participant in records.
func (c *Collector) SetIdentity(identity string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.identity = identity
}

// Records returns the channel of finished records. End closes it.
func (c *Collector) Records() <-chan frametimes.Record { return c.records }

// TracesReceived reports whether the times of received frames are gathered.
func (c *Collector) TracesReceived() bool { return c.receiving.Load() }

// TracesSent reports whether the times of sent frames are gathered.
func (c *Collector) TracesSent() bool { return c.reporting.Load() || c.keeping.Load() }

// Note adds stamps of a received frame, if received frames are traced.
func (c *Collector) Note(track volumetric.TrackRef, number int64, add func(*frametimes.Record)) {
	if !c.receiving.Load() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.joiner.Note(frametimes.Key{Track: track, Frame: uint32(number)}, add)
}

// Left adds a frame of which all packets have left.
func (c *Collector) Left(sent *Sent) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.sent) == keptFrames {
		c.dropped++
		return
	}
	c.sent = append(c.sent, sent)
}

// Stamped adds the kernel's stamp of a packet that was sent.
func (c *Collector) Stamped(ssrc uint32, sequence uint16, stamp KernelStamp) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.stamps {
		if known := &c.stamps[i]; known.ssrc == ssrc && known.sequence == sequence {
			// The timestamps of the kernel and of the network card arrive separately.
			if known.Kernel.IsZero() {
				known.Kernel = stamp.Kernel
			}
			if known.Hardware.IsZero() {
				known.Hardware = stamp.Hardware
			}
			return
		}
	}
	if len(c.stamps) == keptStamps {
		c.stamps = slices.Delete(c.stamps, 0, keptStamps/2)
	}
	c.stamps = append(c.stamps, packetStamp{ssrc, sequence, stamp})
}

// Received adds the receiver's times of a frame that is complete. The record names the track, the frame and its size.
func (c *Collector) Received(part *frametimes.Record, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.joiner.Claim(frametimes.Key{Track: part.Track, Frame: uint32(part.Frame)}, part, now)
}

// Complete adds the arrival times of a frame that is complete at now, if received frames are traced and the clock is
// known. shift is added to times of the system's clock.
func (c *Collector) Complete(
	track volumetric.TrackRef, number int64, bytes int, arrived Arrived,
	clock frametimes.Clock, shift time.Duration, now time.Time,
) {
	if clock.Source == "" {
		return
	}
	part := frametimes.Record{Track: track, Frame: number, Bytes: bytes}
	part.Clocks[frametimes.Receiver] = clock
	for _, s := range [...]struct {
		stamp frametimes.Stamp
		at    time.Time
	}{
		{frametimes.FirstReceivedHardware, arrived.Stamp.Hardware},
		{frametimes.FirstReceivedKernel, arrived.Stamp.Kernel},
		{frametimes.FirstReceived, arrived.First},
		{frametimes.FirstSegmentReceived, arrived.Segment},
		{frametimes.LastReceived, arrived.Last},
		{frametimes.Reassembled, now},
	} {
		if !s.at.IsZero() {
			part.SetLocal(s.stamp, s.at.Add(shift))
		}
	}
	c.Received(&part, now)
}

// Step hands the program the records that are finished, and returns the message with the times of sent frames for the
// server, nil for none.
func (c *Collector) Step(clock frametimes.Clock, shift time.Duration, now time.Time) *signal.FrameTimes {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.joiner.Take(now, nil) {
		r.Receiver = c.identity
		c.hand(r)
	}
	if clock.Source == "" {
		// The sent frames wait until the relation of the clocks is known.
		return nil
	}
	sent := c.sent
	c.sent = nil
	var message *signal.FrameTimes
	if c.reporting.Load() && len(sent) > 0 {
		message = &signal.FrameTimes{Host: signal.FrameHostSender, Clock: clockToSignal(clock)}
	}
	rows := newRows(message, len(sent))
	for i, s := range sent {
		r := s.record(c.identity, clock, shift)
		c.stamp(s, &r, shift)
		if message != nil {
			if i < signal.MaxFrameTimes {
				rows.add(&r, s.Number)
			} else {
				c.dropped++
			}
		}
		if c.keeping.Load() {
			c.hand(r)
		}
	}
	if message != nil {
		message.Dropped, c.dropped = c.dropped, 0
	}
	return message
}

// hand delivers a record to the program. The caller holds the mutex.
func (c *Collector) hand(r frametimes.Record) {
	select {
	case c.records <- r:
	default:
	}
}

// stamp adds the kernel's stamp of a frame's first packet. The caller holds the mutex.
func (c *Collector) stamp(sent *Sent, r *frametimes.Record, shift time.Duration) {
	for i, s := range c.stamps {
		if s.ssrc != sent.ssrc || s.sequence != sent.sequence {
			continue
		}
		c.stamps = slices.Delete(c.stamps, i, i+1)
		if !s.Kernel.IsZero() {
			r.SetLocal(frametimes.FirstSentKernel, s.Kernel.Add(shift))
		}
		if !s.Hardware.IsZero() {
			r.SetLocal(frametimes.FirstSentHardware, s.Hardware.Add(shift))
		}
		return
	}
}

// End delivers the unfinished records, and closes the channel of records.
func (c *Collector) End() {
	c.receiving.Store(false)
	c.reporting.Store(false)
	c.keeping.Store(false)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.joiner.Drain(nil) {
		r.Receiver = c.identity
		c.hand(r)
	}
	close(c.records)
}
