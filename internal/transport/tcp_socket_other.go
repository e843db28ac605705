//go:build !linux

package transport

import "net"

// tcpSendBuffer is what the system is to hold of a connection where it cannot tell what it has sent from what it has not: 42 ms at 50 Mbit/s.
const tcpSendBuffer = 256 << 10

// tuneTCP has the system hold little of a connection.
func tuneTCP(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetWriteBuffer(tcpSendBuffer)
	}
}
