//go:build !linux

package icetcp

import "net"

// sendBuffer is the size of the send buffer on systems without a limit for unsent bytes: 42 ms at 50 Mbit/s.
const sendBuffer = 256 << 10

// tune limits the send buffer of a connection.
func tune(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetWriteBuffer(sendBuffer)
	}
}
