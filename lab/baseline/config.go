package baseline

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/volsfu/volsfu/internal/congestion/pacing"
	"github.com/volsfu/volsfu/internal/sfu/demand"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Transport is a way to carry frames.
type Transport string

// The transports.
const (
	// DirectTCP has a connection for each stream, from the peer that watches to the one that publishes.
	DirectTCP Transport = "direct-tcp"
	// TCPSwitching is DirectTCP with qualities that are switched as VR2Gather does it: by closing a tile's connection and opening another.
	TCPSwitching Transport = "tcp-switching"
	// Reflector is VR2Gather's TCP reflector: a server passes on to everybody else what a connection brings.
	Reflector Transport = "reflector"
	// Websocket is a relay with the framing of engine.io, as VR2Gather's SocketIO.
	Websocket Transport = "websocket"
	// DASH is segments over HTTP with chunked transfer, as low-latency DASH.
	DASH Transport = "dash"
	// UDPChunks is the protocol of paper 002.
	UDPChunks Transport = "udp-chunks"
	// Pion is a peer connection with Pion's own congestion control and repair, as papers 000 and 001 had it.
	Pion Transport = "pion"
	// PionPatched is Pion with two defects of its congestion control corrected (package rtc/gcc).
	PionPatched Transport = "pion-patched"
	// Volsfu is this project.
	Volsfu Transport = "volsfu"
)

// What a report says of figures of Pion and PionPatched.
const (
	PionDefect = "pion: known defect: its congestion control remembers the last 250 packets only, 50 ms at 50 Mbit/s, and does not count " +
		"later acknowledgements; and its groups of arrivals may never end on a saturated link, so that the estimate stays as it is. " +
		"pion-patched has both corrected."
	PionPatch = "pion-patched: Pion's congestion control with a history of 16,384 packets instead of 250, and groups of arrivals that end after 100 ms."
)

// Transports are all of them.
var Transports = []Transport{DirectTCP, TCPSwitching, Reflector, Websocket, DASH, UDPChunks, Pion, PionPatched, Volsfu}

// Role is what a process does in a transport.
type Role string

// The roles.
const (
	RoleServer  Role = "server"
	RolePublish Role = "publish"
	RoleWatch   Role = "watch"
	RoleBoth    Role = "both"
)

// Publishes tells whether the role publishes, Watches whether it watches.
func (r Role) Publishes() bool { return r == RolePublish || r == RoleBoth }

// Watches tells whether the role watches.
func (r Role) Watches() bool { return r == RoleWatch || r == RoleBoth }

// ErrConfig is wrapped with what is wrong.
var ErrConfig = errors.New("invalid peer")

// Config says how an end is opened.
type Config struct {
	Transport Transport
	Role      Role
	// Name is this peer's among all that the server knows, Watched that of the peer that is watched.
	Name, Watched string
	// Listen and Connect are addresses host:port: where this end is met, and where it meets the other. Which of them are needed depends on transport
	// and role, see Needs.
	Listen, Connect string
	// Congestion names TCP's congestion control, such as cubic; empty is the system's.
	Congestion string
	// Publication describes what this peer publishes.
	Publication volumetric.Publication
	// Tiles is how many tiles what is watched has, and Quality at which they are watched at first.
	Tiles   int
	Quality volumetric.Quality
	// Gap is the time between two packets of UDPChunks.
	Gap time.Duration
	// Segment is the length of DASH's segments; 0 is one frame.
	Segment time.Duration
	// Min and Max bound Pion's estimate, which begins with Min. Adapt has an estimate choose qualities: at the publisher with Pion, in the server for
	// a watcher of volsfu's.
	Min, Max volumetric.Bitrate
	Adapt    bool
	// Suppression is what volsfu's server asks publishers for.
	Suppression demand.Policy
	// Secret signs the tokens that volsfu's server takes: 32 bytes or more, the same for all peers and the server.
	Secret string
	// Spread is the part of the frame interval over which a publisher of volsfu's sends a frame, 0 for the SDK's own, Uplink what it takes for
	// granted of its way to the server until that has reported, 0 for the SDK's own; Pacing is how the server spreads frames.
	Spread float64
	Uplink volumetric.Bitrate
	Pacing pacing.Mode
	// QueueFrames bounds the queue of each receiver in the servers of Reflector and Websocket.
	QueueFrames int
}

// DefaultConfig has the values of the papers.
func DefaultConfig() Config {
	return Config{
		Role:        RolePublish,
		Name:        "peer",
		Watched:     "peer",
		Tiles:       1,
		Gap:         time.Microsecond,
		Min:         12_500_000,
		Max:         90_000_000,
		Suppression: demand.Neighbours,
		Pacing:      pacing.Default,
		Secret:      "the laboratory's own, known to everybody",
		QueueFrames: 10,
	}
}

