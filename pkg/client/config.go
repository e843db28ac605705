package client

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"time"

	"github.com/volsfu/volsfu/internal/congestion"
	"github.com/volsfu/volsfu/internal/congestion/pacing"
	"github.com/volsfu/volsfu/internal/transport"
	"github.com/volsfu/volsfu/pkg/client/internal/hostclock"
	"github.com/volsfu/volsfu/pkg/client/internal/signalling"
	"github.com/volsfu/volsfu/pkg/frametimes"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Errors of the SDK. They are wrapped with what was acted on. Refusals of the server are *signal.Error.
var (
	ErrConfig       = errors.New("invalid client configuration")
	ErrClosed       = errors.New("session is closed")
	ErrLost         = errors.New("session is lost")
	ErrNotPublished = errors.New("no such publication, tile or quality of this client")
	ErrNotConnected = errors.New("not connected")
	// ErrInterrupted says that the websocket broke before a request was answered. The server may have done what was asked.
	ErrInterrupted = errors.New("interrupted before the reply")
	// ErrPanicked says that a goroutine of the session panicked, which is a defect of this package. It is wrapped with the
	// value; the session's log has the stack.
	ErrPanicked = errors.New("panic in a goroutine of the session")
)

// Config says where to go, as whom, and what for. URL, Room and Identity are needed, unless the token names the latter two.
type Config struct {
	// URL is the server's address, as ws://host:port or wss://host:port.
	URL string
	// Room and Identity name the conference and this participant in it.
	Room, Identity string
	// Token is the access token (JWT); servers in development mode need none.
	Token string
	// Publications are published on joining. More may follow by Session.Publish.
	Publications []volumetric.Publication
	// Receive asks for the publications of the others.
	Receive bool
	// Deadline is how long after its first packet a frame is repaired; 0 is 150 ms, or 250 ms where the round trip exceeds 50 ms.
	Deadline time.Duration
	// FrameBytes bounds one received frame; 0 is 16 MiB.
	FrameBytes int
	// Spread is the part of the frame interval over which a frame's packets are sent, 50 ms at most, and no longer than the uplink takes for them by its estimate; 0 is 0.4.
	Spread float64
	// MaxUplink is what is sent at most, in bit/s, and StartUplink what is taken for granted until the server has reported; 0 is 1 Gbit/s, and 2 Mbit/s, or
	// MaxUplink if that is less or the server is on this host.
	MaxUplink, StartUplink volumetric.Bitrate
	// MinUplink is what the uplink is known to carry, in bit/s: no less is sent for want of bandwidth. 0 is 500 kbit/s, or StartUplink if that is less.
	MinUplink volumetric.Bitrate
	// QueueBudget is how long a frame may wait for the uplink before it is left out whole, but audio, which always leaves; 0 is one frame interval, 100 ms at most,
	// and half a second for codecs whose frames build on each other.
	QueueBudget time.Duration
	// Feedback says how this client reports what it gets, by which the server estimates its link; empty is FeedbackTransportCC.
	Feedback Feedback
	// FrameTimes measures where the time of each frame goes, from capture to display, with the help of publishers and the server; see Session.FrameTimes.
	FrameTimes bool
	// ClockSource is where this host has its time from. Empty is frametimes.SourceEstimated, or frametimes.SourceSystem where the server is on this host. With one that is
	// taken for right the estimate goes on as a check, as long as frame times are measured.
	ClockSource frametimes.Source
	// ClockShift moves this host's clock, as it shows in everything that leaves it and in records, for trials with clocks that disagree.
	ClockShift time.Duration
	// MaxBitrate is what this client is to be sent at most, in bit/s; 0 is no limit. Session.SetLimits changes it.
	MaxBitrate volumetric.Bitrate
	// StartBitrate is what this client's downlink is believed to carry, in bit/s: what the server begins with on each connection, as far as it takes the client's word for it.
	// 0 is the server's own start rate.
	StartBitrate volumetric.Bitrate
	// Log takes what the session has to say; nil is silence.
	Log *slog.Logger
	// PacketConn replaces the UDP socket, for emulated networks. The session closes it.
	PacketConn net.PacketConn
	// TCP sends and receives media over TCP, to the same port of the server's (ICE-TCP), for networks that let no UDP out. A lost packet then holds up
	// all behind it.
	TCP bool
	// TLS is for wss, where the system's certificates do not do; nil is the usual way.
	TLS *tls.Config

	// plan is the meaning of Spread.
	plan pacing.Plan
	// times are those of the websocket.
	times signalling.Times
	// panicked takes panics in goroutines of the websocket and of the socket, and returns what the session ends with.
	// Where it is nil, they go on.
	panicked func(value any, stack []byte) error
}

// Feedback is a form in which arrivals are reported.
type Feedback string

// The forms of feedback.
const (
	// FeedbackTransportCC is transport-wide feedback (draft-holmer-rmcat-transport-wide-cc-extensions-01): by a number that packets carry, exact to 250 µs.
	FeedbackTransportCC Feedback = "transport-cc"
	// FeedbackCCFB is congestion control feedback (RFC 8888), by SSRC and sequence number, exact to 1/1024 s, with room for ECN marks. A server that does not offer
	// it gets transport-wide feedback.
	FeedbackCCFB Feedback = "ccfb"
)

// defaultSpread: a frame is through long before the next, and its packets do not hit the first queue as one burst.
const defaultSpread = 0.4

