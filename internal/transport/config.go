package transport

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/volsfu/volsfu/internal/panics"
	"github.com/volsfu/volsfu/internal/transport/hostnet"
	"github.com/volsfu/volsfu/internal/transport/icetcp"
	"github.com/volsfu/volsfu/internal/udp"
)

// ErrConfig is wrapped with the invalid key and the expected values.
var ErrConfig = errors.New("invalid media configuration")

// ErrInterface is wrapped with the reason why a network interface of Config.Interfaces cannot be used.
var ErrInterface = hostnet.ErrInterface

// Config is the configuration of an endpoint.
type Config struct {
	Address string `yaml:"address" flag:"media-address" help:"address of media; 0.0.0.0: all of IPv4, :: all"`
	Port    int    `yaml:"port" flag:"media-port" help:"UDP port of media, TCP port of ICE-TCP; 0: the system chooses"`

	PublicIPs   []string `yaml:"public_ips" flag:"public-ip" help:"public addresses of a host behind a NAT"`
	STUNServers []string `yaml:"stun_servers" help:"STUN servers (stun:host:port) that report the public address"`
	TCP         bool     `yaml:"tcp" help:"accept ICE-TCP on the number of the media port"`

	// TCPConnections: each connection takes one descriptor. Unproven connections have not named a known peer. The
	// oldest of them makes room for a new connection. The default is a sixteenth of the descriptors that the systemd
	// unit permits. TCP serves the clients that cannot use UDP.
	TCPConnections int `yaml:"tcp_connections" help:"ICE-TCP connections at once; unproven ones make room"`
	// TCPAddressConnections: a client has one connection for each pair of a client address and a server address, and
	// twice as many during an ICE restart. The default has room for 64 clients behind one NAT. Connections from this
	// host are not limited.
	TCPAddressConnections int `yaml:"tcp_address_connections" help:"ICE-TCP connections per address (IPv6: per /64)"`
	// TCPLatency is the age at which packets queued for ICE-TCP are dropped; 0: never. With a long round trip,
	// receivers wait for 250 ms for missing packets of a frame.
	TCPLatency time.Duration `yaml:"-"`

	// Sockets: the kernel distributes remote addresses over the sockets, so that receiving is not bound to one core.
	Sockets int `yaml:"sockets" help:"UDP sockets on the media port, each with a reader; 0 is one per core"`

	Segmentation bool `yaml:"segmentation" help:"send runs of packets in one call (UDP_SEGMENT, sendmmsg)"`
	Coalescing   bool `yaml:"coalescing" help:"receive runs of packets in one call (UDP_GRO, recvmmsg)"`

	// ReceiveBuffer: a frame of 2 MB sent at once is a burst of 1,750 packets. Each takes about 2,300 bytes in the
	// kernel, 4 MB in all.
	ReceiveBuffer int `yaml:"receive_buffer" help:"bytes of a receive buffer; at most net.core.rmem_max unless forced"`
	SendBuffer    int `yaml:"send_buffer" help:"bytes of a send buffer; at most net.core.wmem_max unless forced"`
	// ReplayWindow is SRTP's replay window in packets (RFC 3711 section 3.3.2). Late retransmissions must be inside the
	// window.
	ReplayWindow int `yaml:"-"`

	// DisconnectedTimeout is the silence until a connection is disconnected: two checks of an idle connection have no
	// answer. FailedTimeout is the time from disconnected to failed.
	DisconnectedTimeout, FailedTimeout time.Duration `yaml:"-"`
	// KeepAlive is the interval of connectivity checks on an idle connection. NATs need one every 15 s (RFC 8445
	// section 11); shorter intervals notice outages sooner.
	KeepAlive time.Duration `yaml:"-"`

	// PrivateCandidates: if the server's firewall drops unexpected packets, checks from the server connect clients on
	// its own networks sooner.
	PrivateCandidates bool `yaml:"private_candidates" help:"send checks to private addresses in clients' candidates"`

	// Interfaces are the names of the network interfaces through which a client reaches the server, each with a port of
	// its own. The first is preferred. The address of each port is an address of its interface, of the family of
	// Address. Without names, one port has all interfaces.
	Interfaces []string `yaml:"-"`

	// Initiates is set for clients. A client is the first to send, to the server that its user chose. A full send
	// buffer delays only the client's own uplink, so sending waits for room without limit.
	Initiates bool `yaml:"-"`

	// Guard confines panics. A panic in a goroutine that serves one peer ends that peer. A panic in a goroutine of a
	// client's endpoint ends that endpoint. Without a Guard, a panic ends the program.
	Guard *panics.Guard `yaml:"-"`
}

// sendPatience is the time for which sending waits for room in a send buffer before packets are dropped. In this time a
// local queue drains 5 ms × 1 Gbit/s = 625 kB, more than a send buffer of the kernel's default size (425,984 bytes).
const sendPatience = 5 * time.Millisecond

// patience returns the longest wait of one system call for room in the send buffer. 0 is no limit.
func (c Config) patience() time.Duration {
	if c.Initiates {
		return 0
	}
	return sendPatience
}

// sockets returns the configuration of a port's sockets.
func (c Config) sockets(address netip.AddrPort, count int) udp.Config {
	return udp.Config{
		Address: address, Sockets: count, ReceiveBuffer: c.ReceiveBuffer, SendBuffer: c.SendBuffer,
		Patience: c.patience(), PlainSending: !c.Segmentation, PlainReceiving: !c.Coalescing,
	}
}

