package feedback

import (
	"bytes"
	"container/heap"
	"encoding/binary"
	"testing"
	"time"

	"github.com/pion/rtcp"
)

// arrivalStatus is the status of one number in a report.
type arrivalStatus struct {
	number   uint16
	received bool
	tick     int64 // of 250 µs, with the reference time
}

// splitReports splits a compound by its headers.
func splitReports(t testing.TB, compound []byte) [][]byte {
	t.Helper()
	var reports [][]byte
	for len(compound) > 0 {
		size := 4 * (int(binary.BigEndian.Uint16(compound[2:])) + 1)
		if !IsTransportFeedback(compound) || size > len(compound) {
			t.Fatalf("no report: %x", compound)
		}
		reports, compound = append(reports, compound[:size]), compound[size:]
	}
	return reports
}

// decodeReport decodes a report with the RTCP library, which also must encode the same bytes.
func decodeReport(t testing.TB, report []byte) ([]arrivalStatus, *rtcp.TransportLayerCC) {
	t.Helper()
	var decoded rtcp.TransportLayerCC
	if err := decoded.Unmarshal(report); err != nil {
		t.Fatalf("%x: %v", report, err)
	}
	written, err := decoded.Marshal()
	if err != nil || !bytes.Equal(written, report) {
		t.Fatalf("the library reads %x and writes %x: %v", report, written, err)
	}
	return statusesOf(t, &decoded), &decoded
}

// statusesOf lists the statuses of a report decoded by the RTCP library.
func statusesOf(t testing.TB, decoded *rtcp.TransportLayerCC) []arrivalStatus {
	t.Helper()
	var symbols []uint16
	for _, chunk := range decoded.PacketChunks {
		switch chunk := chunk.(type) {
		case *rtcp.RunLengthChunk:
			for range chunk.RunLength {
				symbols = append(symbols, chunk.PacketStatusSymbol)
			}
		case *rtcp.StatusVectorChunk:
			symbols = append(symbols, chunk.SymbolList...)
		}
	}
	if len(symbols) < int(decoded.PacketStatusCount) {
		t.Fatalf("%d symbols for %d packets", len(symbols), decoded.PacketStatusCount)
	}
	tick := int64(decoded.ReferenceTime) << 8
	deltas := decoded.RecvDeltas
	var statuses []arrivalStatus
	for i, symbol := range symbols[:decoded.PacketStatusCount] {
		status := arrivalStatus{number: decoded.BaseSequenceNumber + uint16(i),
			received: symbol != rtcp.TypeTCCPacketNotReceived}
		if status.received {
			tick += deltas[0].Delta / rtcp.TypeTCCDeltaScaleFactor
			status.tick, deltas = tick, deltas[1:]
		}
		statuses = append(statuses, status)
	}
	return statuses
}

// transportPath is a sender, a receiver and both directions between them, in virtual time.
type transportPath struct {
	t        testing.TB
	history  *TransportHistory
	recorder *TransportRecorder
	limit    int
	events   eventQueue
	order    int
	now      time.Time
	wakeup   time.Time

	// back transfers a report to the sender, and returns its arrival time; nil is immediate.
	back func(now time.Time) (arrives []time.Time)

	sent     map[int64]time.Time
	arrivals map[int64]time.Time // first arrivals
	verdicts map[int64][]PacketResult
	reports  int
	bytes    int
}

func newTransportPath(t testing.TB, cfg TransportFeedbackConfig, first uint16) *transportPath {
	return &transportPath{
		t: t, history: NewTransportHistory(first), recorder: NewTransportRecorder(cfg), limit: cfg.MaxBytes, now: start,
		sent: map[int64]time.Time{}, arrivals: map[int64]time.Time{}, verdicts: map[int64][]PacketResult{},
	}
}

func (p *transportPath) at(at time.Time, run func(now time.Time)) {
	p.order++
	heap.Push(&p.events, pathEvent{at: at, order: p.order, run: run})
}

