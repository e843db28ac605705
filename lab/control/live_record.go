package control

import (
	"errors"
	"fmt"
	"time"

	"github.com/volsfu/volsfu/internal/feedback"
	"github.com/volsfu/volsfu/internal/forward/counters"
	"github.com/volsfu/volsfu/internal/netem"
	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/pkg/payload"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/testbed"
)

// descriptorFactor is the factor by which packet descriptors enlarge frames. The rates of the ladder are rates of RTP
// payload, which includes the descriptors.
const descriptorFactor = float64(fragmentSize) / payload.FragmentSize

var errNothing = errors.New("no frame was received")

// record builds the record of the run.
func (l *Live) record() (*Record, error) {
	r := &Record{scenario: l.scenario, ladder: l.scenario.ladder()}
	for i, peer := range l.receivers {
		if err := peer.Failure(); err != nil {
			return nil, err
		}
		book := newLedger()
		book.samples = append(book.samples, l.samples...)
		if err := fillLedger(book, peer, l.begun, 0); err != nil {
			return nil, fmt.Errorf("receiver %d: %w", i, err)
		}
		r.receivers = append(r.receivers, book)
	}
	stats := l.conference.Server.Stats()
	r.receivers[0].sentByServer(&stats.Sent)

	delays, _ := l.conference.Network.QueueDelays(l.receiverHost, netem.Down)
	delays = delays.Since(&l.joining)
	r.queue = queueFigures(&delays)
	_, link := l.conference.Network.AccessStats(l.receiverHost)
	r.discarded = link.DroppedQueue
	if l.after.stats != nil {
		r.discarded -= min(r.discarded, lostBy(l.conference.Network.CubicStats(l.receiverHost, netem.Down)))
		beside := l.after.delays.Since(&l.before.delays)
		lost, offered := lostBy(l.after.stats)-lostBy(l.before.stats), sentBy(l.after.stats)-sentBy(l.before.stats)
		r.others = &OtherFigures{Loss: float64(lost) / max(float64(offered), 1),
			QueueP95: lab.Milliseconds(beside.Quantile(0.95))}
	}
	return r, nil
}

// queueFigures returns the figures of waiting times.
func queueFigures(waited *netem.DelayCounts) QueueFigures {
	ms := func(share float64) float64 { return lab.Milliseconds(waited.Quantile(share)) }
	return QueueFigures{ms(0.5), ms(0.95), ms(0.99), ms(1)}
}

// lostBy returns the number of segments that competitors have lost.
func lostBy(flows []netem.CubicStats) (sum uint64) {
	for _, f := range flows {
		sum += f.Lost
	}
	return sum
}

func sentBy(flows []netem.CubicStats) (sum uint64) {
	for _, f := range flows {
		sum += f.Sent
	}
	return sum
}

// fillLedger adds a receiver's frames to a ledger that has the samples of a run begun at begun: received frames, and
// other frames from the receiver's statistics. The publishers have dropped unsent frames whole, which the receiver
// counts as missing.
func fillLedger(b *ledger, peer *testbed.Peer, begun time.Time, unsent int64) error {
	arrivals := peer.Arrivals()
	if len(arrivals) == 0 {
		return errNothing
	}
	tiles := make(map[volumetric.TileRef]int64)
	i := 0
	for _, a := range arrivals {
		complete := a.Complete.Sub(begun)
		key := frameKey{tileNumber(tiles, a.Track.TileRef), a.Number}
		b.frames[key] = &frameRecord{captured: a.Capture.Sub(begun), bytes: a.Bytes, complete: max(complete, 1)}
		b.order = append(b.order, key)
		// Arrivals are in order of completion, except for small races between goroutines.
		for i < len(b.samples) && b.samples[i].at < complete {
			i++
		}
		if i < len(b.samples) {
			b.samples[i].goodput += float64(a.Bytes) * descriptorFactor * 8
		}
	}
	before := time.Duration(0)
	if len(b.samples) > 0 {
		before = b.samples[0].at - sampleInterval
	}
	for i := range b.samples {
		x := &b.samples[i]
		x.goodput /= (x.at - before).Seconds()
		before = x.at
	}
	for _, s := range peer.Session.Stats() {
		b.droppedWhole += int(s.DroppedByServer)
		dropped := min(unsent, s.Missing)
		unsent -= dropped
		for range s.Undecodable + s.Missing - dropped {
			key := frameKey{tileNumber(tiles, s.Track.TileRef), -1 - int64(len(b.order))}
			b.frames[key] = &frameRecord{}
			b.order = append(b.order, key)
		}
	}
	return nil
}

// tileNumber returns the number of a tile of one of several publishers.
func tileNumber(numbers map[volumetric.TileRef]int64, tile volumetric.TileRef) int64 {
	number, known := numbers[tile]
	if !known {
		number = int64(len(numbers))
		numbers[tile] = number
	}
	return number
}

// sentByServer sets the bytes that the server has sent to all receivers.
func (l *ledger) sentByServer(sent *counters.TrafficByKind) {
	l.sentBytes[feedback.Media] = int64(sent.Media.Bytes)
	l.sentBytes[feedback.Parity] = int64(sent.Parity.Bytes)
	l.sentBytes[feedback.Retransmission] = int64(sent.Retransmission.Bytes)
	l.sentBytes[feedback.Probe] = int64(sent.Probe.Bytes)
}
