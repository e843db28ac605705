//go:build !linux

package transport

import (
	"errors"
	"net"
)

// enlargeBuffers asks for socket buffers of the given sizes. What the system gave is unknown here.
func enlargeBuffers(conn *net.UDPConn, receive, send int) int {
	_ = conn.SetReadBuffer(receive)
	_ = conn.SetWriteBuffer(send)
	return 0
}

// receiveDrops is unknown here.
func receiveDrops(net.PacketConn) uint32 { return 0 }

// isClosed tells an error of closing twice from others.
func isClosed(err error) bool { return errors.Is(err, net.ErrClosed) }
