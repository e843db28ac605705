package testbed

import (
	"context"
	"net/netip"
	"sync"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/config"
	"github.com/volsfu/volsfu/internal/netem"
)

// The server's address on an emulated network, and the first address of the clients' hosts (RFC 2544 reserves
// 198.18.0.0/15 for measurements).
var (
	emulatedServer = netip.MustParseAddrPort("198.18.0.1:7882")
	emulatedClient = netip.MustParseAddr("198.18.1.1")
)

// Emulation is a Conference whose media passes through an emulated network. The server has no access link there. The
// methods are safe for concurrent use, except Close, which must be the last call.
type Emulation struct {
	*Conference
	Network *netem.Network

	mu   sync.Mutex
	next netip.Addr // of the next host
}

// NewEmulation starts a server on an emulated network. seed determines the random decisions of the network.
func NewEmulation(c config.Config, seed uint64) (*Emulation, error) {
	network := netem.NewNetwork(seed)
	media, err := network.Listen(emulatedServer)
	if err != nil {
		_ = network.Close()
		return nil, err
	}
	conference, err := NewConference(c, media, zap.NewNop())
	if err != nil {
		_ = network.Close()
		return nil, err
	}
	return &Emulation{Conference: conference, Network: network, next: emulatedClient}, nil
}

// Host adds a host with an access link, and returns the host's address.
func (e *Emulation) Host(up, down netem.Config) (netip.Addr, error) {
	e.mu.Lock()
	address := e.next
	e.next = address.Next()
	e.mu.Unlock()
	return address, e.Network.SetAccess(address, up, down)
}

// JoinFrom adds a peer on a host.
func (e *Emulation) JoinFrom(ctx context.Context, host netip.Addr, part Part) (*Peer, error) {
	media, err := e.Network.Listen(netip.AddrPortFrom(host, 0))
	if err != nil {
		return nil, err
	}
	part.Media = media
	return e.Join(ctx, part)
}

// JoinOver adds a peer on a new host whose access link is the same in both directions, and returns the host's address.
func (e *Emulation) JoinOver(ctx context.Context, access netem.Config, part Part) (*Peer, netip.Addr, error) {
	host, err := e.Host(access, access)
	if err != nil {
		return nil, host, err
	}
	peer, err := e.JoinFrom(ctx, host, part)
	return peer, host, err
}

// Close ends all peers, the server and the network.
func (e *Emulation) Close() {
	e.Conference.Close()
	_ = e.Network.Close()
}
