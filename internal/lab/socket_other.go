//go:build !linux

package lab

import "net"

// EnlargeBuffers asks for socket buffers of so many bytes.
func EnlargeBuffers(conn *net.UDPConn, bytes int) {
	_ = conn.SetReadBuffer(bytes)
	_ = conn.SetWriteBuffer(bytes)
}

// ReceiveDrops is the number of datagrams that the kernel dropped at a socket since it was opened, 0 where the system does not tell.
func ReceiveDrops(*net.UDPConn) int { return 0 }
