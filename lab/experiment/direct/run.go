package direct

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"strconv"
	"time"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/experiment"
	"github.com/volsfu/volsfu/lab/topology"
)

// Run is a running producer and consumer.
type Run struct {
	producer *lab.Program
	consumer *lab.Program
	log      string
}

// Config configures a Run.
type Config struct {
	// Network is nil if the settings have hosts.
	Network *topology.Network
	// Producer and Consumer are hosts of the network, or roles of the settings' hosts.
	Producer, Consumer string
	// Produce and Consume are the flags of both programs, without the flags for addresses, duration and logs.
	Produce, Consume []string
	// Length is the time for which the producer sends after the programs are connected.
	Length time.Duration
}

// Time limits of the programs.
const (
	// listenPatience covers reading every frame of a source of files.
	listenPatience = time.Minute
	// endPatience is the time limit of a run in addition to its length.
	endPatience = 30 * time.Second
)

// ErrMeeting reports that the two programs did not connect.
var ErrMeeting = errors.New("producer and consumer did not meet")

// waiting matches a producer's log line once it listens.
var waiting = regexp.MustCompile(`msg="waiting for the other side" address=(\S+)`)

// Start starts both.
func Start(ctx context.Context, c Config, s *experiment.Settings) (*Run, error) {
	place := place{c.Network, s}
	address := place.listen(c.Producer)
	arguments := append([]string{"direct", "produce", "--listen", address, "--seconds", seconds(c.Length), "--json"},
		c.Produce...)
	reader, writer := io.Pipe()
	listening := make(chan string, 1)
	go listen(reader, listening)
	r := &Run{log: s.File("frames.jsonl")}
	var err error
	if r.producer, err = place.start(ctx, c.Producer, "vollab direct produce", writer, arguments...); err != nil {
		_ = writer.Close()
		return nil, err
	}
	go func() {
		<-r.producer.Ended()
		_ = writer.Close()
	}()
	if address, err = lab.AwaitSign(ctx, r.producer, listening, listenPatience); err != nil {
		return nil, errors.Join(ErrMeeting, err, r.producer.Stop())
	}
	arguments = append([]string{"direct", "consume", "--connect", address, "--log", r.log, "--json"}, c.Consume...)
	if s.Hosts == nil || s.Hosts.SameClock() {
		// Hosts of an emulated network share one clock.
		arguments = append(arguments, "--same-clock")
	}
	if r.consumer, err = place.start(ctx, c.Consumer, "vollab direct consume", nil, arguments...); err != nil {
		return nil, errors.Join(err, r.producer.Stop())
	}
	return r, nil
}

// place is where the programs run: an emulated network, or the hosts of the settings.
type place struct {
	network  *topology.Network
	settings *experiment.Settings
}

// listen returns a listen address on a host, with port 0.
func (p place) listen(host string) string {
	if p.settings.Hosts != nil {
		return p.settings.Hosts.Listen(host)
	}
	return net.JoinHostPort(p.network.Address(host).String(), "0")
}

// start starts vollab on a host.
func (p place) start(ctx context.Context, host, name string, watch io.Writer, arguments ...string) (*lab.Program,
	error) {
	if p.settings.Hosts != nil {
		return p.settings.Hosts.Start(host, name, "vollab", watch, arguments...)
	}
	vollab, err := p.settings.Program("vollab")
	if err != nil {
		return nil, err
	}
	return lab.StartCommand(name, p.network.Command(ctx, host, vollab, arguments...), watch)
}

// seconds formats a time for vollab.
func seconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', 3, 64) }

// listen finds the address on which the producer listens, and consumes the rest of the output, so that the producer can
// write.
func listen(from io.Reader, found chan<- string) {
	lines := bufio.NewScanner(from)
	for lines.Scan() {
		if match := waiting.FindStringSubmatch(lines.Text()); match != nil {
			select {
			case found <- match[1]:
			default:
			}
		}
	}
	_, _ = io.Copy(io.Discard, from)
}

// Summary is the part of the printed summaries that experiments use.
type Summary struct {
	// Captured, Missed, Skipped and Refused are the producer's counts: captured frames, frames that were due and not
	// captured, captured frames that a newer frame replaced before they were encoded, and frames that the codec
	// rejected.
	Captured int `json:"frames_captured"`
	Missed   int `json:"frames_missed"`
	Skipped  int `json:"frames_superseded_before_encoding"`
	Refused  int `json:"frames_refused"`
	// ClockBound is the largest possible error of the consumer's times by the producer's clock, in milliseconds, from
	// the consumer's summary.
	ClockBound float64 `json:"-"`
}

// Ended returns a channel that is closed when the consumer has ended. The consumer ends after the producer.
func (r *Run) Ended() <-chan struct{} { return r.consumer.Ended() }

// Pace returns the machine's pace: the number of due frames, of decoded frames, and of frames that the producer or the
// consumer's decoder did not process.
func (s *Summary) Pace(frames []Frame) experiment.Pace {
	p := experiment.Pace{Wanted: s.Captured + s.Missed, DroppedByCPU: s.Missed + s.Skipped}
	for i := range frames {
		f := &frames[i]
		if f.Outcome == Intact && f.Decoded != 0 {
			p.Done++
		}
		if f.Superseded {
			p.DroppedByCPU++
		}
	}
	return p
}

// Wait waits until both have ended, and reads the log of frames.
func (r *Run) Wait(ctx context.Context, length time.Duration) ([]Frame, Summary, error) {
	var summary Summary
	ctx, cancel := context.WithTimeout(ctx, length+endPatience)
	defer cancel()
	produced := r.producer.Wait(ctx)
	consumed := r.consumer.Wait(ctx)
	if foundNothing(consumed, r.consumer.Output()) {
		consumed = nil
	}
	if err := errors.Join(produced, consumed); err != nil {
		return nil, summary, errors.Join(err, r.Stop())
	}
	if err := json.Unmarshal(r.producer.Output(), &summary); err != nil {
		return nil, summary, fmt.Errorf("summary of vollab direct produce: %w", err)
	}
	var other struct {
		ClockBound float64 `json:"clock_bound_ms"`
	}
	if err := json.Unmarshal(r.consumer.Output(), &other); err != nil {
		return nil, summary, fmt.Errorf("summary of vollab direct consume: %w", err)
	}
	summary.ClockBound = other.ClockBound
	frames, err := ReadFrames(r.log)
	return frames, summary, err
}

// statusNothing is the exit status of vollab if the only failure is that no frame was decoded.
const statusNothing = 3

// foundNothing reports whether the consumer ended normally without a decoded frame, which its exit status shows. This
// is a result of an experiment, unless no packet arrived at all.
func foundNothing(ended error, output []byte) bool {
	var exit interface{ ExitCode() int }
	if !errors.As(ended, &exit) || exit.ExitCode() != statusNothing {
		return false
	}
	var summary struct {
		Packets uint64 `json:"packets_received"`
	}
	return json.Unmarshal(output, &summary) == nil && summary.Packets > 0
}

// Stop ends both programs. Stop may be called after Wait.
func (r *Run) Stop() error { return errors.Join(r.consumer.Stop(), r.producer.Stop()) }
