//go:build !linux

package icetcp

import "net"

// sendBuffer is what the system is to hold of a connection where it cannot tell what it has sent from what it has not:
// 42 ms at 50 Mbit/s.
const sendBuffer = 256 << 10

// tune has the system hold little of a connection.
func tune(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetWriteBuffer(sendBuffer)
	}
}
