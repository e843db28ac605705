// Package direct implements vollab direct: a producer and a consumer of point clouds without a server, for one viewer,
// and with a measurement of every stage of a frame. Its parts are the packages below it: rendezvous connects the two
// sides, carry transports packets, producer and consumer are the two ends, and stages combines the records of both
// sides.
//
// A sender or a receiver is owned by the goroutine that runs it. State that other goroutines use is atomic, guarded by
// a mutex, or in the books.
package direct

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/volsfu/volsfu/internal/peer"
	"github.com/volsfu/volsfu/lab/direct/rendezvous"
	"github.com/volsfu/volsfu/lab/direct/stages"
)

// Command returns the command vollab direct.
func Command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "direct",
		Short: "Send point clouds to one consumer without a server",
		Long: "Send point clouds to one consumer without a server: run vollab direct produce on one host and vollab " +
			"direct consume on another. One of them listens, the other connects.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newProduce(), newConsume())
	return cmd
}

// direct has the flags of both sides.
type direct struct {
	listen  string
	connect string
	stun    []string
	log     string
	seconds float64
	json    bool
	// met receives the listening address if it is not nil. It has no flag.
	met chan<- string
}

func (d *direct) flags(f *pflag.FlagSet) {
	f.StringVar(&d.listen, "listen", "", "wait for the other side at HOST:PORT")
	f.StringVar(&d.connect, "connect", "", "connect to the other side, which listens at HOST:PORT within 30 s")
	f.StringSliceVar(&d.stun, "stun", nil, "STUN servers for transport webrtc, as stun:HOST:PORT, if an address "+
		"translator is on the path")
	f.StringVar(&d.log, "log", "", "file for the records of both sides, one line per frame: NAME.jsonl or NAME.csv")
	f.Float64Var(&d.seconds, "seconds", 0, "time to run in seconds; 0 means until interrupted, or until the "+
		"other side ends")
	f.BoolVar(&d.json, "json", false, "print one JSON object at the end")
}

// ErrNothing is returned by vollab direct consume if no frame was decoded and there was no other error. It is never
// joined with another error.
var ErrNothing = errors.New("no frame was decoded")

// errMeeting is returned unless exactly one of the two flags is given.
var errMeeting = errors.New("expected either --listen or --connect")

func (d *direct) check() error {
	if (d.listen == "") == (d.connect == "") {
		return errMeeting
	}
	if d.seconds < 0 {
		return fmt.Errorf("--seconds: %w", peer.ErrDuration)
	}
	return nil
}

// meet connects to the other side.
func (d *direct) meet(ctx context.Context, log *slog.Logger) (*rendezvous.Conn, error) {
	if d.connect != "" {
		return d.dial(ctx, log)
	}
	listener, err := rendezvous.Listen(d.listen)
	if err != nil {
		return nil, fmt.Errorf("--listen: %w", err)
	}
	defer listener.Close()
	log.Info("waiting for the other side", "address", listener.Address())
	if d.met != nil {
		d.met <- listener.Address()
	}
	return listener.Accept(ctx)
}

const (
	// dialPatience is the time limit for the other side to listen: a producer listens once its source is open.
	dialPatience = 30 * time.Second
	// dialInterval is the time between two attempts.
	dialInterval = 100 * time.Millisecond
)

// dial connects to the other side, and repeats the attempt while the other side does not listen.
func (d *direct) dial(ctx context.Context, log *slog.Logger) (*rendezvous.Conn, error) {
	ctx, done := context.WithTimeout(ctx, dialPatience)
	defer done()
	for attempt := 1; ; attempt++ {
		conn, err := rendezvous.Dial(ctx, d.connect)
		if !errors.Is(err, syscall.ECONNREFUSED) {
			return conn, err
		}
		if attempt == 1 {
			log.Info("the other side does not listen yet", "address", d.connect, "at_most", dialPatience)
		}
		select {
		case <-time.After(dialInterval):
		case <-ctx.Done():
			return nil, err
		}
	}
}

// books returns the books with the log of frames, if there is one.
func (d *direct) books() (*stages.Books, error) {
	if d.log == "" {
		return stages.NewBooks(nil), nil
	}
	log, err := stages.Create(d.log)
	if err != nil {
		return nil, fmt.Errorf("--log: %w", err)
	}
	return stages.NewBooks(log), nil
}

// localAddress returns the address for media sockets: the address of the other side if it is on this host, otherwise
// the unspecified address of IPv4 or IPv6.
func localAddress(remote netip.Addr) netip.Addr {
	switch {
	case remote.IsLoopback():
		return remote
	case remote.Is4():
		return netip.IPv4Unspecified()
	}
	return netip.IPv6Unspecified()
}

// Intervals of the messages between both sides: records ten times per second. A line is printed once per second.
const (
	tellInterval = 100 * time.Millisecond
	lineInterval = time.Second
)

// outbox has the records that wait to be sent to the other side.
type outbox[T any] struct {
	mu   sync.Mutex
	list []T
}

// maxUntold bounds the number of waiting records, as the number in a message is bounded.
const maxUntold = 1000

func (o *outbox[T]) put(record T) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.list) < maxUntold {
		o.list = append(o.list, record)
	}
}

func (o *outbox[T]) take() (list []T) {
	o.mu.Lock()
	defer o.mu.Unlock()
	list, o.list = o.list, nil
	return list
}

// Summary is printed by both sides at the end.
type Summary struct {
	Role      string  `json:"role"`
	Transport string  `json:"transport"`
	Mode      string  `json:"mode"`
	Seconds   float64 `json:"seconds"`
	// FPS is the number of decoded frames per second. Bitrate is the rate of frames on the wire, including headers.
	FPS     float64 `json:"fps"`
	Bitrate int64   `json:"bitrate_bps"`
	stages.Report
	// Captured, Missed, Superseded and Refused are counted by the producer: captured frames; frames that fell due and
	// were not fetched; captured frames that were replaced by a newer one before encoding; and frames that could not be
	// encoded.
	Captured   int64 `json:"frames_captured"`
	Missed     int64 `json:"frames_missed"`
	Superseded int64 `json:"frames_superseded_before_encoding"`
	Refused    int64 `json:"frames_refused"`
	// Estimate is the producer's last bandwidth estimate.
	Estimate int64 `json:"estimate_bps"`
	// ClockBound is the largest possible error of the consumer's times by the producer's clock, in milliseconds, once
	// the first clock requests are answered; 0 with the same clock.
	ClockBound float64 `json:"clock_bound_ms"`
	// Packets and the following counters are the consumer's.
	Packets          uint64 `json:"packets_received"`
	PacketsLost      uint64 `json:"packets_lost"`
	PacketsRecovered uint64 `json:"packets_recovered"`
	NACKs            uint64 `json:"nacks_sent"`
}

// rates sets the fields that are relative to time.
func (s *Summary) rates(report stages.Report, took time.Duration) {
	s.Report, s.Seconds = report, took.Seconds()
	if took > 0 {
		s.FPS = float64(report.Decoded) / took.Seconds()
		s.Bitrate = int64(8 * float64(report.Wire) / took.Seconds())
	}
}

// print prints the summary as JSON or as text.
func (s *Summary) print(out io.Writer, asJSON bool) error {
	if asJSON {
		return writeJSON(out, s)
	}
	_, err := io.WriteString(out, summaryText(s))
	return err
}
