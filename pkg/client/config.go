package client

import (
	"cmp"
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
	"github.com/volsfu/volsfu/internal/redundancy"
	"github.com/volsfu/volsfu/internal/transport"
	"github.com/volsfu/volsfu/pkg/client/internal/hostclock"
	"github.com/volsfu/volsfu/pkg/client/internal/lifetime"
	"github.com/volsfu/volsfu/pkg/client/internal/signalling"
	"github.com/volsfu/volsfu/pkg/e2ee"
	"github.com/volsfu/volsfu/pkg/frametimes"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Errors of the SDK. They are wrapped with the object of the operation. Refusals of the server are *signal.Error.
var (
	ErrConfig       = errors.New("invalid client configuration")
	ErrClosed       = errors.New("session is closed")
	ErrLost         = errors.New("session is lost")
	ErrNotPublished = errors.New("no such publication, tile or quality of this client")
	ErrNotConnected = signalling.ErrNotConnected
	// ErrInterface is wrapped with the reason why a network interface of Config.Interfaces cannot be used.
	ErrInterface = transport.ErrInterface
	// ErrInterrupted means that the websocket broke before the reply to a request. The server may have carried the
	// request out.
	ErrInterrupted = signalling.ErrInterrupted
	// ErrKey means that a frame was not sent because there is no key to encrypt it with.
	ErrKey = e2ee.ErrNoKey
	// ErrPanicked means that a goroutine of the session panicked, which is a defect of this package. It is wrapped with
	// the value. The session's log has the stack.
	ErrPanicked = lifetime.ErrPanicked
)

// Config describes a session. URL, Room and Identity are required, unless the token names the latter two.
type Config struct {
	// URL is the server's address, as ws://host:port or wss://host:port.
	URL string
	// Room and Identity name the conference and this participant in it.
	Room, Identity string
	// Token is the access token (JWT); servers in development mode need none.
	Token string
	// Publications are published on joining. More may follow by Session.Publish.
	Publications []volumetric.Publication
	// Receive asks for the publications of other participants.
	Receive bool
	// Deadline is how long after its first packet a frame is repaired. 0 is 150 ms, or 250 ms if the round trip exceeds
	// 50 ms.
	Deadline time.Duration
	// FrameBytes bounds one received frame; 0 is 16 MiB.
	FrameBytes int
	// Spread is the part of the frame interval over which a frame's packets are sent, 50 ms at most, and no longer than
	// the uplink takes for them by its estimate. 0 is 0.4.
	Spread float64
	// MaxUplink is the highest rate that is sent, in bit/s, and StartUplink the rate until the server has reported. 0
	// is 1 Gbit/s, and 2 Mbit/s, or MaxUplink if that is less or the server is on this host.
	MaxUplink, StartUplink volumetric.Bitrate
	// MinUplink is a rate that the uplink is known to carry, in bit/s. The estimate does not fall below it. 0 is 500
	// kbit/s, or StartUplink if that is less.
	MinUplink volumetric.Bitrate
	// QueueBudget is how long a frame may wait for the uplink before the whole frame is dropped. Audio is never
	// dropped. 0 is one frame interval, 100 ms at most, and half a second for codecs whose frames depend on each other.
	QueueBudget time.Duration
	// Feedback is the form of the reports of arrivals in both directions, from which each side estimates the link to
	// the other. Empty is FeedbackCCFB.
	Feedback Feedback
	// Controller is the congestion control of the uplink. Empty is ControllerAuto.
	Controller Controller
	// FrameTimes measures the delays of each frame from capture to display, with the help of publishers and the server.
	// See Session.FrameTimes.
	FrameTimes bool
	// ClockSource is the source of this host's time. Empty is frametimes.SourceEstimated, or frametimes.SourceSystem if
	// the server is on this host. With any other source, the offset is still estimated as a check while frame times are
	// measured.
	ClockSource frametimes.Source
	// ClockShift is added to this host's clock in everything that is sent and in records, for trials with clocks that
	// disagree.
	ClockShift time.Duration
	// MaxBitrate is the highest rate that the server sends to this client, in bit/s. 0 is no limit. Session.SetLimits
	// changes it.
	MaxBitrate volumetric.Bitrate
	// StartBitrate is the rate with which the server begins on each connection, in bit/s, within the server's own
	// limits. 0 is the server's start rate.
	StartBitrate volumetric.Bitrate
	// MessageChannel requests copies of data messages over a data channel, which arrive sooner than over the websocket
	// if packets are lost, and lossy messages that no lost packet delays.
	MessageChannel bool
	// Log receives the messages of the session. nil discards them.
	Log *slog.Logger
	// PacketConn replaces the UDP socket, for emulated networks. The session closes it.
	PacketConn net.PacketConn
	// TCP sends and receives media over TCP, to the same port number of the server (ICE-TCP), for networks that block
	// UDP. A lost packet then delays all packets behind it.
	TCP bool
	// Interfaces are the names of the network interfaces through which media is sent and received, such as wlan0 and
	// wwan0, at most two. The first is preferred. The second takes over if the first fails, and carries copies of
	// packets (Redundancy). Without names, the system chooses the interface. The websocket and TURN servers use the
	// system's routes in either case.
	Interfaces []string
	// Redundancy selects the packets that are sent on two interfaces, in both directions. Empty is
	// signal.RedundancyAuto.
	Redundancy signal.Redundancy
	// Keys encrypts everything that is published from this client to the receivers (docs/encryption.md), and decrypts
	// publications of others. Publications that are not encrypted are then refused. The program sets the secrets,
	// before or during the session. nil encrypts nothing, and encrypted publications of others are refused. If Keys is
	// nil, publications may have an Encryption: their frames are sent as the program passes them.
	Keys *e2ee.Keys
	// Passphrase is an alternative to the first secret in Keys: the secret of epoch 0 is derived from the passphrase
	// and the name of the room. Empty is none.
	Passphrase string
	// TLS is used for wss and for TURN over TLS. nil uses the system's certificates.
	TLS *tls.Config

	// plan is the meaning of Spread.
	plan pacing.Plan
	// times are those of the websocket.
	times signalling.Times
	// panicked receives panics in goroutines of the websocket and of the socket, and returns the error that the session
	// ends with. If it is nil, the panics go on.
	panicked func(value any, stack []byte) error
}

// MaxInterfaces is the maximum number of Config.Interfaces.
const MaxInterfaces = redundancy.Paths

// Feedback is a form of reports of arrivals.
type Feedback string

// The forms of feedback.
const (
	// FeedbackTransportCC is transport-wide feedback (draft-holmer-rmcat-transport-wide-cc-extensions-01): by a number
	// that packets carry, exact to 250 µs.
	FeedbackTransportCC Feedback = "transport-cc"
	// FeedbackCCFB is congestion control feedback (RFC 8888), by SSRC and sequence number, exact to 1/1024 s, with ECN
	// marks. Both sides report in this form, each if the server offers it. Otherwise they use transport-wide feedback.
	FeedbackCCFB Feedback = "ccfb"
)

// Controller is a congestion control. The values are those of the server's key forward.congestion.controller.
type Controller string

// The controllers. ControllerAuto and ControllerPaper000 need the server's reports in the form FeedbackCCFB. Without
// such reports the uplink has GCC.
const (
	// ControllerAuto is L4S (RFC 9330): packets leave as ECT(1), and the rate follows the marks of queues. Until the
	// first mark, and on paths that do not carry the ECN field, the rate is that of ControllerGCC.
	ControllerAuto Controller = congestion.ControllerAuto
	// ControllerGCC is Google Congestion Control, with packets as Not-ECT.
	ControllerGCC Controller = congestion.ControllerGCC
	// ControllerPaper000 is the controller of De Fré et al., "Low-Latency Volumetric Video Conferencing in Congested
	// Networks Through L4S", for comparison.
	ControllerPaper000 Controller = congestion.ControllerPaper000
)

// passphraseEpoch is the epoch of the secret from Config.Passphrase.
const passphraseEpoch e2ee.Epoch = 0

// defaultSpread: a frame is through long before the next, and its packets do not hit the first queue as one burst.
const defaultSpread = 0.4

// withDefaults fills in the defaults, and returns an error about the first field that is wrong.
func (c Config) withDefaults() (Config, error) {
	u, err := url.Parse(c.URL)
	if err != nil || u.Host == "" || u.Scheme != "ws" && u.Scheme != "wss" {
		return c, fmt.Errorf("%w: URL %q: expected ws://host:port or wss://host:port", ErrConfig, c.URL)
	}
	if c.Deadline < 0 || c.FrameBytes < 0 || c.Spread < 0 || c.Spread > 1 {
		return c, fmt.Errorf("%w: deadline %v, frame bytes %d, spread %g: expected 0 or more, and a spread up to 1",
			ErrConfig, c.Deadline, c.FrameBytes, c.Spread)
	}
	switch c.Feedback {
	case "", FeedbackTransportCC, FeedbackCCFB:
	default:
		return c, fmt.Errorf("%w: feedback %q: expected %q or %q",
			ErrConfig, c.Feedback, FeedbackTransportCC, FeedbackCCFB)
	}
	if c.ClockSource != "" && !c.ClockSource.Valid() {
		return c, fmt.Errorf("%w: clock source %q: expected %q, %q or %q",
			ErrConfig, c.ClockSource, frametimes.SourceEstimated, frametimes.SourceSystem, frametimes.SourcePTP)
	}
	if c.TCP && c.PacketConn != nil {
		return c, fmt.Errorf("%w: TCP and PacketConn: expected at most one of them", ErrConfig)
	}
	if len(c.Interfaces) > 0 && (c.TCP || c.PacketConn != nil) {
		return c, fmt.Errorf("%w: interfaces %q: expected neither TCP nor PacketConn", ErrConfig, c.Interfaces)
	}
	if len(c.Interfaces) > MaxInterfaces {
		return c, fmt.Errorf("%w: interfaces %q: expected at most %d, got %d", ErrConfig, c.Interfaces,
			MaxInterfaces, len(c.Interfaces))
	}
	switch c.Redundancy {
	case "", signal.RedundancyAuto, signal.RedundancyOff:
	case signal.RedundancyAll:
		if len(c.Interfaces) < redundancy.Paths {
			return c, fmt.Errorf("%w: redundancy %q: expected two interfaces, got %d",
				ErrConfig, c.Redundancy, len(c.Interfaces))
		}
	default:
		return c, fmt.Errorf("%w: redundancy %q: expected %q, %q or %q", ErrConfig, c.Redundancy,
			signal.RedundancyAuto, signal.RedundancyOff, signal.RedundancyAll)
	}
	if c.MaxUplink < 0 || c.StartUplink < 0 || c.MinUplink < 0 || c.MaxBitrate < 0 || c.QueueBudget < 0 {
		return c, fmt.Errorf("%w: uplink from %d to %d, at least %d, bitrate %d, queue budget %v: expected 0 or more",
			ErrConfig, c.StartUplink, c.MaxUplink, c.MinUplink, c.MaxBitrate, c.QueueBudget)
	}
	if c.StartBitrate < 0 || c.MaxBitrate > 0 && c.StartBitrate > c.MaxBitrate {
		return c, fmt.Errorf(
			"%w: start bitrate %d: expected 0 or more, and at most the bitrate of %d, if that is not 0",
			ErrConfig, c.StartBitrate, c.MaxBitrate)
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
	return c.withKeys()
}

// congestion returns the configuration of the uplink's estimate. Limits below the default minimum lower the minimum,
// too.
func (c Config) congestion() congestion.Config {
	config := congestion.DefaultConfig()
	config.Controller = string(cmp.Or(c.Controller, ControllerAuto))
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

// withKeys fills in the keys, and marks the publications of the configuration as encrypted.
func (c Config) withKeys() (Config, error) {
	if c.Passphrase != "" && c.Keys == nil {
		c.Keys = new(e2ee.Keys)
	}
	marked := make([]volumetric.Publication, len(c.Publications))
	for i, publication := range c.Publications {
		var err error
		if marked[i], err = c.mark(publication); err != nil {
			return c, err
		}
	}
	c.Publications = marked
	return c, nil
}

// mark marks a publication as encrypted if the session has keys. The error wraps ErrConfig.
func (c Config) mark(p volumetric.Publication) (volumetric.Publication, error) {
	if c.Keys == nil {
		return p, nil
	}
	if p.Encryption != "" && p.Encryption != e2ee.Scheme {
		return p, fmt.Errorf("%w: publication %q has the encryption %q, expected none or %q in a session with keys",
			ErrConfig, p.Name, p.Encryption, e2ee.Scheme)
	}
	p.Encryption = e2ee.Scheme
	if err := p.Validate(); err != nil {
		return p, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	return p, nil
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

// limits returns the limits of the downlink for the server. The start rate is within the other two.
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

// endpoint opens the session's media socket. A server on this host is reached over loopback, so no other addresses are
// offered. A server that is named by an address of IPv6 may have no other, so the socket then takes both families.
func (c Config) endpoint() (*transport.Endpoint, error) {
	config := transport.ClientConfig()
	config.TLS = c.TLS
	if c.panicked != nil {
		config.Confine(func(value any, stack []byte) { _ = c.panicked(value, stack) })
	}
	if c.PacketConn != nil {
		return transport.Attach(config, c.PacketConn)
	}
	if c.TCP {
		return transport.Dial(config)
	}
	config.Interfaces = c.Interfaces
	switch {
	case c.namedByIPv6():
		config.Address = "::"
	case c.loopback():
		config.Address = "127.0.0.1"
	}
	return transport.Listen(config)
}

// loopback reports whether the server is on this host, so that both have one clock.
func (c Config) loopback() bool {
	u, err := url.Parse(c.URL)
	if err != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}

// namedByIPv6 reports whether the server's address is an address of IPv6, and not a name.
func (c Config) namedByIPv6() bool {
	u, err := url.Parse(c.URL)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(u.Hostname())
	return err == nil && ip.Unmap().Is6()
}

// signalling returns the configuration of a websocket to a server.
func (c Config) signalling(address string) signalling.Config {
	return signalling.Config{URL: address, Token: c.Token, TLS: c.TLS, Times: c.times, Panicked: c.panicked}
}

// multipath returns the request for media on two interfaces, nil if there are not two.
func (c Config) multipath() *signal.Multipath {
	if len(c.Interfaces) < redundancy.Paths {
		return nil
	}
	return &signal.Multipath{Redundancy: c.Redundancy}
}

// redundancyMode returns the mode of copies on a second interface. The configuration must be valid.
func (c Config) redundancyMode() redundancy.Mode {
	mode, err := redundancy.ParseMode(string(c.Redundancy))
	if err != nil {
		panic("the configuration must be validated before use: " + err.Error())
	}
	return mode
}
