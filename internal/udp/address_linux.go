package udp

import (
	"encoding/binary"
	"net"
	"net/netip"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// socketAddress is room for an address of either family as the kernel lays it out: sockaddr_in is the shorter one.
type socketAddress unix.RawSockaddrInet6

// set fills in an address, as one of IPv6 where the socket is, and returns its length in bytes.
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

// get reads an address that the kernel filled in. It is the zero value for another family, which a UDP socket does not meet.
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

// interfaceIndex finds the interface of a zone: a number, as received addresses have it, or a name. 0, where there is none of the name, leaves the
// choice to the kernel, as package net does.
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

// Ports stand in network byte order.
func putPort(field *uint16, port uint16) {
	binary.BigEndian.PutUint16((*[2]byte)(unsafe.Pointer(field))[:], port)
}

func portOf(field *uint16) uint16 {
	return binary.BigEndian.Uint16((*[2]byte)(unsafe.Pointer(field))[:])
}
