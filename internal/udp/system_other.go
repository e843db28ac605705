//go:build !linux

package udp

import (
	"errors"
	"net"
)

// kernel is what the system offers beyond plain calls: nothing that this package knows.
type kernel struct{}

// inboxBatch is what receiving needs beside memory.
type inboxBatch struct{}

// listen opens one socket: no other system both shares a port and spreads the peers evenly.
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

// EnlargeBuffers asks for buffers of a socket, in bytes, and returns what was accepted; 0 asks for none.
func EnlargeBuffers(conn *net.UDPConn, receive, send int) (received, sent int) {
	return enlarge(conn.SetReadBuffer, receive), enlarge(conn.SetWriteBuffer, send)
}

// enlarge asks for a buffer, and for half of it as long as the system refuses, as those of BSD do beyond their limit. It returns what was accepted, in bytes, or 0.
func enlarge(set func(bytes int) error, bytes int) int {
	for ; bytes > 0; bytes /= 2 {
		if set(bytes) == nil {
			return bytes
		}
	}
	return 0
}

// TakeStamps has the system tell when datagrams arrive and leave. It reports that it does not.
func (s *Socket) TakeStamps(bool) bool { return false }

func (s *Socket) receive(in *Inbox) error { return s.receivePlain(in) }

func (s *Socket) send(messages []Message) error { return s.sendPlain(messages) }

// ReceiveDrops is what the system tells of datagrams that were dropped at a socket: nothing.
func ReceiveDrops(*net.UDPConn) (drops uint32, known bool) { return 0, false }

// receiveDrops is what the system tells of dropped datagrams: nothing.
func (s *Socket) receiveDrops() (uint32, bool) { return 0, false }

// openSender fails: no other system gives the sockets of one port datagrams as they are told.
func (p *Port) openSender(SenderConfig) (*Socket, error) { return nil, errors.ErrUnsupported }

// reject fails: no other system runs filters of ours.
func (s *Socket) reject(rejections Rejections) error {
	if len(rejections.Sources) == 0 {
		return nil
	}
	return errors.ErrUnsupported
}
