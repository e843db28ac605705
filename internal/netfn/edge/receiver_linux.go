package edge

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"time"

	"github.com/cilium/ebpf/ringbuf"

	"github.com/volsfu/volsfu/internal/netfn/edge/bpf"
	"github.com/volsfu/volsfu/internal/netfn/paths"
	"github.com/volsfu/volsfu/internal/netfn/wire"
)

const (
	// maxSamples is the greatest number of samples per second. A sample costs about 0.5 µs in the kernel and 1 µs here.
	maxSamples = 4000
	// maxDivisor is the largest sampling divisor: the smallest divisor of probes, so that every probe is sampled.
	maxDivisor = 128
	// sampleInterval is the time between readings of the samples while packets arrive: at 4,000 samples/s of up to 8
	// copies each, 160 samples wait, 8 kB of the ring buffer's 256 kB.
	sampleInterval = 5 * time.Millisecond
	// lostInterval is the time between two looks for lost samples, which look like an outage until they are known.
	lostInterval = 100 * time.Millisecond
)

// receiver is the receiving side of an edge. The mutex of the edge guards it.
type receiver struct {
	config  *Config
	objects *bpf.ReceiverObjects
	written bpf.ReceiverConfig
	// observers are those of the rules that the other edge has announced.
	observers []*paths.Observer
	// learned has the remote address of each path from which valid hellos arrive, if a translator of addresses changed
	// it.
	learned [wire.MaxPaths]netip.Addr
	// hardware has the hardware address of each path's interface. filled reports whether the map of sources has been
	// written.
	hardware [wire.MaxPaths][6]uint8
	filled   bool
	// samples is the number of samples since counted, and lost what the map has of lost samples.
	samples int
	counted time.Duration
	lost    uint64
	// nextLook is when the map is read for lost samples.
	nextLook time.Duration
}

// newReceiver loads the receiver and fills its maps. With adopted maps, the epoch and the windows remain.
func newReceiver(c *Config, p pins) (*receiver, error) {
	objects, err := loadReceiver(p)
	if err != nil {
		return nil, err
	}
	r := &receiver{config: c, objects: objects}
	if err := r.fill(); err != nil {
		return nil, errors.Join(err, objects.Close())
	}
	return r, nil
}

func (r *receiver) fill() error {
	if err := r.objects.ReceiveConfig.Lookup(uint32(0), &r.written); err != nil {
		return fmt.Errorf("read the map %s: %w", r.objects.ReceiveConfig, err)
	}
	r.written.Port, r.written.Divisor = r.config.Port, max(r.written.Divisor, 1)
	if err := putAt(r.objects.ReceiveConfig, 0, &r.written); err != nil {
		return err
	}
	inner := map[bpf.ReceiverPrefix]uint32{}
	for _, prefix := range r.config.Receive.Inner {
		inner[bpf.AcceptedPrefix(prefix)] = 1
	}
	return syncMap(r.objects.Inner, inner)
}

// fillSources writes the outer addresses from which data is accepted, with the hardware address to which it must be
// sent.
func (r *receiver) fillSources() error {
	sources := map[bpf.ReceiverSource][6]uint8{}
	for i := range r.config.Paths {
		p := &r.config.Paths[i]
		sources[bpf.ReceiverSource{Remote: p.Remote.As16(), Local: p.Local.As16()}] = r.hardware[i]
		if r.learned[i].IsValid() {
			sources[bpf.ReceiverSource{Remote: r.learned[i].As16(), Local: p.Local.As16()}] = r.hardware[i]
		}
	}
	return syncMap(r.objects.Sources, sources)
}

