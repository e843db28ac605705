// Package direct is vollab direct: a producer and a consumer of point clouds without a server between them, for one
// viewer, and for measuring every stage of the way of a frame. The packages below it are its parts: rendezvous is how
// both sides meet, carry the ways between them, producer and consumer the two ends, stages what both know of each
// frame.
//
// A sender or a receiver belongs to the goroutine that runs it; what other goroutines touch of it is atomic, behind a
// mutex, or in its books.
package direct

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/volsfu/volsfu/internal/peer"
	"github.com/volsfu/volsfu/lab/direct/rendezvous"
	"github.com/volsfu/volsfu/lab/direct/stages"
)

// Command is vollab direct.
func Command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "direct",
		Short: "Send point clouds to one consumer without a server",
		Long: "Send point clouds to one consumer without a server: vollab direct produce on one host, vollab direct " +
			"consume on another. One of them listens, " +
			"the other connects.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newProduce(), newConsume())
	return cmd
}

// direct is what the flags of both sides say.
type direct struct {
	listen  string
	connect string
	stun    []string
	log     string
	seconds float64
	json    bool
	// met is told the address that is listened at, where somebody wants to know it. No flag sets it.
	met chan<- string
}

func (d *direct) flags(f *pflag.FlagSet) {
	f.StringVar(&d.listen, "listen", "", "wait for the other side at HOST:PORT")
	f.StringVar(&d.connect, "connect", "", "connect to the other side, which listens at HOST:PORT")
	f.StringSliceVar(&d.stun, "stun", nil, "STUN servers for transport webrtc, as stun:HOST:PORT, where there are "+
		"addresses to be translated on the way")
	f.StringVar(&d.log, "log", "", "file for what both sides know of each frame, one line each: NAME.jsonl or NAME.csv")
	f.Float64Var(&d.seconds, "seconds", 0, "end after so many seconds; 0 goes on until interrupted, or until the "+
		"other side ends")
	f.BoolVar(&d.json, "json", false, "print one JSON object at the end")
}

// ErrNothing is returned by vollab direct consume if nothing else went wrong. It is never joined with another error.
var ErrNothing = errors.New("no frame was decoded")

// errMeeting says how the two sides find each other.
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

// meet finds the other side.
func (d *direct) meet(ctx context.Context, log *slog.Logger) (*rendezvous.Conn, error) {
	if d.connect != "" {
		return rendezvous.Dial(ctx, d.connect)
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

// books opens the books, and the log of frames.
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

// localAddress is the address of media sockets: the one that the other side is at where that is on this host, else all
// of IPv4 or IPv6.
func localAddress(remote netip.Addr) netip.Addr {
	switch {
	case remote.IsLoopback():
		return remote
	case remote.Is4():
		return netip.IPv4Unspecified()
	}
	return netip.IPv6Unspecified()
}

// Intervals of what both sides tell each other: records ten times per second, and a line for people once.
const (
	tellInterval = 100 * time.Millisecond
	lineInterval = time.Second
)

// outbox are records that wait to be told to the other side.
type outbox[T any] struct {
	mu   sync.Mutex
	list []T
}

// maxUntold bounds the records that wait, as messages do.
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

// Summary is what both sides print at the end.
type Summary struct {
	Role      string  `json:"role"`
	Transport string  `json:"transport"`
	Mode      string  `json:"mode"`
	Seconds   float64 `json:"seconds"`
	// FPS is frames decoded per second, Bitrate what frames took on the wire per second, headers included.
	FPS     float64 `json:"fps"`
	Bitrate int64   `json:"bitrate_bps"`
	stages.Report
	// Captured, Missed, Superseded and Refused are the producer's: frames captured, those that fell due and were not
	// fetched, those captured that a newer one replaced before they were encoded, those that could not be.
	Captured   int64 `json:"frames_captured"`
	Missed     int64 `json:"frames_missed"`
	Superseded int64 `json:"frames_superseded_before_encoding"`
	Refused    int64 `json:"frames_refused"`
	// Estimate is what the producer last took the way to carry.
	Estimate int64 `json:"estimate_bps"`
	// Packets and what follows are the consumer's.
	Packets          uint64 `json:"packets_received"`
	PacketsLost      uint64 `json:"packets_lost"`
	PacketsRecovered uint64 `json:"packets_recovered"`
	NACKs            uint64 `json:"nacks_sent"`
}

// rates fills in what is per second.
func (s *Summary) rates(report stages.Report, took time.Duration) {
	s.Report, s.Seconds = report, took.Seconds()
	if took > 0 {
		s.FPS = float64(report.Decoded) / took.Seconds()
		s.Bitrate = int64(8 * float64(report.Wire) / took.Seconds())
	}
}

// print writes the summary for programs or for people.
func (s *Summary) print(out io.Writer, asJSON bool) error {
	if asJSON {
		return writeJSON(out, s)
	}
	_, err := io.WriteString(out, summaryText(s))
	return err
}
