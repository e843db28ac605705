package interop

import (
	"context"
	"fmt"
	"net"
	"testing"

	"github.com/pion/transport/v5"
	"github.com/pion/transport/v5/stdnet"

	"github.com/volsfu/volsfu/test/namespace"
)

// network is a network namespace with the sockets of a test. Its sockets are opened on the thread of the namespace.
type network struct{ *namespace.Namespace }

// connectNamespaces connects two networks by a virtual cable, with an address at each end.
func connectNamespaces(t *testing.T, a, b network, addressA, addressB string) {
	t.Helper()
	a.Run(t, fmt.Sprintf("ip link add cable type veth peer name cable netns %d", b.Thread))
	a.Run(t, "ip address add "+addressA+" dev cable")
	b.Run(t, "ip address add "+addressB+" dev cable")
	a.Run(t, "ip link set cable up")
	b.Run(t, "ip link set cable up")
}

// listen opens a TCP listener in the network.
func (n network) listen(t *testing.T, address string) net.Listener {
	t.Helper()
	var listener net.Listener
	var err error
	n.Do(func() { listener, err = net.Listen("tcp", address) })
	if err != nil {
		t.Fatal(err)
	}
	return listener
}

// dial opens a TCP connection in the network. Addresses must be numeric: resolving names would use other threads.
func (n network) dial(ctx context.Context, network, address string) (conn net.Conn, err error) {
	n.Do(func() { conn, err = (&net.Dialer{}).DialContext(ctx, network, address) })
	return conn, err
}

// view is the network for Pion.
type view struct {
	*stdnet.Net
	network network
}

// pion returns the network for Pion, with its current addresses.
func (n network) pion(t *testing.T) transport.Net {
	t.Helper()
	v := &view{network: n}
	var err error
	n.Do(func() { v.Net, err = stdnet.NewNet() })
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// ListenUDP opens a socket in the network.
func (v *view) ListenUDP(network string, address *net.UDPAddr) (conn transport.UDPConn, err error) {
	v.network.Do(func() { conn, err = v.Net.ListenUDP(network, address) })
	return conn, err
}
