//go:build !linux

package udp

import (
	"errors"
	"net"
)

// kernel has the system calls beyond plain calls: none on this system.
type kernel struct{}

// inboxBatch has the state for receiving beside memory: none.
type inboxBatch struct{}

// listen opens one socket: no other system both shares a port and distributes the peers evenly.
func listen(c Config, _ abilities) ([]*Socket, error) {
	conn, err := net.ListenUDP(network(c.Address.Addr()), net.UDPAddrFromAddrPort(c.Address))
	if err != nil {
		return nil, err
	}
	s, err := newSocket(udpConn{conn}, c.Patience)
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	s.receiveBuffer, s.sendBuffer = EnlargeBuffers(conn, c.ReceiveBuffer, c.SendBuffer)
	return []*Socket{s}, nil
}

// EnlargeBuffers requests buffer sizes for a socket, in bytes, and returns the accepted sizes; 0 requests no change.
func EnlargeBuffers(conn *net.UDPConn, receive, send int) (received, sent int) {
	return enlarge(conn.SetReadBuffer, receive), enlarge(conn.SetWriteBuffer, send)
}

// enlarge requests a buffer size, and half of it as long as the system refuses, as BSD systems do beyond their limit.
// It returns the accepted size in bytes, or 0.
func enlarge(set func(bytes int) error, bytes int) int {
	for ; bytes > 0; bytes /= 2 {
		if set(bytes) == nil {
			return bytes
		}
	}
	return 0
}

// TakeStamps returns false: timestamps are not supported.
func (s *Socket) TakeStamps(bool) bool { return false }

func (s *Socket) receive(in *Inbox) error { return s.receivePlain(in) }

func (s *Socket) send(messages []Message) error { return s.sendPlain(messages) }

// ReceiveDrops returns false: the number of dropped datagrams is unknown.
func ReceiveDrops(*net.UDPConn) (drops uint32, known bool) { return 0, false }

// receiveDrops returns false: the number of dropped datagrams is unknown.
func (s *Socket) receiveDrops() (uint32, bool) { return 0, false }

// openSender fails: no other system controls the distribution of datagrams over the sockets of a port.
func (p *Port) openSender(SenderConfig) (*Socket, error) { return nil, errors.ErrUnsupported }

// reject fails: no other system supports the filters.
func (s *Socket) reject(rejections Rejections) error {
	if len(rejections.Sources) == 0 {
		return nil
	}
	return errors.ErrUnsupported
}
