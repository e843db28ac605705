package hotpath

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"

	"github.com/volsfu/volsfu/internal/netem"
	"github.com/volsfu/volsfu/internal/udp"
	"github.com/volsfu/volsfu/lab/hotpath/mediasocket"
)

// clientAddress is the client's address on its emulated network (RFC 2544 reserves the block for measurements).
var clientAddress = netip.MustParseAddr("198.18.1.1")

// impairment is a path with loss and delay between a client on an emulated network and the socket of a real server.
// Packets that arrive at the server's address on the network are sent from a socket of this host, and packets received
// by that socket appear on the network from the server's address. Packets keep their ECN codepoints.
type impairment struct {
	network *netem.Network
	// client is the client's socket; server represents the server's socket on the network.
	client, server *netem.Conn
	// port has one socket.
	port    *udp.Port
	running sync.WaitGroup
}

// impair creates a path to a server.
func impair(load Load, seed uint64, server netip.AddrPort) (*impairment, error) {
	i := &impairment{network: netem.NewNetwork(seed)}
	access := netem.DefaultConfig()
	access.Delay, access.Loss = load.RTT/2, load.Loss
	err := i.network.SetAccess(clientAddress, access, access)
	if err == nil {
		i.client, err = i.network.Listen(netip.AddrPortFrom(clientAddress, 0))
	}
	if err == nil {
		i.server, err = i.network.Listen(server)
	}
	if err == nil {
		i.port, err = udp.Listen(udp.Config{Address: netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), 0),
			ReceiveBuffer: mediasocket.BufferBytes, SendBuffer: mediasocket.BufferBytes})
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("emulate a path to %s: %w", server, err), i.network.Close())
	}
	_ = i.client.SetReadBuffer(mediasocket.BufferBytes)
	_ = i.server.SetReadBuffer(mediasocket.BufferBytes)
	i.running.Go(func() { i.toServer(server) })
	i.running.Go(func() { i.toClient(server) })
	return i, nil
}

// toServer relays packets from the emulated network to the server.
func (i *impairment) toServer(server netip.AddrPort) {
	packet := make([]byte, mediasocket.MaxRunBytes)
	for {
		n, _, codepoint, err := i.server.ReadECN(packet)
		if err != nil {
			return
		}
		// A server that has ended refuses the packet; the client detects the end itself.
		if i.port.Sockets()[0].Send([]udp.Message{{Peer: server, Data: packet[:n], ECN: codepoint}}) != nil {
			return
		}
	}
}

// toClient relays packets from the server to the emulated network.
func (i *impairment) toClient(server netip.AddrPort) {
	client, inbox := i.client.LocalAddr().(*net.UDPAddr).AddrPort(), udp.NewInbox()
	for {
		if i.port.Sockets()[0].Receive(inbox) != nil {
			return
		}
		for _, m := range inbox.Messages() {
			if m.Peer != server {
				continue
			}
			for datagram := range m.Datagrams() {
				_, _ = i.server.WriteECN(datagram, client, m.ECN)
			}
		}
	}
}

func (i *impairment) close() error {
	err := errors.Join(i.port.Close(), i.network.Close())
	i.running.Wait()
	return err
}
