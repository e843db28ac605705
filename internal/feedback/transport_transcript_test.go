package feedback

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/ecn"
)

// TestTransportTranscripts plays testdata/transport: a sender's history and a receiver's recorder, as in
// TestNACKTranscripts. Numbers begin at 0; packets have 1,200 bytes. Input:
//
//	config KEY=VALUE…   changes the configuration: max_bytes, interval_min and so on in milliseconds
//	0 send 10           sends ten packets
//	5 receive 1 2 5-9   packets arrive
//	150 until           makes reports whenever they are due, until then; they reach the sender at once
//	150 until lose      the same, but the reports are lost
//	stats
//
// A report is printed as its number, its size, the first number covered, and the arrival times of the packets, or - for
// lost ones.
func TestTransportTranscripts(t *testing.T) {
	playTranscripts(t, "testdata/transport/*.txt", func(t *testing.T) player {
		p := &transportPlayer{t: t, cfg: DefaultConfig().Transport}
		p.reset()
		return p
	})
}

type transportPlayer struct {
	t        *testing.T
	cfg      TransportFeedbackConfig
	history  *TransportHistory
	recorder *TransportRecorder
	lines
}

func (p *transportPlayer) reset() {
	p.history, p.recorder = NewTransportHistory(0), NewTransportRecorder(p.cfg)
	// Times count from the first packet of either side.
	p.history.since(start)
}

func (p *transportPlayer) play(fields []string) error {
	switch fields[0] {
	case "config":
		return p.configure(fields[1:])
	case "stats":
		r, h := p.recorder.Stats(), p.history.Stats()
		p.line(fmt.Sprintf("  recorder: received %d duplicates %d old %d dropped %d restarts %d reports %d", r.Received,
			r.Duplicates, r.Old, r.Dropped,
			r.Restarts, r.Reports))
		p.line(fmt.Sprintf("  history: sent %d received %d lost %d late %d unreported %d unmatched %d in flight %d",
			h.Sent, h.Received, h.Lost, h.Late,
			h.Unreported, h.Unmatched, p.history.InFlight()))
		return nil
	}
	ms, err := strconv.ParseFloat(fields[0], 64)
	if err != nil {
		return err
	}
	now := after(time.Duration(ms * float64(time.Millisecond)))
	switch fields[1] {
	case "send":
		count, err := strconv.Atoi(fields[2])
		for range count {
			p.history.Sent(1200, Media, now)
		}
		return err
	case "receive":
		return eachNumber(fields[2:], func(number int64) { p.recorder.Received(uint16(number), 1200, now) })
	case "until":
		return p.until(now, len(fields) > 2 && fields[2] == "lose")
	}
	return fmt.Errorf("unknown command %q", fields[1])
}

func (p *transportPlayer) configure(fields []string) error {
	for _, field := range fields {
		key, value, _ := strings.Cut(field, "=")
		n, err := strconv.Atoi(value)
		if err != nil {
			return err
		}
		switch key {
		case "max_bytes":
			p.cfg.MaxBytes = n
		case "interval_max":
			p.cfg.IntervalMax = time.Duration(n) * time.Millisecond
		case "interval_min":
			p.cfg.IntervalMin = time.Duration(n) * time.Millisecond
		default:
			return fmt.Errorf("unknown key %q", key)
		}
	}
	p.reset()
	return nil
}

// eachNumber calls do with the numbers of ranges like 5 and 7-9.
func eachNumber(ranges []string, do func(int64)) error {
	for _, r := range ranges {
		first, last, found := strings.Cut(r, "-")
		if !found {
			last = first
		}
		from, err := strconv.ParseInt(first, 10, 64)
		if err != nil {
			return err
		}
		to, err := strconv.ParseInt(last, 10, 64)
		if err != nil {
			return err
		}
		for number := from; number <= to; number++ {
			do(number)
		}
	}
	return nil
}

func (p *transportPlayer) until(end time.Time, lose bool) error {
	for range 1000 {
		next := p.recorder.Next()
		if next.IsZero() || next.After(end) {
			if !next.IsZero() {
				p.line("  next " + milliseconds(next))
			}
			return nil
		}
		p.report(next, lose)
	}
	return fmt.Errorf("the recorder wants to report without end")
}

func (p *transportPlayer) report(now time.Time, lose bool) {
	for {
		compound := p.recorder.AppendReports(nil, 1, 2, now)
		if len(compound) == 0 {
			return
		}
		p.line("  " + milliseconds(now) + " compound")
		for _, report := range splitReports(p.t, compound) {
			statuses, decoded := decodeReport(p.t, report)
			text := fmt.Sprintf("    report %d: %d bytes, from %d:", decoded.FbPktCount, len(report),
				decoded.BaseSequenceNumber)
			for _, status := range statuses {
				if status.received {
					text += " " + strconv.FormatFloat(float64(status.tick)/4, 'f', -1, 64)
				} else {
					text += " -"
				}
			}
			p.line(text)
			if !lose {
				p.results(p.history.Feedback(report, now, nil))
			}
		}
	}
}

// results prints the numbers by result.
func (p *transportPlayer) results(results []PacketResult) {
	var received, late, lost, marked []int64
	for _, result := range results {
		number := result.Sequence - firstCycle
		switch {
		case result.Late:
			late = append(late, number)
		case result.Received:
			received = append(received, number)
		default:
			lost = append(lost, number)
		}
		if result.ECN == ecn.CE {
			marked = append(marked, number)
		}
	}
	for _, kind := range []struct {
		name    string
		numbers []int64
	}{{"received", received}, {"lost", lost}, {"late", late}, {"marked", marked}} {
		if len(kind.numbers) > 0 {
			p.line("      " + kind.name + " " + numbers(kind.numbers))
		}
	}
}