// Served tells whether frames of the transport pass a server.
func (t Transport) Served() bool {
	return slices.Contains([]Transport{Reflector, Websocket, DASH, Volsfu}, t)
}

// peerConnection reports whether the transport is a peer connection of Pion's.
func (t Transport) peerConnection() bool { return t == Pion || t == PionPatched }

// Needs tells which addresses an end takes. Peers meet at the server where there is one. Else the one that publishes listens, but for UDPChunks,
// whose producer is told where the consumer is.
func (c *Config) Needs() (listen, connect bool) {
	switch {
	case c.Transport.Served():
		return c.Role == RoleServer, c.Role != RoleServer
	case c.Transport == UDPChunks:
		return c.Role.Watches(), c.Role.Publishes()
	default:
		return c.Role.Publishes(), c.Role.Watches()
	}
}

// Validate reports the first thing that is wrong.
func (c *Config) Validate() error {
	listen, connect := c.Needs()
	switch {
	case !slices.Contains(Transports, c.Transport):
		return fmt.Errorf("%w: transport %.32q, expected one of %s", ErrConfig, c.Transport, Names())
	case !slices.Contains([]Role{RoleServer, RolePublish, RoleWatch, RoleBoth}, c.Role):
		return fmt.Errorf("%w: role %.32q, expected server, publish, watch or both", ErrConfig, c.Role)
	case c.Role == RoleServer && !c.Transport.Served():
		return fmt.Errorf("%w: %s has no server", ErrConfig, c.Transport)
	case c.Role == RoleBoth && c.Transport.peerConnection():
		return fmt.Errorf("%w: pion goes one way, expected role publish or watch", ErrConfig)
	case listen != (c.Listen != ""):
		return fmt.Errorf("%w: %s of %s: where to listen is %q, expected %s", ErrConfig, c.Role, c.Transport, c.Listen, addressOrNone(listen))
	case connect != (c.Connect != ""):
		return fmt.Errorf("%w: %s of %s: where to connect is %q, expected %s", ErrConfig, c.Role, c.Transport, c.Connect, addressOrNone(connect))
	case c.Tiles < 1 || c.Tiles > volumetric.MaxTiles:
		return fmt.Errorf("%w: %d tiles are watched, expected 1 to %d", ErrConfig, c.Tiles, volumetric.MaxTiles)
	case c.Quality < volumetric.QualityOff || c.Quality >= volumetric.MaxQualities:
		return fmt.Errorf("%w: quality %d, expected -1 to %d", ErrConfig, c.Quality, volumetric.MaxQualities-1)
	case c.Transport == UDPChunks && (c.Tiles > 1 || c.Role.Publishes() && c.Publication.TrackCount() > 1):
		return fmt.Errorf("%w: the packets of paper 002 name no tile and no quality, expected one of each", ErrConfig)
	case c.Gap < 0 || c.Segment < 0:
		return fmt.Errorf("%w: gap %v, segment %v: expected 0 or more", ErrConfig, c.Gap, c.Segment)
	case c.Min <= 0 || c.Max < c.Min:
		return fmt.Errorf("%w: estimates from %v to %v: expected more than 0, ascending", ErrConfig, c.Min, c.Max)
	case c.Spread < 0 || c.Spread > 1 || c.Uplink < 0:
		return fmt.Errorf("%w: spread %g, uplink %v: expected 0 to 1, and 0 or more", ErrConfig, c.Spread, c.Uplink)
	case c.QueueFrames < 1:
		return fmt.Errorf("%w: queues of %d frames, expected 1 or more", ErrConfig, c.QueueFrames)
	case c.Transport == Volsfu && len(c.Secret) < 32:
		return fmt.Errorf("%w: a secret of %d bytes, expected 32 or more", ErrConfig, len(c.Secret))
	}
	return errors.Join(validateName(c.Name), validateName(c.Watched))
}

// validateName admits names that stand in paths, and between the commas and slashes of the reflector's streams.
func validateName(name string) error {
	if err := volumetric.ValidateName("peer", name); err != nil || !strings.ContainsAny(name, ",/ %?#") && len(name) <= 32 {
		return err
	}
	return fmt.Errorf("%w: name %.40q, expected up to 32 bytes without commas, slashes, spaces, %%, ? and #", ErrConfig, name)
}

func addressOrNone(needed bool) string {
	if needed {
		return "HOST:PORT"
	}
	return "none"
}

// Names lists the transports.
func Names() string {
	var names []string
	for _, t := range Transports {
		names = append(names, string(t))
	}
	return strings.Join(names, ", ")
}