// withDefaults fills in what was left out and reports the first thing that is wrong.
func (c Config) withDefaults() (Config, error) {
	u, err := url.Parse(c.URL)
	if err != nil || u.Host == "" || u.Scheme != "ws" && u.Scheme != "wss" {
		return c, fmt.Errorf("%w: URL %q: expected ws://host:port or wss://host:port", ErrConfig, c.URL)
	}
	if c.Deadline < 0 || c.FrameBytes < 0 || c.Spread < 0 || c.Spread > 1 {
		return c, fmt.Errorf("%w: deadline %v, frame bytes %d, spread %g: expected 0 or more, and a spread up to 1", ErrConfig, c.Deadline, c.FrameBytes, c.Spread)
	}
	switch c.Feedback {
	case "", FeedbackTransportCC, FeedbackCCFB:
	default:
		return c, fmt.Errorf("%w: feedback %q: expected %q or %q", ErrConfig, c.Feedback, FeedbackTransportCC, FeedbackCCFB)
	}
	if c.ClockSource != "" && !c.ClockSource.Valid() {
		return c, fmt.Errorf("%w: clock source %q: expected %q, %q or %q",
			ErrConfig, c.ClockSource, frametimes.SourceEstimated, frametimes.SourceSystem, frametimes.SourcePTP)
	}
	if c.TCP && c.PacketConn != nil {
		return c, fmt.Errorf("%w: TCP and PacketConn: expected at most one of them", ErrConfig)
	}
	if c.MaxUplink < 0 || c.StartUplink < 0 || c.MinUplink < 0 || c.MaxBitrate < 0 || c.QueueBudget < 0 {
		return c, fmt.Errorf("%w: uplink from %d to %d, at least %d, bitrate %d, queue budget %v: expected 0 or more",
			ErrConfig, c.StartUplink, c.MaxUplink, c.MinUplink, c.MaxBitrate, c.QueueBudget)
	}
	if c.StartBitrate < 0 || c.MaxBitrate > 0 && c.StartBitrate > c.MaxBitrate {
		return c, fmt.Errorf("%w: start bitrate %d: expected 0 or more, and at most the bitrate of %d, if that is not 0", ErrConfig, c.StartBitrate, c.MaxBitrate)
	}
	if err := c.congestion().Validate(); err != nil {
		return c, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	if c.Spread == 0 {
		c.Spread = defaultSpread
	}
	plan, err := pacing.Mode(fmt.Sprintf("spread:%g", c.Spread)).Plan()
	if err != nil {
		return c, fmt.Errorf("%w: spread %g: %w", ErrConfig, c.Spread, err)
	}
	c.plan = plan
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.times == (signalling.Times{}) {
		c.times = signalling.DefaultTimes
	}
	return c, nil
}

// congestion is how the uplink is estimated. Limits below the usual least one lower it, too.
func (c Config) congestion() congestion.Config {
	config := congestion.DefaultConfig()
	usual := config.Limits()
	config.Max, config.Start = c.MaxUplink, c.StartUplink
	if config.Max == 0 {
		config.Max = max(usual.Max, config.Start)
	}
	switch {
	case config.Start != 0:
	case c.loopback() && c.PacketConn == nil:
		config.Start = config.Max
	default:
		config.Start = min(max(usual.Start, c.MinUplink), config.Max)
	}
	config.Min = min(usual.Min, config.Start)
	if c.MinUplink != 0 {
		config.Min = c.MinUplink
	}
	return config
}

// clock returns the clock of this host. On a host that is also the server's, the system's clock serves both.
func (c Config) clock() hostclock.Clock {
	source := c.ClockSource
	switch {
	case source != "":
	case c.loopback() && c.ClockShift == 0:
		source = frametimes.SourceSystem
	default:
		source = frametimes.SourceEstimated
	}
	return hostclock.New(source, c.ClockShift)
}

// limits are what the server is told of this client's downlink. The start rate keeps to the other two.
func (c Config) limits(most, least volumetric.Bitrate) signal.BitrateLimits {
	limits := signal.BitrateLimits{Max: most, Min: least, Start: c.StartBitrate}
	if limits.Start == 0 {
		return limits
	}
	limits.Start = max(limits.Start, least)
	if most > 0 {
		limits.Start = min(limits.Start, most)
	}
	return limits
}

// endpoint opens the session's media socket. A server on this host is reached over loopback, which other addresses need not be offered for. One that is named by an
// address of IPv6 may have no other, so the socket then takes both families.
func (c Config) endpoint() (*transport.Endpoint, error) {
	config := transport.ClientConfig()
	if c.panicked != nil {
		config.Confine(func(value any, stack []byte) { _ = c.panicked(value, stack) })
	}
	if c.PacketConn != nil {
		return transport.Attach(config, c.PacketConn)
	}
	if c.TCP {
		return transport.Dial(config)
	}
	switch {
	case c.namedByIPv6():
		config.Address = "::"
	case c.loopback():
		config.Address = "127.0.0.1"
	}
	return transport.Listen(config)
}

// loopback tells whether the server is on this host, where the clocks of both are one.
func (c Config) loopback() bool {
	u, err := url.Parse(c.URL)
	if err != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}

// namedByIPv6 tells whether the server's address is one of IPv6, and no name.
func (c Config) namedByIPv6() bool {
	u, err := url.Parse(c.URL)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(u.Hostname())
	return err == nil && ip.Unmap().Is6()
}

// signalling returns the configuration of the websocket.
func (c Config) signalling() signalling.Config {
	return signalling.Config{URL: c.URL, Token: c.Token, TLS: c.TLS, Times: c.times, Panicked: c.panicked}
}

// newPeer makes a peer connection.
func (c Config) newPeer(endpoint *transport.Endpoint, sink transport.Sink) (*transport.Peer, error) {
	peer, err := endpoint.NewPeer(sink)
	if err == nil && c.Feedback == FeedbackCCFB {
		peer.PreferReportsByStream()
	}
	return peer, err
}
