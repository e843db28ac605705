package hostnet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// errRoute means that the kernel's answer about a route has an unexpected form.
var errRoute = errors.New("unexpected answer about a route")

// routePatience bounds the wait for the kernel's answer. The kernel answers within the sending call.
const routePatience = time.Second

// onLink reports whether the kernel sends packets for an address directly to that address on a broadcast interface. The
// route then has no gateway, as the route of an interface's network or of a single host (/32, /128), and the kernel has
// to resolve the address. Point-to-point interfaces (VPNs, PPP) do not resolve addresses. An address without a route is
// not on link. An error means that the kernel cannot be asked.
func onLink(address netip.Addr) (bool, error) {
	// rtnetlink(7): the answer to RTM_GETROUTE for one address is the route that the kernel would take.
	route, err := routeTo(address)
	if errors.Is(err, unix.ENETUNREACH) || errors.Is(err, unix.EHOSTUNREACH) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("route to %v: %w", address, err)
	}
	if route.kind != unix.RTN_UNICAST || route.gateway {
		return false, nil
	}
	by, err := net.InterfaceByIndex(route.device)
	if err != nil {
		return false, fmt.Errorf("interface of the route to %v: %w", address, err)
	}
	return by.Flags&net.FlagBroadcast != 0 && by.Flags&net.FlagPointToPoint == 0, nil
}

// kernelRoute is the kernel's answer about a route.
type kernelRoute struct {
	// kind is a route type such as RTN_UNICAST or RTN_LOCAL. device is the interface's index.
	kind    uint8
	device  int
	gateway bool
}

// routeTo asks the kernel for the route to an address.
func routeTo(address netip.Addr) (kernelRoute, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return kernelRoute{}, os.NewSyscallError("socket", err)
	}
	defer func() { _ = unix.Close(fd) }()
	patience := unix.NsecToTimeval(int64(routePatience))
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &patience); err != nil {
		return kernelRoute{}, os.NewSyscallError("setsockopt", err)
	}
	if err := unix.Sendto(fd, routeRequest(address), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return kernelRoute{}, os.NewSyscallError("sendto", err)
	}
	answer := make([]byte, 4096)
	n, _, err := unix.Recvfrom(fd, answer, 0)
	if err != nil {
		return kernelRoute{}, os.NewSyscallError("recvfrom", err)
	}
	return parseRoute(answer[:n])
}

// routeRequest returns an RTM_GETROUTE message for one address.
func routeRequest(address netip.Addr) []byte {
	address = address.Unmap()
	family := uint8(unix.AF_INET)
	if address.Is6() {
		family = unix.AF_INET6
	}
	zone := address.Zone()
	destination := address.WithZone("").AsSlice()
	request := make([]byte, unix.SizeofNlMsghdr+unix.SizeofRtMsg)
	message := (*unix.RtMsg)(unsafe.Pointer(&request[unix.SizeofNlMsghdr]))
	*message = unix.RtMsg{Family: family, Dst_len: uint8(address.BitLen())}
	request = appendAttribute(request, unix.RTA_DST, destination)
	if zone != "" {
		request = appendAttribute(request, unix.RTA_OIF, binary.NativeEndian.AppendUint32(nil, interfaceIndex(zone)))
	}
	header := (*unix.NlMsghdr)(unsafe.Pointer(&request[0]))
	*header = unix.NlMsghdr{Len: uint32(len(request)), Type: unix.RTM_GETROUTE, Flags: unix.NLM_F_REQUEST}
	return request
}

// appendAttribute appends an attribute. All values have a multiple of four bytes and need no padding.
func appendAttribute(request []byte, kind uint16, value []byte) []byte {
	request = binary.NativeEndian.AppendUint16(request, uint16(unix.SizeofRtAttr+len(value)))
	return append(binary.NativeEndian.AppendUint16(request, kind), value...)
}

// interfaceIndex returns the index of the interface that a zone identifies by number or name, 0 if there is none.
func interfaceIndex(zone string) uint32 {
	if index, err := strconv.ParseUint(zone, 10, 32); err == nil {
		return uint32(index)
	}
	found, err := net.InterfaceByName(zone)
	if err != nil {
		return 0
	}
	return uint32(found.Index)
}

// parseRoute parses the kernel's answer. An error from the kernel is returned as syscall.Errno.
func parseRoute(answer []byte) (kernelRoute, error) {
	messages, err := syscall.ParseNetlinkMessage(answer)
	if err != nil || len(messages) == 0 {
		return kernelRoute{}, fmt.Errorf("%w of %d bytes", errRoute, len(answer))
	}
	m := messages[0]
	if m.Header.Type == unix.NLMSG_ERROR && len(m.Data) >= 4 {
		// The error is the negative errno (netlink(7)).
		return kernelRoute{}, syscall.Errno(-int32(binary.NativeEndian.Uint32(m.Data)))
	}
	attributes, err := syscall.ParseNetlinkRouteAttr(&m)
	if m.Header.Type != unix.RTM_NEWROUTE || err != nil || len(m.Data) < unix.SizeofRtMsg {
		return kernelRoute{}, fmt.Errorf("%w, a message of type %d", errRoute, m.Header.Type)
	}
	route := kernelRoute{kind: (*unix.RtMsg)(unsafe.Pointer(&m.Data[0])).Type}
	for _, a := range attributes {
		switch a.Attr.Type {
		case unix.RTA_GATEWAY, unix.RTA_VIA:
			route.gateway = true
		case unix.RTA_OIF:
			if len(a.Value) >= 4 {
				route.device = int(binary.NativeEndian.Uint32(a.Value))
			}
		}
	}
	return route, nil
}
