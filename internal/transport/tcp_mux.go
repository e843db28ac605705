package transport

import (
	"net"

	"github.com/pion/ice/v4"
)

// tcpMux is Pion's, whose listener knows the peers that there are.
type tcpMux struct {
	*ice.TCPMuxDefault
	listener *tcpListener
}

// serveTCP takes ICE-TCP connections on a listener.
func (e *Endpoint) serveTCP(listener net.Listener) {
	e.connections = newTCPListener(listener, e, tcpLimits{
		total: e.config.TCPConnections, address: e.config.TCPAddressConnections, peer: maxPeerConnections, age: e.config.TCPLatency,
	})
	e.tcp = &tcpMux{
		TCPMuxDefault: ice.NewTCPMuxDefault(ice.TCPMuxParams{
			Listener:                     e.connections,
			Logger:                       e.logs.NewLogger("ice"),
			ReadBufferSize:               64,
			FirstStunBindTimeout:         firstMessageTime,
			AliveDurationForConnFromStun: firstMessageTime,
		}),
		listener: e.connections,
	}
}

// GetConnByUfrag implements ice.TCPMux.
func (m *tcpMux) GetConnByUfrag(ufrag string, isIPv6 bool, local net.IP) (net.PacketConn, error) {
	m.listener.know(ufrag)
	return m.TCPMuxDefault.GetConnByUfrag(ufrag, isIPv6, local)
}

// RemoveConnByUfrag implements ice.TCPMux.
func (m *tcpMux) RemoveConnByUfrag(ufrag string) {
	m.listener.forget(ufrag)
	m.TCPMuxDefault.RemoveConnByUfrag(ufrag)
}
