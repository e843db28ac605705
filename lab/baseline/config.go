package baseline

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/volsfu/volsfu/internal/congestion"
	"github.com/volsfu/volsfu/internal/congestion/pacing"
	"github.com/volsfu/volsfu/internal/sfu/demand"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Transport names a transport of frames.
type Transport string

// The transports.
const (
	// DirectTCP uses one connection for each stream, from the watching peer to the publishing peer.
	DirectTCP Transport = "direct-tcp"
	// TCPSwitching is DirectTCP with VR2Gather's quality switch: the watching peer closes a tile's connection and opens
	// another.
	TCPSwitching Transport = "tcp-switching"
	// Reflector is VR2Gather's TCP reflector: a server relays the data of a connection to all others.
	Reflector Transport = "reflector"
	// Websocket is a relay with the framing of engine.io, like VR2Gather's SocketIO.
	Websocket Transport = "websocket"
	// DASH is segments over HTTP with chunked transfer, like low-latency DASH.
	DASH Transport = "dash"
	// UDPChunks is the protocol of paper 002.
	UDPChunks Transport = "udp-chunks"
	// Pion is a peer connection with Pion's own congestion control and repair, as in papers 000 and 001.
	Pion Transport = "pion"
	// PionPatched is Pion with two defects of its congestion control corrected (package rtc/gcc).
	PionPatched Transport = "pion-patched"
	// Volsfu is this project.
	Volsfu Transport = "volsfu"
)

// Notes of a report on figures of Pion and PionPatched.
const (
	PionDefect = "pion: known defect: its congestion control remembers only the last 250 packets, 50 ms at " +
		"50 Mbit/s, and does not count later acknowledgements; its groups of arrivals may never end on a saturated " +
		"link, so that the estimate does not change. pion-patched corrects both."
	PionPatch = "pion-patched: Pion's congestion control with a history of 16,384 packets instead of 250, " +
		"and groups of arrivals that end after 100 ms."
)

// Transports lists all transports.
var Transports = []Transport{DirectTCP, TCPSwitching, Reflector, Websocket, DASH, UDPChunks, Pion, PionPatched, Volsfu}

// Role is the role of a process in a transport.
type Role string

// The roles.
const (
	RoleServer  Role = "server"
	RolePublish Role = "publish"
	RoleWatch   Role = "watch"
	RoleBoth    Role = "both"
)

// Publishes reports whether the role publishes.
func (r Role) Publishes() bool { return r == RolePublish || r == RoleBoth }

// Watches reports whether the role watches.
func (r Role) Watches() bool { return r == RoleWatch || r == RoleBoth }

// ErrConfig reports an invalid configuration. The wrapping error names the invalid value.
var ErrConfig = errors.New("invalid peer")

// Config configures an end.
type Config struct {
	Transport Transport
	Role      Role
	// Name is this peer's name on the server; Watched is the name of the watched peer.
	Name, Watched string
	// Listen and Connect are addresses host:port: the address on which this end listens, and the address of the other
	// end. Transport and role determine the required addresses, see Needs.
	Listen, Connect string
	// Congestion is the name of TCP's congestion control, for instance cubic; empty selects the system's default.
	Congestion string
	// Publication describes the publication of this peer.
	Publication volumetric.Publication
	// Tiles is the number of watched tiles; Quality is their initial quality.
	Tiles   int
	Quality volumetric.Quality
	// Gap is the time between two packets of UDPChunks.
	Gap time.Duration
	// Segment is the length of DASH's segments; 0 is one frame.
	Segment time.Duration
	// Min and Max bound Pion's estimate, which starts at Min. If Adapt is set, an estimate selects qualities: at the
	// publisher with Pion, in the server for a watcher of volsfu.
	Min, Max volumetric.Bitrate
	Adapt    bool
	// Suppression is the policy of volsfu's server for the demand on publishers.
	Suppression demand.Policy
	// Secret signs the tokens for volsfu's server: 32 bytes or more, the same for all peers and the server.
	Secret string
	// Spread is the share of the frame interval over which a publisher of volsfu sends a frame. Uplink is the
	// publisher's assumed rate to the server until the first report. 0 selects the SDK's default for either. Pacing is
	// the server's pacing mode. Controller is the congestion control of a publisher, or of the server towards
	// receivers: a value of congestion.Config.
	Spread     float64
	Uplink     volumetric.Bitrate
	Pacing     pacing.Mode
	Controller string
	// QueueFrames bounds the queue of each receiver in the servers of Reflector and Websocket.
	QueueFrames int
}

