package feedback

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/ecn"
)

// TestCongestionTranscripts plays testdata/congestion: a sender's history and a receiver's recorder, as in
// TestTransportTranscripts. Streams are named by their SSRC; the numbers of each begin at 65,530, and packets have
// 1,200 bytes. Input:
//
//	config KEY=VALUE…      changes the configuration: max_bytes, interval_min and so on in milliseconds
//	0 send 1 10            sends ten packets on stream 1
//	0 send 1 10 ect        the same, with ECT(1)
//	5 receive 1 0 2 5-9    packets of stream 1 arrive, counted from its beginning
//	5 mark 1 0 2 5-9       the same, with ECN-CE
//	9 report 8bcd0002…     the sender receives a packet from another receiver, in hexadecimal
//	150 until              makes reports whenever they are due, until then; they reach the sender at once
//	150 until lose         the same, but the reports are lost
//	stats
//
// A report is printed with its size, and for each stream the first number covered, and the arrival times of the packets
// in milliseconds, or - for lost ones. Results have the number in the order of sending; marked are the packets whose
// marks count.
func TestCongestionTranscripts(t *testing.T) {
	playTranscripts(t, "testdata/congestion/*.txt", func(t *testing.T) player {
		p := &congestionPlayer{transportPlayer: transportPlayer{t: t, cfg: DefaultConfig().Transport}}
		p.begin()
		return p
	})
}

const firstOfStream = 65_530

type congestionPlayer struct {
	transportPlayer
	sent     map[uint32]uint16
	streams  *CongestionHistory
	recorded *CongestionRecorder
}

func (p *congestionPlayer) begin() {
	p.sent = map[uint32]uint16{}
	p.streams, p.recorded = NewCongestionHistory(), NewCongestionRecorder(p.cfg, 1)
}

func (p *congestionPlayer) play(fields []string) error {
	switch fields[0] {
	case "config":
		if err := p.configure(fields[1:]); err != nil {
			return err
		}
		p.begin()
		return nil
	case "stats":
		r, h := p.recorded.Stats(), p.streams.Stats()
		p.line(fmt.Sprintf("  recorder: received %d duplicates %d old %d restarts %d reports %d dropped %d", r.Received,
			r.Duplicates, r.Old, r.Restarts,
			r.Reports, r.Dropped))
		p.line(fmt.Sprintf("  history: sent %d received %d lost %d late %d unreported %d unmatched %d in flight %d",
			h.Sent, h.Received, h.Lost, h.Late,
			h.Unreported, h.Unmatched, p.streams.InFlight()))
		if r.Refused+h.Malformed+h.FalseMarks > 0 {
			p.line(fmt.Sprintf("  bad input: refused %d malformed %d false marks %d", r.Refused, h.Malformed,
				h.FalseMarks))
		}
		return nil
	}
	ms, err := strconv.ParseFloat(fields[0], 64)
	if err != nil {
		return err
	}
	now := after(time.Duration(ms * float64(time.Millisecond)))
	switch fields[1] {
	case "until":
		return p.until(now, len(fields) > 2 && fields[2] == "lose")
	case "report":
		packet, err := hex.DecodeString(fields[2])
		p.results(p.streams.Feedback(packet, now, nil))
		return err
	}
	stream, err := strconv.ParseUint(fields[2], 10, 32)
	if err != nil {
		return err
	}
	ssrc := uint32(stream)
	switch fields[1] {
	case "send":
		count, err := strconv.Atoi(fields[3])
		codepoint := ecn.NotECT
		if len(fields) > 4 && fields[4] == "ect" {
			codepoint = ecn.ECT1
		}
		for range count {
			p.streams.Sent(ssrc, firstOfStream+p.sent[ssrc], 1200, Media, codepoint, now)
			p.sent[ssrc]++
		}
		return err
	case "receive":
		return p.arrive(ssrc, fields[3:], ecn.NotECT, now)
	case "mark":
		return p.arrive(ssrc, fields[3:], ecn.CE, now)
	}
	return fmt.Errorf("unknown command %q", fields[1])
}

// arrive records packets of a stream that arrive with a codepoint.
func (p *congestionPlayer) arrive(ssrc uint32, ranges []string, codepoint ecn.Codepoint, now time.Time) error {
	return eachNumber(ranges, func(number int64) {
		p.recorded.Received(ssrc, firstOfStream+uint16(number), 1200, codepoint, now)
	})
}

func (p *congestionPlayer) until(end time.Time, lose bool) error {
	for range 1000 {
		next := p.recorded.Next()
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

func (p *congestionPlayer) report(now time.Time, lose bool) {
	packet := p.recorded.AppendReports(nil, now)
	var report CongestionReport
	if err := report.Unmarshal(packet); err != nil {
		p.t.Fatal(err)
	}
	p.line(fmt.Sprintf("  %s report: %d bytes", milliseconds(now), len(packet)))
	begins := uint32((start.Unix()+ntpEpoch)<<16) + uint32(start.Nanosecond())
	made := float64(report.Timestamp-begins) * 1000 / tickRate
	for _, s := range report.Streams {
		text := fmt.Sprintf("    %d from %d:", s.SSRC, s.Begin)
		for _, arrival := range s.Packets {
			if arrival.Received {
				text += " " + strconv.FormatFloat(made-float64(arrival.Offset)*1000/offsetRate, 'f', 0, 64)
			} else {
				text += " -"
			}
		}
		p.line(text)
	}
	if !lose {
		p.results(p.streams.Feedback(packet, now, nil))
	}
}
