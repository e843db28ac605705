package router

import (
	"encoding/binary"
	"net"
	"net/netip"
)

const (
	// frameBytes is the length of an Ethernet header without a VLAN tag: destination, source and type.
	frameBytes = 14

	etherTypeIPv4 = 0x0800
	etherTypeIPv6 = 0x86dd
)

// linkAddress is an Ethernet address.
type linkAddress [6]byte

// linkAddressOf returns the address of an interface, given by its index and the index of its namespace in the plan. The
// address is locally administered and unique in the plan.
func linkAddressOf(namespace, index int) linkAddress {
	return linkAddress{0x02, 0, byte(namespace >> 8), byte(namespace), byte(index >> 8), byte(index)}
}

// destination returns the destination of a frame of at least frameBytes.
func destination(frame []byte) linkAddress { return linkAddress(frame) }

// parseFrame parses the header of the packet in an Ethernet frame. It returns false if the frame is too short or has
// another type than IPv4 and IPv6, or the packet does not agree with the type.
func parseFrame(frame []byte) (header, bool) {
	if len(frame) <= frameBytes {
		return header{}, false
	}
	packet := frame[frameBytes:]
	switch kind := binary.BigEndian.Uint16(frame[12:]); {
	case kind == etherTypeIPv4 && packet[0]>>4 == 4, kind == etherTypeIPv6 && packet[0]>>4 == 6:
		return parse(packet)
	}
	return header{}, false
}

// neighbour is an address that an interface of a namespace reaches directly.
type neighbour struct {
	on      string // name of the interface
	address netip.Addr
	link    linkAddress
}

// neighbours returns the neighbours of a namespace: the ends of the routes that begin at its interfaces.
func (p *Plan) neighbours(namespace int) []neighbour {
	links := make(map[netip.Addr]linkAddress)
	for i := range p.Namespaces {
		for j, at := range p.Namespaces[i].Interfaces {
			links[at.Address.Addr()] = linkAddressOf(i, j)
			if at.Address6.IsValid() {
				links[at.Address6.Addr()] = linkAddressOf(i, j)
			}
		}
	}
	var list []neighbour
	for _, at := range p.Namespaces[namespace].Interfaces {
		for _, route := range p.Routes {
			if route.From == at.Address.Addr() || route.From == at.Address6.Addr() {
				list = append(list, neighbour{at.Name, route.To, links[route.To]})
			}
		}
	}
	return list
}

// hardware returns the address as package net has it.
func (a linkAddress) hardware() net.HardwareAddr { return a[:] }
