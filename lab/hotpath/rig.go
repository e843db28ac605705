package hotpath

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/hotpath/mediasocket"
	"github.com/volsfu/volsfu/test/exposition"
	"github.com/volsfu/volsfu/test/testbed"
)

// rig is a server with a load attached.
type rig struct {
	subject    subject
	load       Load
	publishers []*publisher
	receivers  []receiver
	// seen is set for each receiver that observes frames. Other receivers count packets only.
	seen    []bool
	sockets []*mediasocket.Socket
	members []*member

	window window
	// base and baseSent are the counters of each receiver and publisher when the measurement began. drained holds the
	// server's counters after the last window.
	base       []received
	baseSent   []uint64
	baseDrops  int
	baseCounts exposition.Series
	drained    exposition.Series
}

// attachTime is the time limit for one client to connect. primeTime is the time limit until all receivers get all
// tracks.
const (
	attachTime = 20 * time.Second
	primeTime  = 30 * time.Second
)

// newRig attaches a load to a server and waits until every receiver gets every track. The caller owns the server, also
// on errors.
func newRig(ctx context.Context, s subject, load Load) (*rig, error) {
	r := &rig{subject: s, load: load}
	if err := r.assemble(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", s.name(), err), r.close())
	}
	return r, nil
}

// assemble attaches publishers, then receivers, and primes them.
func (r *rig) assemble(ctx context.Context) error {
	for i := range r.load.Publishers {
		p := part{load: r.load, number: i, publishes: true, receives: r.load.Together}
		if r.load.Together && i == 0 {
			p.every = r.load.every()
		}
		if err := r.attach(ctx, p); err != nil {
			return err
		}
	}
	priming, cancel := context.WithTimeout(ctx, primeTime)
	defer cancel()
	stop := r.publish(priming)
	tracks := r.load.Publishers * r.load.Tracks
	err := awaitError(priming, "the server has the publishers' tracks",
		func() (bool, error) { return r.subject.begun(priming, tracks) })
	stop()
	if err != nil {
		return err
	}
	for i := len(r.receivers); i < r.load.Receivers; i++ {
		p := part{load: r.load, number: i, receives: true}
		if i == 0 {
			p.every = r.load.every()
		}
		if err := r.attach(ctx, p); err != nil {
			return err
		}
	}
	return r.prime(ctx)
}

// attach adds one client.
func (r *rig) attach(ctx context.Context, p part) error {
	ctx, cancel := context.WithTimeout(ctx, attachTime)
	defer cancel()
	m, err := r.subject.attach(ctx, p)
	if err != nil {
		return err
	}
	r.members = append(r.members, m)
	if m.publisher != nil {
		r.publishers = append(r.publishers, m.publisher)
	}
	if m.receiver != nil {
		r.receivers, r.seen = append(r.receivers, m.receiver), append(r.seen, true)
	}
	if m.socket != nil {
		r.sockets = append(r.sockets, m.socket)
	}
	return nil
}

// awaitError is testbed.Await for a condition that may fail.
func awaitError(ctx context.Context, what string, condition func() (bool, error)) error {
	var failed error
	err := testbed.Await(ctx, what, func() bool {
		var met bool
		met, failed = condition()
		return met || failed != nil
	})
	return errors.Join(failed, err)
}

// publish starts all publishers. stop ends the publishers and waits until their current frames are sent.
func (r *rig) publish(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	for _, p := range r.publishers {
		running.Go(func() { p.run(ctx) })
	}
	return func() {
		cancel()
		running.Wait()
	}
}

// prime publishes until every receiver gets every track, drains, and records the base counters.
func (r *rig) prime(ctx context.Context) error {
	priming, cancel := context.WithTimeout(ctx, primeTime)
	defer cancel()
	stop := r.publish(priming)
	err := testbed.Await(priming, "every receiver gets every track", func() bool {
		for i, receiver := range r.receivers {
			if receiver.sum().streams < r.load.streams(i) {
				return false
			}
		}
		return true
	})
	if err == nil && r.load.impaired() {
		err = lab.Pause(ctx, settleTime)
	}
	stop()
	if err != nil {
		return err
	}
	if err := r.drain(ctx); err != nil {
		return err
	}
	r.countOnly()
	r.base, r.baseSent, r.baseDrops = r.received(), r.sent(), r.drops()
	r.baseCounts, err = r.subject.counts(ctx)
	return err
}

// countOnly makes all receivers except the first count and drop media in the kernel. One receiver that observes frames
// is enough.
func (r *rig) countOnly() {
	i := 0
	for _, m := range r.members {
		if m.receiver == nil {
			continue
		}
		if reception, ok := m.receiver.(*reception); ok && m.publisher == nil {
			r.seen[i] = !reception.countOnly(m.socket)
		}
		i++
	}
	r.sockets = slices.DeleteFunc(r.sockets, func(s *mediasocket.Socket) bool { return s.Counting() })
}

