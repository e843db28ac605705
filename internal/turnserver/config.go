package turnserver

import (
	"fmt"
	"net"
	"strconv"
)

// Config is the configuration of the TURN server.
type Config struct {
	// Listen is empty by default: clients that reach the media port need no relay, and TLS needs no port of its own.
	Listen string `yaml:"listen" help:"address of TURN over UDP and TCP, usually :3478; empty disables them"`
	// TLS shares the listener of signalling. It works if server.listen has a certificate, and no proxy ends TLS.
	TLS bool `yaml:"tls" help:"TURN over TLS on the port of signalling, if server.listen has TLS"`
	// Host has no port for UDP and TCP, which use the port of Listen.
	Host string `yaml:"host" help:"HOST or HOST:PORT (TLS) in the URLs for clients; empty: certificate's name"`
	// Allocations: each takes one descriptor, and some 40 kB without packets. Packets take up to relayBuffer more.
	Allocations int `yaml:"allocations" help:"allocations at once, each one socket"`
	// AddressAllocations: a client has one allocation for each URL, and twice as many during an ICE restart. The
	// default has room for 42 clients behind one NAT.
	AddressAllocations int `yaml:"address_allocations" help:"allocations per address (IPv6: per /64)"`
}

// DefaultConfig returns the defaults.
func DefaultConfig() Config {
	return Config{TLS: true, Allocations: 2048, AddressAllocations: 256}
}

// Validate returns an error about the first invalid key. The error wraps ErrConfig.
func (c Config) Validate() error {
	if c.Listen != "" {
		if _, port, err := net.SplitHostPort(c.Listen); err != nil || port == "" {
			return fmt.Errorf("%w: listen %q: expected HOST:PORT, :PORT or nothing", ErrConfig, c.Listen)
		}
	}
	if _, port := c.hostAndPort(); port != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return fmt.Errorf("%w: host %q: expected HOST or HOST:PORT with a port of 1 to 65535", ErrConfig, c.Host)
		}
	}
	if c.Allocations < 1 || c.AddressAllocations < 1 {
		return fmt.Errorf("%w: allocations %d, address_allocations %d: expected 1 or more",
			ErrConfig, c.Allocations, c.AddressAllocations)
	}
	return nil
}

// hostAndPort returns the parts of Host. The port is empty if Host has none.
func (c Config) hostAndPort() (host, port string) {
	if host, port, err := net.SplitHostPort(c.Host); err == nil {
		return host, port
	}
	return c.Host, ""
}
