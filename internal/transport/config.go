package transport

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/volsfu/volsfu/internal/panics"
	"github.com/volsfu/volsfu/internal/transport/icetcp"
)

// ErrConfig is wrapped with the key that is wrong and what was expected.
var ErrConfig = errors.New("invalid media configuration")

// Config tunes an endpoint.
type Config struct {
	Address     string   `yaml:"address" flag:"media-address" help:"IP address that media is received on; 0.0.0.0 is every IPv4 address, :: every one of IPv6 and IPv4"`
	Port        int      `yaml:"port" flag:"media-port" help:"UDP port of all media, and TCP port of ICE-TCP; 0 lets the system choose"`
	PublicIPs   []string `yaml:"public_ips" flag:"public-ip" help:"IP addresses that clients reach this host at, where they are not its own"`
	STUNServers []string `yaml:"stun_servers" help:"STUN servers, as stun:host:port, by which the server learns its public address"`
	TCP         bool     `yaml:"tcp" help:"accept ICE-TCP on the media port's number"`
	// TCPConnections: each has a descriptor; a sixteenth of those that the unit of systemd allows. TCP is for the
	// clients that UDP does not reach.
	TCPConnections int `yaml:"tcp_connections" help:"ICE-TCP connections at once; those that are for no participant make room for others"`
	// TCPAddressConnections: a client has one from each of its own addresses to each of the server's, and those twice
	// while ICE begins anew. 64 clients behind one NAT have room.
	TCPAddressConnections int `yaml:"tcp_address_connections" help:"ICE-TCP connections at once from one address (of IPv6, from one prefix of 64 bits), of this host any number"`
	// TCPLatency: receivers wait for 250 ms for what is missing of a frame, where the round trip is long.
	TCPLatency time.Duration `yaml:"tcp_latency" help:"how long packets may wait for an ICE-TCP connection that takes no more before they are dropped; 0 is any time"`
	// Sockets: the kernel spreads remote addresses over them, so that no core has to receive everything.
	Sockets      int  `yaml:"sockets" help:"UDP sockets that share the media port, each with a reader of its own; 0 is one per core"`
	Segmentation bool `yaml:"segmentation" help:"send runs of packets in one system call (UDP_SEGMENT, sendmmsg), where the system can"`
	Coalescing   bool `yaml:"coalescing" help:"receive runs of packets in one system call (UDP_GRO, recvmmsg), where the system can"`
	// ReceiveBuffer: a frame of 2 MB at once is a burst of 1,750 packets, which cost the kernel about 2,300 bytes each,
	// 4 MB in all.
	ReceiveBuffer int `yaml:"receive_buffer" help:"bytes of each media socket's receive buffer; the kernel caps it at net.core.rmem_max unless it may be forced"`
	SendBuffer    int `yaml:"send_buffer" help:"bytes of each media socket's send buffer; the kernel caps it at net.core.wmem_max unless it may be forced"`
	// ReplayWindow is SRTP's replay window in packets (RFC 3711 section 3.3.2). Late retransmissions must fall inside.
	ReplayWindow        int           `yaml:"-"`
	DisconnectedTimeout time.Duration `yaml:"disconnected_timeout" help:"silence after which a connection counts as disconnected"`
	FailedTimeout       time.Duration `yaml:"failed_timeout" help:"time after disconnection after which a connection counts as failed"`
	KeepAlive           time.Duration `yaml:"keep_alive" help:"interval of connectivity checks while nothing else is sent"`
	// PrivateCandidates: clients on the server's own networks are reached sooner if the server's firewall lets no
	// unexpected packets in.
	PrivateCandidates bool `yaml:"private_candidates" help:"check private addresses that clients name before anything has come from there"`

	// Initiates is set for clients. They send to the server of their user's choice before it sends to them, and the
	// pace of their own uplink is all that their send buffer waits for.
	Initiates bool `yaml:"-"`
	// Guard confines panics of goroutines that serve one peer to that peer, and those of a client's endpoint to that
	// endpoint. Without one they end the program.
	Guard *panics.Guard `yaml:"-"`
}