// send sends a packet with the given arrival times, or none.
func (p *transportPath) send(size int, now time.Time, arrives ...time.Time) {
	number := p.history.Sent(size, Media, now)
	p.sent[number] = now
	for _, at := range arrives {
		p.at(at, func(now time.Time) {
			if _, again := p.arrivals[number]; !again {
				p.arrivals[number] = now
			}
			p.recorder.Received(uint16(number), size, now)
			p.wake()
		})
	}
}

// wake sets a timer for the next report, unless an earlier one is set.
func (p *transportPath) wake() {
	next := p.recorder.Next()
	if next.IsZero() || !p.wakeup.IsZero() && !next.Before(p.wakeup) {
		return
	}
	p.wakeup = next
	p.at(next, func(now time.Time) {
		if p.wakeup.Equal(now) {
			p.wakeup = time.Time{}
			p.report(now)
			p.wake()
		}
	})
}

func (p *transportPath) report(now time.Time) {
	for {
		compound := p.recorder.AppendReports(nil, 1, 2, now)
		if len(compound) == 0 {
			return
		}
		if len(compound) > p.limit {
			p.t.Fatalf("a compound of %d bytes", len(compound))
		}
		p.reports++
		p.bytes += len(compound)
		arrives := []time.Time{now}
		if p.back != nil {
			arrives = p.back(now)
		}
		for _, at := range arrives {
			p.at(at, func(now time.Time) { p.feedback(compound, now) })
		}
	}
}

func (p *transportPath) feedback(compound []byte, now time.Time) {
	for _, report := range splitReports(p.t, compound) {
		for _, result := range p.history.Feedback(report, now, nil) {
			p.verdicts[result.Sequence] = append(p.verdicts[result.Sequence], result)
		}
	}
}

// run processes all events.
func (p *transportPath) run() {
	for p.events.Len() > 0 {
		event := heap.Pop(&p.events).(pathEvent)
		p.now = event.at
		event.run(event.at)
	}
}

// check compares every result with the real arrivals. complete is set if all reports arrived, so that every packet up
// to the last that arrived has a final result.
func (p *transportPath) check(complete bool) {
	p.t.Helper()
	var newest int64
	for number := range p.arrivals {
		newest = max(newest, number)
	}
	var offset time.Duration
	aligned := false
	for number, sent := range p.sent {
		verdicts := p.verdicts[number]
		arrived, received := p.arrivals[number]
		if len(verdicts) > 2 || len(verdicts) == 2 && (verdicts[0].Received || !verdicts[1].Late) ||
			len(verdicts) == 1 && verdicts[0].Late {
			p.t.Fatalf("%d: %+v", number, verdicts)
		}
		if len(verdicts) == 0 {
			if complete && number <= newest {
				p.t.Fatalf("no result for %d", number)
			}
			continue
		}
		final := verdicts[len(verdicts)-1]
		if final.Received && !received || complete && final.Received != received {
			p.t.Fatalf("%d: arrived %t, result %+v", number, received, final)
		}
		if !final.Sent.Equal(sent.Truncate(time.Microsecond)) && final.Sent.Sub(sent).Abs() >= time.Microsecond {
			p.t.Fatalf("%d: sent at %v, not %v", number, sent, final.Sent)
		}
		if !final.Received {
			continue
		}
		// The receiver's clock starts with its first packet, and rounds down.
		difference := arrived.Sub(start) - final.Arrived
		if !aligned {
			aligned, offset = true, difference
		}
		if (difference - offset).Abs() >= deltaTick {
			p.t.Fatalf("%d: arrived at %v, reported at %v, which is %v off the others", number, arrived.Sub(start),
				final.Arrived, difference-offset)
		}
	}
	if p.history.InFlight() < 0 {
		p.t.Fatalf("%d bytes in flight", p.history.InFlight())
	}
}
