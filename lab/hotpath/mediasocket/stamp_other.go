//go:build !linux

package mediasocket

import (
	"net/netip"
	"syscall"
	"time"
)

func stampArrivals(syscall.Conn) error { return nil }

func (s *Socket) readStamped(buffer []byte) (n int, from netip.AddrPort, at time.Time, err error) {
	n, from, err = s.ReadFromUDPAddrPort(buffer)
	return n, from, time.Now(), err
}
