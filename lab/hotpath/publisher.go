package hotpath

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pion/rtp"

	"github.com/volsfu/volsfu/internal/congestion/sender/precise"
	"github.com/volsfu/volsfu/pkg/payload"
)

// outlet accepts the packets of one track.
type outlet interface {
	WriteRTP(packet *rtp.Packet) error
}

// publisher sends the prepared frames of a load on tracks. One goroutine at a time runs it.
type publisher struct {
	load    Load
	tracks  []outlet
	quality []uint8
	flush   func() error
	// phase is the offset of this publisher's frames from the frames of the first publisher, as a share of the frame
	// interval.
	phase float64

	number    uint32
	sequence  []uint16
	epoch     time.Time
	timestamp uint32 // of the current frame: the time since epoch
	filling   []byte
	packet    rtp.Packet

	timer *precise.Timer

	// frames counts the sent frames of each track.
	frames atomic.Uint64
	mu     sync.Mutex
	err    error
}

// newPublisher creates a publisher for tracks, each with its quality.
func newPublisher(load Load, tracks []outlet, quality []uint8, flush func() error, phase float64) *publisher {
	p := &publisher{
		load: load, tracks: tracks, quality: quality, flush: flush, phase: phase,
		sequence: make([]uint16, len(tracks)), epoch: time.Now(),
		filling: make([]byte, payload.DescriptorSize+load.frameBytes()+payload.FragmentSize),
	}
	for i := range p.filling {
		p.filling[i] = byte(rand.Uint32())
	}
	return p
}

const (
	// Packets that become due while a frame is being sent are collected for between minTurn and maxTurn, limited to
	// turnPackets, as in the client library (pkg/client, pacer.turn, without knowledge of the path).
	minTurn, maxTurn = 250 * time.Microsecond, 4 * time.Millisecond
	turnPackets      = 16
)

// run sends complete frames until the context ends.
func (p *publisher) run(ctx context.Context) {
	interval := time.Duration(float64(time.Second) / p.load.FrameRate)
	next := time.Now().Add(time.Duration(p.phase * float64(interval)))
	p.timer = precise.NewTimer(0)
	defer p.timer.Stop()
	for ; ; next = next.Add(interval) {
		// Frames that a stalled machine could not send in time are skipped, as by a camera, so no burst follows.
		if late := time.Since(next); late > interval {
			next = next.Add(late.Truncate(interval))
		}
		p.timer.Reset(time.Until(next))
		select {
		case <-p.timer.C:
		case <-ctx.Done():
			return
		}
		if err := p.frame(next, time.Duration(p.load.Spread*float64(interval))); err != nil {
			p.mu.Lock()
			p.err = err
			p.mu.Unlock()
			return
		}
	}
}

// frame sends one frame with the given capture time on every track, spread over a time.
func (p *publisher) frame(capture time.Time, spread time.Duration) error {
	count := p.load.packetsPerFrame()
	begun := time.Now()
	// Skipped frames advance the timestamp as well; otherwise later packets would count as late.
	p.timestamp = uint32(capture.Sub(p.epoch) * 90 / time.Millisecond)
	for sent, next := 0, begun; ; {
		now := time.Now()
		due := p.load.due(now.Sub(begun), spread)
		// The last packets of all tracks, which are shorter, end one run in this order.
		for index := sent; index < due; index++ {
			for track := range p.tracks {
				if err := p.send(track, index, now, begun); err != nil {
					return err
				}
			}
		}
		if err := p.flush(); err != nil {
			return err
		}
		if sent = due; sent == count {
			break
		}
		if next = next.Add(p.turn(next.Sub(begun), spread, sent)); next.Before(now) {
			next = now
		}
		p.timer.Reset(next.Sub(now))
		<-p.timer.C
	}
	p.number++
	p.frames.Add(1)
	return nil
}

// turn returns how long packets of a frame that become due after elapsed are collected, if sent packets of each track
// have been sent.
func (p *publisher) turn(elapsed, spread time.Duration, sent int) time.Duration {
	turn := min(maxTurn, max(minTurn, spread-elapsed))
	if packets := (p.load.due(elapsed+turn, spread) - sent) * len(p.tracks); packets > turnPackets {
		turn = max(minTurn, turn*turnPackets/time.Duration(packets))
	}
	return turn
}

// due returns the number of packets of a track's frame that are due after elapsed.
func (l Load) due(elapsed, spread time.Duration) int {
	count := l.packetsPerFrame()
	if elapsed >= spread {
		return count
	}
	return min(count, 1+int(float64(count)*float64(elapsed)/float64(spread)))
}

// send writes one fragment of the current frame.
func (p *publisher) send(track, index int, now, begun time.Time) error {
	length, count := p.load.frameBytes(), p.load.packetsPerFrame()
	descriptor := payload.Descriptor{
		Quality: p.quality[track], Index: uint16(index), Source: uint16(count), Frame: p.number, Length: uint32(length),
	}
	packet := p.filling[:payload.DescriptorSize+descriptor.DataSize()]
	if _, err := descriptor.MarshalTo(packet); err != nil {
		return err
	}
	writeStamp(packet, now, begun)
	p.packet.Version = 2
	p.packet.Marker = index == count-1
	p.packet.SequenceNumber = p.sequence[track]
	p.packet.Timestamp = p.timestamp
	p.packet.Payload = packet
	p.sequence[track]++
	return p.tracks[track].WriteRTP(&p.packet)
}

// failure returns the error that ended sending, or nil.
func (p *publisher) failure() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}