// sendPatience is how long media waits for room in a send buffer before packets are dropped. A local queue drains
// 5 ms × 1 Gbit/s = 625 kB meanwhile, more than a buffer of the kernel's default size (425,984 bytes) holds.
const sendPatience = 5 * time.Millisecond

// patience is how long one system call may wait for room in the send buffer, 0 is as long as it takes.
func (c Config) patience() time.Duration {
	if c.Initiates {
		return 0
	}
	return sendPatience
}

// PanicPlaces are the places that this package names to Config.Guard.
var PanicPlaces = []string{placeICE, placeMedia, placeHandshake, placeChannel, placeTCP}

const (
	// placeICE is what goroutines of a peer's ICE agent call.
	placeICE = "ice"
	// placeMedia is the goroutine that reads what a peer is sent through ICE. For a client it is what reads the socket,
	// too.
	placeMedia = "media"
	// placeHandshake is the goroutine of a peer that shakes hands and then accepts its data channels, and the check of
	// the remote peer's certificate.
	placeHandshake = "handshake"
	// placeChannel is the goroutine that reads a data channel, and what SCTP's reading goroutine calls.
	placeChannel = "channel"
	// placeTCP is what reads from an ICE-TCP connection, and writes to it.
	placeTCP = icetcp.PanicPlace
)

// Confine confines panics to the endpoint of one client. Report takes the values and the stacks of panics, but one per
// second at most of each kind of goroutine; it must not wait for the goroutine that panicked.
func (c *Config) Confine(report func(value any, stack []byte)) {
	c.Guard = panics.NewGuard(func(r panics.Report) { report(r.Value, r.Stack) }, PanicPlaces...)
}

// maxSockets is above the number of cores that can be kept busy with receiving.
const maxSockets = 256

// DefaultConfig is the configuration of a server.
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
		// One second of 8,000 packets/s (80 Mbit/s on one stream); Pion's default of 64 rejects every late
		// retransmission at such rates.
		ReplayWindow:        8192,
		DisconnectedTimeout: 5 * time.Second,
		FailedTimeout:       15 * time.Second,
		KeepAlive:           2 * time.Second,
		PrivateCandidates:   true,
	}
}

// ClientConfig is the configuration of a client: a port of its own, no ICE-TCP listener.
func ClientConfig() Config {
	c := DefaultConfig()
	c.Port = 0
	c.TCP = false
	c.Sockets = 1
	c.Initiates = true
	return c
}

// Validate reports the first key that is wrong.
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
	switch {
	case c.Port < 0 || c.Port > 65535:
		return fmt.Errorf("%w: port %d: expected 0 to 65535", ErrConfig, c.Port)
	case c.TCPConnections < 1 || c.TCPAddressConnections < 1:
		return fmt.Errorf("%w: tcp_connections %d, tcp_address_connections %d: expected 1 or more", ErrConfig, c.TCPConnections, c.TCPAddressConnections)
	case c.TCPLatency < 0:
		return fmt.Errorf("%w: tcp_latency %v: expected 0 or more", ErrConfig, c.TCPLatency)
	case c.Sockets < 0 || c.Sockets > maxSockets:
		return fmt.Errorf("%w: sockets %d: expected 0 to %d", ErrConfig, c.Sockets, maxSockets)
	case c.ReceiveBuffer < 0 || c.SendBuffer < 0:
		return fmt.Errorf("%w: receive_buffer %d, send_buffer %d: expected bytes of 0 or more", ErrConfig, c.ReceiveBuffer, c.SendBuffer)
	case c.ReplayWindow < 64 || c.ReplayWindow > 32768:
		return fmt.Errorf("%w: replay_window %d: expected 64 to 32768 packets", ErrConfig, c.ReplayWindow)
	case c.DisconnectedTimeout <= 0 || c.FailedTimeout <= 0 || c.KeepAlive <= 0:
		return fmt.Errorf("%w: disconnected_timeout, failed_timeout and keep_alive: expected durations over 0", ErrConfig)
	}
	return nil
}