// settleTime is the time for which frames are sent on impaired paths before anything counts. The time is longer than
// the measurement of round-trip times.
const settleTime = 3 * time.Second

// Draining ends when nothing has arrived for quietTime, or after drainTime.
const (
	quietTime = 200 * time.Millisecond
	drainTime = 3 * time.Second
)

// drain waits until no more packets arrive.
func (r *rig) drain(ctx context.Context) error {
	total := func() (n uint64) {
		for _, got := range r.received() {
			n += got.packets + got.frames
		}
		return n
	}
	last, changed := total(), time.Now()
	for begin := changed; time.Since(changed) < quietTime && time.Since(begin) < drainTime; {
		if err := lab.Pause(ctx, quietTime/10); err != nil {
			return err
		}
		if now := total(); now != last {
			last, changed = now, time.Now()
		}
	}
	return nil
}

func (r *rig) received() []received {
	list := make([]received, len(r.receivers))
	for i, receiver := range r.receivers {
		list[i] = receiver.sum()
	}
	return list
}

func (r *rig) sent() []uint64 {
	list := make([]uint64, len(r.publishers))
	for i, p := range r.publishers {
		list[i] = p.frames.Load()
	}
	return list
}

// drops returns the number of packets dropped by the sockets of this process.
func (r *rig) drops() int {
	sum := 0
	for _, s := range r.sockets {
		sum += mediasocket.Dropped(s.UDPConn)
	}
	return sum
}

// warmTime is the time for which frames are sent before each window. A server keeps packets for one second by default.
// warmTime is longer, so that the caches no longer grow.
const warmTime = 1200 * time.Millisecond

// measure publishes for warmTime and duration, and measures the latter.
func (r *rig) measure(ctx context.Context, duration time.Duration) error {
	stop := r.publish(ctx)
	defer stop()
	if err := lab.Pause(ctx, warmTime); err != nil {
		return err
	}
	before, err := snapshotBefore(ctx, r.subject)
	if err != nil {
		return err
	}
	r.time(true)
	if err := lab.Pause(ctx, duration); err != nil {
		return err
	}
	r.time(false)
	after, err := snapshotAfter(ctx, r.subject)
	if err != nil {
		return err
	}
	r.window.add(before, after)
	stop()
	for _, p := range r.publishers {
		if err := p.failure(); err != nil {
			return fmt.Errorf("publish: %w", err)
		}
	}
	if err := r.drain(ctx); err != nil {
		return err
	}
	r.drained, err = r.subject.counts(ctx)
	return err
}

func (r *rig) time(on bool) {
	for _, receiver := range r.receivers {
		receiver.time(on)
	}
}

// figures returns the figures of all windows so far, with the losses since the beginning.
func (r *rig) figures() Figures {
	names := r.subject.figures()
	f := r.window.figures(names)
	retransmissions := func(s exposition.Series) float64 { return s.Sum(names.retransmissions, `direction="out"`) }
	f.Retransmissions = uint64(retransmissions(r.drained) - retransmissions(r.baseCounts))
	// framesSent counts the frames of each publisher's tracks.
	framesSent := make([]int64, len(r.publishers))
	var expected, expectedSeen int64
	for i, sent := range r.sent() {
		framesSent[i] = int64(sent-r.baseSent[i]) * int64(r.load.Tracks)
		expected += framesSent[i] * int64(r.load.watchers())
	}
	var sum received
	var packet, frame lab.Distribution
	for i, now := range r.received() {
		got := now.since(r.base[i])
		for publisher, sent := range framesSent {
			if r.seen[i] && r.load.watches(i, publisher) {
				expectedSeen += sent
			}
		}
		sum.packets, sum.frames = sum.packets+got.packets, sum.frames+got.frames
		sum.missing += got.missing
		sum.missed, sum.recovered = sum.missed+got.missed, sum.recovered+got.recovered
		p, f := r.receivers[i].times()
		packet.Join(&p)
		frame.Join(&f)
	}
	lost := sum.missing
	if !r.load.impaired() {
		lost = max(lost, expected*int64(r.load.packetsPerFrame())-int64(sum.packets))
	}
	f.PacketsLost, f.FramesLost = uint64(max(0, lost)), uint64(max(0, expectedSeen-int64(sum.frames)))
	f.PacketsMissed, f.PacketsRecovered = sum.missed, sum.recovered
	f.ReceiverDrops = r.drops() - r.baseDrops
	f.Latency, f.FrameLatency = quantilesOf(&packet), quantilesOf(&frame)
	return f
}

// close detaches the load. The server continues to run.
func (r *rig) close() error {
	var err error
	// In reverse order of joining.
	for i := len(r.members) - 1; i >= 0; i-- {
		err = errors.Join(err, r.members[i].end())
	}
	r.members = nil
	return err
}