// DefaultConfig returns the values of the papers.
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
		Controller:  congestion.ControllerAuto,
		Secret:      "the laboratory's publicly known secret",
		QueueFrames: 10,
	}
}

// Served reports whether frames of the transport pass a server.
func (t Transport) Served() bool {
	return slices.Contains([]Transport{Reflector, Websocket, DASH, Volsfu}, t)
}

// peerConnection reports whether the transport is a peer connection of Pion.
func (t Transport) peerConnection() bool { return t == Pion || t == PionPatched }

// Needs reports which addresses an end requires. If the transport has a server, peers connect to the server. Otherwise
// the publishing peer listens, except with UDPChunks, whose producer is configured with the consumer's address.
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

// Validate reports the first invalid value.
func (c *Config) Validate() error {
	listen, connect := c.Needs()
	switch {
	case !slices.Contains(Transports, c.Transport):
		return fmt.Errorf("%w: transport %.32q, expected one of %s", ErrConfig, c.Transport, Names())
	case !slices.Contains([]Role{RoleServer, RolePublish, RoleWatch, RoleBoth}, c.Role):
		return fmt.Errorf("%w: role %.32q, expected server, publish, watch or both", ErrConfig, c.Role)
	case c.Role == RoleServer && !c.Transport.Served():
		return fmt.Errorf("%w: the transport %s has no server", ErrConfig, c.Transport)
	case c.Role == RoleBoth && c.Transport.peerConnection():
		return fmt.Errorf("%w: a pion peer cannot both publish and watch, expected role publish or watch", ErrConfig)
	case listen != (c.Listen != ""):
		return fmt.Errorf("%w: %s of %s: the listen address is %q, expected %s", ErrConfig, c.Role, c.Transport,
			c.Listen, addressOrNone(listen))
	case connect != (c.Connect != ""):
		return fmt.Errorf("%w: %s of %s: the connect address is %q, expected %s", ErrConfig, c.Role, c.Transport,
			c.Connect, addressOrNone(connect))
	case c.Tiles < 1 || c.Tiles > volumetric.MaxTiles:
		return fmt.Errorf("%w: %d tiles are watched, expected 1 to %d", ErrConfig, c.Tiles, volumetric.MaxTiles)
	case c.Quality < volumetric.QualityOff || c.Quality >= volumetric.MaxQualities:
		return fmt.Errorf("%w: quality %d, expected -1 to %d", ErrConfig, c.Quality, volumetric.MaxQualities-1)
	case c.Transport == UDPChunks && (c.Tiles > 1 || c.Role.Publishes() && c.Publication.TrackCount() > 1):
		return fmt.Errorf("%w: the packets of paper 002 carry neither tile nor quality; expected one tile and one "+
			"quality", ErrConfig)
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

// validateName accepts names that may occur in paths, and between the commas and slashes of the reflector's streams.
func validateName(name string) error {
	if err := volumetric.ValidateName("peer", name); err != nil || !strings.ContainsAny(name, ",/ %?#") &&
		len(name) <= 32 {
		return err
	}
	return fmt.Errorf("%w: name %.40q, expected up to 32 bytes without commas, slashes, spaces, %%, ? and #", ErrConfig,
		name)
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
