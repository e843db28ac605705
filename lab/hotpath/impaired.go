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
// by that socket appear on the network from the server's address.
type impairment struct {
	network *netem.Network
	// client is the client's socket; server represents the server's socket on the network.
	client, server *netem.Conn
	conn           *net.UDPConn
	running        sync.WaitGroup
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
		i.conn, err = net.DialUDP("udp4", nil, net.UDPAddrFromAddrPort(server))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("emulate a path to %s: %w", server, err), i.network.Close())
	}
	udp.EnlargeBuffers(i.conn, mediasocket.BufferBytes, mediasocket.BufferBytes)
	_ = i.client.SetReadBuffer(mediasocket.BufferBytes)
	_ = i.server.SetReadBuffer(mediasocket.BufferBytes)
	i.running.Go(i.toServer)
	i.running.Go(i.toClient)
	return i, nil
}

// toServer relays packets from the emulated network to the server.
func (i *impairment) toServer() {
	packet := make([]byte, mediasocket.MaxRunBytes)
	for {
		n, _, err := i.server.ReadFromAddrPort(packet)
		if err != nil {
			return
		}
		// A server that has ended refuses the packet; the client detects the end itself.
		_, _ = i.conn.Write(packet[:n])
	}
}

// toClient relays packets from the server to the emulated network.
func (i *impairment) toClient() {
	packet := make([]byte, mediasocket.MaxRunBytes)
	for {
		n, err := i.conn.Read(packet)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil {
			_, _ = i.server.WriteToAddrPort(packet[:n], i.client.LocalAddr().(*net.UDPAddr).AddrPort())
		}
	}
}

func (i *impairment) close() error {
	err := errors.Join(i.conn.Close(), i.network.Close())
	i.running.Wait()
	return err
}
