package udp

import (
	"encoding/binary"
	"net"
	"net/netip"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// socketAddress holds an address of either family in the kernel's layout; sockaddr_in is shorter.
type socketAddress unix.RawSockaddrInet6

// set stores an address, as an IPv6 address for an IPv6 socket, and returns its length in bytes.
func (a *socketAddress) set(peer netip.AddrPort, ipv6 bool) uint32 {
	ip := peer.Addr()
	if !ipv6 && (ip.Is4() || ip.Is4In6()) {
		short := (*unix.RawSockaddrInet4)(unsafe.Pointer(a))
		*short = unix.RawSockaddrInet4{Family: unix.AF_INET, Addr: ip.Unmap().As4()}
		putPort(&short.Port, peer.Port())
		return unix.SizeofSockaddrInet4
	}
	*a = socketAddress{Family: unix.AF_INET6, Addr: ip.As16()}
	putPort(&a.Port, peer.Port())
	if zone := ip.Zone(); zone != "" {
		a.Scope_id = interfaceIndex(zone)
	}
	return unix.SizeofSockaddrInet6
}

// get returns an address stored by the kernel, or the zero value for another family, which does not occur on a UDP
// socket.
func (a *socketAddress) get() netip.AddrPort {
	switch a.Family {
	case unix.AF_INET:
		short := (*unix.RawSockaddrInet4)(unsafe.Pointer(a))
		return netip.AddrPortFrom(netip.AddrFrom4(short.Addr), portOf(&short.Port))
	case unix.AF_INET6:
		ip := netip.AddrFrom16(a.Addr).Unmap()
		if a.Scope_id != 0 {
			ip = ip.WithZone(strconv.FormatUint(uint64(a.Scope_id), 10))
		}
		return netip.AddrPortFrom(ip, portOf(&a.Port))
	default:
		return netip.AddrPort{}
	}
}

// interfaceIndex returns the interface of a zone: a number, as in received addresses, or a name. For an unknown name
// the result is 0, which leaves the choice to the kernel, as in package net.
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

// Ports are in network byte order.
func putPort(field *uint16, port uint16) {
	binary.BigEndian.PutUint16((*[2]byte)(unsafe.Pointer(field))[:], port)
}

func portOf(field *uint16) uint16 {
	return binary.BigEndian.Uint16((*[2]byte)(unsafe.Pointer(field))[:])
}
