// Package sendertest plays a story to any user of a sender.Sender, and writes down what its estimator is told and
// asked. The server and vollab control play the same stories, with the same outcome.
package sendertest

import (
	"fmt"
	"strings"
	"time"

	"github.com/volsfu/volsfu/internal/congestion"
	"github.com/volsfu/volsfu/internal/feedback"
)

// Player sends to one receiver.
type Player interface {
	// Frame takes a frame of so many full packets that has just arrived whole.
	Frame(packets int, now time.Time)
	// Report takes a report of the receiver.
	Report(packet []byte, now time.Time)
	// Run does what is due.
	Run(now time.Time)
	// Departed returns the packets that have left since the last call.
	Departed() []Packet
}

// Packet is a packet that has left, with its transport-wide number and its size on the wire in bytes.
type Packet struct {
	Number uint16
	Size   int
}

// The Player is run every millisecond, and a frame comes every 33 of them. The receiver reports every 25, in the form
// of draft-holmer-rmcat-transport-wide-cc-extensions-01.
const (
	step           = time.Millisecond
	frameInterval  = 33 * step
	reportInterval = 25 * step
)

// Story is what happens: so many packets of each frame, over a path with a delay, whose reports do not come between two
// times.
type Story struct {
	Packets, Delay, From, To, End int
}

// Read reads a story, whose first line is "20 packets, 10 ms, silent from 1200 to 1700 of 2500 ms".
func Read(text string) (s Story, line string, err error) {
	line, _, _ = strings.Cut(text, "\n")
	_, err = fmt.Sscanf(line, "%d packets, %d ms, silent from %d to %d of %d ms",
		&s.Packets, &s.Delay, &s.From, &s.To, &s.End)
	if err != nil {
		err = fmt.Errorf("the story %q: %w", line, err)
	}
	return s, line, err
}

// arrival is a packet under way.
type arrival struct {
	Packet
	at time.Time
}

// Play plays the story from a time on.
func (s Story) Play(p Player, start time.Time) {
	recorder := feedback.NewTransportRecorder(feedback.DefaultConfig().Transport)
	var under []arrival
	for elapsed := time.Duration(0); elapsed <= time.Duration(s.End)*step; elapsed += step {
		now := start.Add(elapsed)
		if elapsed%frameInterval == 0 {
			p.Frame(s.Packets, now)
		}
		for len(under) > 0 && !under[0].at.After(now) {
			recorder.Received(under[0].Number, under[0].Size, under[0].at)
			under = under[1:]
		}
		silent := elapsed >= time.Duration(s.From)*step && elapsed < time.Duration(s.To)*step
		for elapsed%reportInterval == 0 && !silent {
			report := recorder.AppendReports(nil, 1, 2, now)
			if len(report) == 0 {
				break
			}
			p.Report(report, now)
		}
		p.Run(now)
		for _, packet := range p.Departed() {
			under = append(under, arrival{packet, now.Add(time.Duration(s.Delay) * step)})
		}
	}
}

// Recorder is an estimator that writes down what it is told and asked.
type Recorder struct {
	congestion.Estimator
	start time.Time
	lines []string
}

// NewRecorder makes a recorder around an estimator that takes the path for one of 30 Mbit/s at most.
func NewRecorder(start time.Time) *Recorder {
	cfg := congestion.DefaultConfig()
	cfg.Max = 30e6
	return &Recorder{Estimator: congestion.New(congestion.GCC, cfg, start), start: start}
}

func (r *Recorder) note(now time.Time, format string, arguments ...any) {
	at := float64(now.Sub(r.start).Microseconds()) / 1000
	r.lines = append(r.lines, fmt.Sprintf("> %8.3f ", at)+fmt.Sprintf(format, arguments...))
}

// Sent implements congestion.Estimator.
func (r *Recorder) Sent(now time.Time, size int) {
	r.note(now, "sent %d bytes", size)
	r.Estimator.Sent(now, size)
}

// Report implements congestion.Estimator.
func (r *Recorder) Report(now time.Time, results []feedback.PacketResult) {
	bytes, probed := 0, 0
	for _, p := range results {
		bytes += p.Size
		if p.Probe > 0 {
			probed++
		}
	}
	r.note(now, "report of %d packets, %d bytes, %d of probes", len(results), bytes, probed)
	r.Estimator.Report(now, results)
}

// Step implements congestion.Estimator.
func (r *Recorder) Step(now time.Time) {
	r.note(now, "step")
	r.Estimator.Step(now)
}

// Probe implements congestion.Estimator.
func (r *Recorder) Probe(now time.Time) (c congestion.ProbeCluster, ok bool) {
	if c, ok = r.Estimator.Probe(now); ok {
		r.note(now, "probe %d at %d bit/s", c.ID, c.Rate)
	}
	return c, ok
}

// Transcript is what was written down, below the story's line.
func (r *Recorder) Transcript(line string) string {
	return line + "\n" + strings.Join(r.lines, "\n") + "\n"
}
