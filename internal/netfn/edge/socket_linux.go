package edge

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/volsfu/volsfu/internal/netfn/edge/bpf"
)

// controlSocket is the socket of control messages on one path. Package net may be used from several goroutines; the
// mutex of the edge guards to.
type controlSocket struct {
	*net.UDPConn
	// to is where the other edge is: its configured address, or the address from which its last valid message came.
	to netip.AddrPort
}

// openSocket opens the socket of a path. Its packets leave and arrive on the path's interface only, and carry the mark
// of outer packets, which no rule selects.
func openSocket(p *Path, port uint16) (*controlSocket, error) {
	config := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error {
		var failed error
		if err := raw.Control(func(fd uintptr) {
			failed = unix.BindToDevice(int(fd), p.Interface)
			if failed == nil {
				failed = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_MARK, bpf.Mark)
			}
		}); err != nil {
			return err
		}
		return failed
	}}
	address := net.JoinHostPort(p.Local.String(), strconv.Itoa(int(port)))
	connection, err := config.ListenPacket(context.Background(), "udp", address)
	if err != nil {
		return nil, fmt.Errorf("open the socket of the path %s: %w", p.Name, denied(err))
	}
	return &controlSocket{UDPConn: connection.(*net.UDPConn), to: netip.AddrPortFrom(p.Remote, port)}, nil
}
