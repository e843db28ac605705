// Package sendertest plays a story to any user of a sender.Sender and records the calls of its estimator. The server
// and vollab control play the same stories, with the same outcome.
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
	// Frame sends a frame of the given number of full packets that has just arrived whole.
	Frame(packets int, now time.Time)
	// Report processes a report of the receiver.
	Report(packet []byte, now time.Time)
	// Run processes due events.
	Run(now time.Time)
	// Departed returns the packets that have left since the last call.
	Departed() []Packet
}

// Packet is a packet that has left, with its transport-wide number and its size on the wire in bytes.
type Packet struct {
	Number uint16
	Size   int
}

// Intervals in milliseconds: the Player runs every 1, a frame arrives every 33, the receiver reports every 25, in the
// format of draft-holmer-rmcat-transport-wide-cc-extensions-01.
const (
	step           = time.Millisecond
	frameInterval  = 33 * step
	reportInterval = 25 * step
)

// Story describes a test run: Packets of each frame over a path with Delay until End, without reports between From and
// To. Times are milliseconds.
type Story struct {
	Packets, Delay, From, To, End int
}

// Read reads a story. Its first line has the form "20 packets, 10 ms, silent from 1200 to 1700 of 2500 ms".
func Read(text string) (s Story, line string, err error) {
	line, _, _ = strings.Cut(text, "\n")
	_, err = fmt.Sscanf(line, "%d packets, %d ms, silent from %d to %d of %d ms",
		&s.Packets, &s.Delay, &s.From, &s.To, &s.End)
	if err != nil {
		err = fmt.Errorf("the story %q: %w", line, err)
	}
	return s, line, err
}

// arrival is a packet in transit.
type arrival struct {
	Packet
	at time.Time
}

// Play plays the story, starting at a given time.
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

// Recorder is an estimator that records its calls.
type Recorder struct {
	congestion.Estimator
	start time.Time
	lines []string
}

// NewRecorder returns a recorder around an estimator with a maximum of 30 Mbit/s.
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

// Transcript returns the record, below the first line of the story.
func (r *Recorder) Transcript(line string) string {
	return line + "\n" + strings.Join(r.lines, "\n") + "\n"
}