// PanicPlaces are the places that this package reports to Config.Guard.
var PanicPlaces = []string{placeICE, placeMedia, placeHandshake, placeChannel, placeTCP}

const (
	// placeICE is a callback of a peer's ICE agent.
	placeICE = "ice"
	// placeMedia is the goroutine that reads a peer's packets from ICE. In a client's endpoint, the goroutines of the
	// sockets have the same place.
	placeMedia = "media"
	// placeHandshake is the goroutine of a peer that performs the DTLS handshake and then accepts data channels. The
	// check of the remote peer's certificate has the same place.
	placeHandshake = "handshake"
	// placeChannel is a goroutine that reads a data channel, or a callback in SCTP's reading goroutine.
	placeChannel = "channel"
	// placeTCP is a goroutine that reads from an ICE-TCP connection or writes to one.
	placeTCP = icetcp.PanicPlace
)

// Confine confines panics to the endpoint of one client. report receives the value and the stack of each panic, at most
// one per second for each place. report must not wait for the goroutine that panicked.
func (c *Config) Confine(report func(value any, stack []byte)) {
	c.Guard = panics.NewGuard(func(r panics.Report) { report(r.Value, r.Stack) }, PanicPlaces...)
}

// maxSockets bounds Sockets. No host has so many cores busy with receiving.
const maxSockets = 256

// DefaultConfig returns the configuration of a server.
func DefaultConfig() Config {
	return Config{
		Address:               "0.0.0.0",
		Port:                  7882,
		TCP:                   true,
		TCPConnections:        4096,
		TCPAddressConnections: 256,
		TCPLatency:            250 * time.Millisecond,
		Segmentation:          true,
		Coalescing:            true,
		ReceiveBuffer:         8 << 20,
		SendBuffer:            8 << 20,
		// One second at 8,000 packets/s (80 Mbit/s in one stream). Pion's default of 64 packets rejects every late
		// retransmission at such rates.
		ReplayWindow:        8192,
		DisconnectedTimeout: 5 * time.Second,
		FailedTimeout:       15 * time.Second,
		KeepAlive:           2 * time.Second,
		PrivateCandidates:   true,
	}
}

// ClientConfig returns the configuration of a client: one socket on a port that the system chooses, and no ICE-TCP
// listener.
func ClientConfig() Config {
	c := DefaultConfig()
	c.Port = 0
	c.TCP = false
	c.Sockets = 1
	c.Initiates = true
	return c
}

// Validate returns an error about the first invalid key. The error wraps ErrConfig.
func (c Config) Validate() error {
	if _, err := netip.ParseAddr(c.Address); err != nil {
		return fmt.Errorf("%w: address %q: expected an IP address", ErrConfig, c.Address)
	}
	for _, ip := range c.PublicIPs {
		if _, err := netip.ParseAddr(ip); err != nil {
			return fmt.Errorf("%w: public_ips %q: expected an IP address", ErrConfig, ip)
		}
	}
	for _, url := range c.STUNServers {
		if !strings.HasPrefix(url, "stun:") {
			return fmt.Errorf("%w: stun_servers %q: expected stun:host:port", ErrConfig, url)
		}
	}
	if len(c.Interfaces) > MaxPaths {
		return fmt.Errorf("%w: %d names, expected at most %d", ErrInterface, len(c.Interfaces), MaxPaths)
	}
	for i, name := range c.Interfaces {
		if slices.Contains(c.Interfaces[:i], name) {
			return fmt.Errorf("%w: %q is named twice", ErrInterface, name)
		}
	}
	switch {
	case c.Port < 0 || c.Port > 65535:
		return fmt.Errorf("%w: port %d: expected 0 to 65535", ErrConfig, c.Port)
	case c.TCPConnections < 1 || c.TCPAddressConnections < 1:
		return fmt.Errorf("%w: tcp_connections %d, tcp_address_connections %d: expected 1 or more",
			ErrConfig, c.TCPConnections, c.TCPAddressConnections)
	case c.TCPLatency < 0:
		return fmt.Errorf("%w: tcp_latency %v: expected 0 or more", ErrConfig, c.TCPLatency)
	case c.Sockets < 0 || c.Sockets > maxSockets:
		return fmt.Errorf("%w: sockets %d: expected 0 to %d", ErrConfig, c.Sockets, maxSockets)
	case c.ReceiveBuffer < 0 || c.SendBuffer < 0:
		return fmt.Errorf("%w: receive_buffer %d, send_buffer %d: expected bytes of 0 or more",
			ErrConfig, c.ReceiveBuffer, c.SendBuffer)
	case c.ReplayWindow < 64 || c.ReplayWindow > 32768:
		return fmt.Errorf("%w: replay_window %d: expected 64 to 32768 packets", ErrConfig, c.ReplayWindow)
	case c.DisconnectedTimeout <= 0 || c.FailedTimeout <= 0 || c.KeepAlive <= 0:
		return fmt.Errorf("%w: disconnected_timeout %v, failed_timeout %v, keep_alive %v: expected durations over 0",
			ErrConfig, c.DisconnectedTimeout, c.FailedTimeout, c.KeepAlive)
	}
	return nil
}
