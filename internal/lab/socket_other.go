//go:build !linux

package lab

import "syscall"

// EnlargeBuffers asks for socket buffers of so many bytes.
func EnlargeBuffers(conn syscall.Conn, bytes int) {
	if c, ok := conn.(interface {
		SetReadBuffer(bytes int) error
		SetWriteBuffer(bytes int) error
	}); ok {
		_, _ = c.SetReadBuffer(bytes), c.SetWriteBuffer(bytes)
	}
}

// ReceiveDrops is the number of datagrams that the kernel dropped at a socket since it was opened, 0 where the system does not tell.
func ReceiveDrops(syscall.Conn) int { return 0 }
