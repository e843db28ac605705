package edge

import (
	"errors"
	"net/netip"
	"time"
)

// Limits of a configuration.
const (
	// maxRules is the number of rules that a flow number can name.
	maxRules = 16
	// maxName is the length of names in bytes. Names are parts of file names.
	maxName = 32
	// maxInterface is the length of an interface's name in bytes (IFNAMSIZ - 1).
	maxInterface = 15
	// maxInner is the number of inner prefixes that a receiver accepts.
	maxInner = 64

	defaultPort     = 4755
	defaultState    = "/run/volnet"
	defaultDeadline = 50 * time.Millisecond
	minDeadline     = time.Millisecond
	maxDeadline     = 10 * time.Second
	// minMTU4 and minMTU6 are the smallest MTU of a path (RFC 791: every host accepts 576 bytes; RFC 8200, section 5).
	minMTU4, minMTU6 = 576, 1280
	maxMTU           = 65535
)

// Formats of copies.
const (
	// FormatEncapsulated puts each copy into UDP between the addresses of its path.
	FormatEncapsulated = "encapsulated"
	// FormatStamped writes the number of a packet into its IPv4 ID and the path into its DSCP.
	FormatStamped = "stamped"
)

// ErrConfig is the error of a configuration that cannot be used.
var ErrConfig = errors.New("invalid configuration")

// Config is the configuration of an edge.
type Config struct {
	// Name and Peer are the names of this edge and of the other edge of the pair.
	Name, Peer string
	// KeyFile contains the key of the pair: 64 hexadecimal digits.
	KeyFile string
	// Port is the UDP port of data and control messages, on both edges.
	Port uint16
	// State is the folder of the lock, of the socket for commands and of the changed routes.
	State string
	// MetricsListen is the address of the metrics, or "".
	MetricsListen string
	// Controller is nil for an edge without a controller.
	Controller *Controller
	// Paths are the paths in the order of their indices: the first is the primary path.
	Paths []Path
	// Send is nil for an edge without a sender.
	Send *Send
	// Receive is nil for an edge without a receiver.
	Receive *Receive
}

// Controller is the controller of an edge.
type Controller struct {
	URL       string
	TokenFile string
}

// Path is a pair of outer addresses over one interface.
type Path struct {
	Name, Interface string
	Local, Remote   netip.Addr
	// MTU is the largest outer packet in bytes, or 0 for the MTU of the interface.
	MTU int
}

// Send is the configuration of a sender.
type Send struct {
	// Format is one of the formats.
	Format string
	Rules  []Rule
}

// Receive is the configuration of a receiver.
type Receive struct {
	// Format is the format of the other edge's sender.
	Format string
	// Inner are the prefixes of the source addresses that the other edge may send from.
	Inner []netip.Prefix
}

// Rule selects the packets that are copied.
type Rule struct {
	Name string
	// To is the prefix of the destination address.
	To netip.Prefix
	// Protocol is an IP protocol number, or 0 for all.
	Protocol uint8
	// Ports contain the source or the destination port of UDP or TCP. Both are 0 for all.
	Ports PortRange
	// DSCP is the differentiated services code point, or -1 for all.
	DSCP int
	// Mark is the mark of the packet (SO_MARK, nftables), or 0 for all.
	Mark uint32
	// Deadline is how much later than the fastest undisturbed packet of its flow a packet is still useful.
	Deadline time.Duration
	Copies   Copies
}

// PortRange is an inclusive range of ports.
type PortRange struct{ First, Last uint16 }

// pathIndex returns the index of the path with the name, or -1.
func (c *Config) pathIndex(name string) int {
	for i, p := range c.Paths {
		if p.Name == name {
			return i
		}
	}
	return -1
}