// setPath takes the hardware address of a path's interface, which is 0 without Ethernet: a copy for another address
// must not count as the first one, since the network stack drops it.
func (r *receiver) setPath(index int, h hostPath) error {
	hardware := h.source
	if h.state == PathDown || h.state == PathNoAddress || h.state == PathNoInterface {
		// The interface may return with another address before this process has read it. No copy is sent to this one.
		hardware = [6]uint8{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
	}
	if r.filled && r.hardware[index] == hardware {
		return nil
	}
	r.hardware[index], r.filled = hardware, true
	return r.fillSources()
}

// learn accepts data from the address of a valid hello, which a translator of addresses may have changed.
func (r *receiver) learn(path int, from netip.Addr) error {
	if from == r.config.Paths[path].Remote {
		from = netip.Addr{}
	}
	if r.learned[path] == from {
		return nil
	}
	r.learned[path] = from
	return r.fillSources()
}

// hello takes a hello that arrived on a path.
func (r *receiver) hello(path int, body []byte, now time.Duration) error {
	var h wire.Hello
	if err := h.UnmarshalBinary(body); err != nil {
		return err
	}
	if h.Epoch != r.written.Epoch {
		// The windows restart by themselves: their entries carry the epoch.
		r.observers = nil
		r.written.Epoch = h.Epoch
		if err := putAt(r.objects.ReceiveConfig, 0, &r.written); err != nil {
			return err
		}
	}
	for i, deadline := range h.Deadlines {
		if deadline <= 0 {
			return fmt.Errorf("%w: the deadline of rule %d is 0", wire.ErrHello, i)
		}
		if i == len(r.observers) {
			observer := paths.NewObserver(uint8(i), deadline)
			observer.SetDivisor(r.written.Divisor)
			r.observers = append(r.observers, observer)
		}
		r.observers[i].SetDeadline(deadline)
		r.observers[i].Beat(uint8(path), h.Sent, now)
	}
	return nil
}

// sample takes a sample of the ring buffer.
func (r *receiver) sample(record []byte) error {
	var s bpf.ReceiverSample
	if n, err := binary.Decode(record, binary.NativeEndian, &s); err != nil {
		return fmt.Errorf("a sample has %d bytes, expected %d: %w", len(record), n, err)
	}
	r.samples++
	rule := int(s.Flow) / bpf.FlowsPerRule
	if r.config.Receive.Format != FormatEncapsulated {
		// Only encapsulated copies carry the rule.
		rule = 0
	}
	if rule < len(r.observers) && s.Path < wire.MaxPaths {
		r.observers[rule].Add(paths.Sample{Flow: s.Flow, Epoch: s.Epoch, Number: s.Number, Path: s.Path,
			Set: paths.Set(s.Set), Sent: s.SentUs, Arrived: time.Duration(s.ArrivedNs)})
	}
	return nil
}

// step looks for lost samples, and adapts the sampling once per second.
func (r *receiver) step(now time.Duration) error {
	if now < r.nextLook {
		return nil
	}
	r.nextLook = now + lostInterval
	ignored, err := r.ignored()
	if err != nil {
		return err
	}
	if ignored.LostSamples != r.lost {
		r.lost = ignored.LostSamples
		for _, observer := range r.observers {
			observer.Lost()
		}
	}
	elapsed := now - r.counted
	if elapsed < time.Second {
		return nil
	}
	rate := float64(r.samples) / elapsed.Seconds()
	r.samples, r.counted = 0, now
	return r.setDivisor(nextDivisor(r.written.Divisor, rate))
}

// nextDivisor returns the sampling divisor after a second with a rate of samples.
func nextDivisor(divisor uint32, rate float64) uint32 {
	switch {
	case rate > maxSamples && divisor < maxDivisor:
		return divisor * 2
	case rate < maxSamples/4 && divisor > 1:
		// Half the divisor doubles the samples, which leaves a factor of 2 to the limit.
		return divisor / 2
	}
	return divisor
}

func (r *receiver) setDivisor(divisor uint32) error {
	if divisor == r.written.Divisor {
		return nil
	}
	r.written.Divisor = divisor
	for _, observer := range r.observers {
		observer.SetDivisor(divisor)
	}
	return putAt(r.objects.ReceiveConfig, 0, &r.written)
}

// ignored returns the counts of packets that were no data, over all processors.
func (r *receiver) ignored() (total bpf.ReceiverIgnored, err error) {
	var each []bpf.ReceiverIgnored
	if err := r.objects.Ignored.Lookup(uint32(0), &each); err != nil {
		return total, fmt.Errorf("read the map %s: %w", r.objects.Ignored, err)
	}
	for _, one := range each {
		total.Foreign += one.Foreign
		total.Control += one.Control
		total.LostSamples += one.LostSamples
	}
	return total, nil
}

// received returns the counts of a path, over all processors.
func (r *receiver) received(path int) (total PathReceived, err error) {
	var each []bpf.ReceiverReceived
	if err := r.objects.Received.Lookup(uint32(path), &each); err != nil {
		return total, fmt.Errorf("read the map %s: %w", r.objects.Received, err)
	}
	for _, one := range each {
		total.Packets += one.Packets
		total.Bytes += one.Bytes
		total.First += one.First
		total.Repeated += one.Repeated
		total.Outside += one.Outside
		total.Malformed += one.Malformed
		total.Refused += one.Refused
		total.Congested += one.Congested
	}
	return total, nil
}

// allReceived returns the packets received on all paths.
func (r *receiver) allReceived() (packets uint64, err error) {
	for i := range r.config.Paths {
		counts, err := r.received(i)
		if err != nil {
			return 0, err
		}
		packets += counts.Packets
	}
	return packets, nil
}

// reports returns the bodies of the reports that are due.
func (r *receiver) reports(now time.Duration) ([][]byte, error) {
	var bodies [][]byte
	for _, observer := range r.observers {
		if !observer.Due(now) {
			continue
		}
		report := observer.Report(now)
		body, err := report.AppendBinary(nil)
		if err != nil {
			return nil, fmt.Errorf("encode a report: %w", err)
		}
		bodies = append(bodies, body)
	}
	return bodies, nil
}

// readSamples hands batches of samples to take until the reader is closed.
func readSamples(reader *ringbuf.Reader, take func(records []ringbuf.Record) error) error {
	const batch = 256
	records := make([]ringbuf.Record, batch)
	for {
		n := 0
		for n == 0 || n < batch && records[n-1].Remaining > 0 {
			if err := reader.ReadInto(&records[n]); errors.Is(err, os.ErrClosed) {
				return nil
			} else if err != nil {
				return fmt.Errorf("read the samples: %w", err)
			}
			n++
		}
		if err := take(records[:n]); err != nil {
			return err
		}
		if n < batch {
			time.Sleep(sampleInterval)
		}
	}
}

// close closes the programs and maps, which live on as long as they are pinned.
func (r *receiver) close() error { return r.objects.Close() }
