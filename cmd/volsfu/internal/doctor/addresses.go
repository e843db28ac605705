package doctor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pion/stun/v4"
)

const (
	// stunRepeat is the time between requests to a STUN server, stunPatience the time for its answer.
	stunRepeat, stunPatience = 500 * time.Millisecond, 2 * time.Second
)

// errSilent is wrapped with the STUN server.
var errSilent = errors.New("it does not answer")

// addresses checks at which addresses clients reach the media port, and the kind of NAT in front of it.
func (o *options) addresses(ctx context.Context) []Finding {
	c := o.settings.Media
	v := view{port: uint16(c.Port), configured: c.PublicIPs, servers: len(c.STUNServers)}
	for _, own := range hostAddresses() {
		if own.Is4() || c.Address != "0.0.0.0" {
			v.own = append(v.own, own)
		}
	}
	if address, err := netip.ParseAddr(c.Address); err == nil && !address.IsUnspecified() {
		v.own = []netip.Addr{address}
	}
	var found []Finding
	if len(c.STUNServers) > 0 {
		// Mappings belong to the port. If the server runs, another port shows the kind of NAT.
		conn, err := net.ListenPacket("udp4", ":"+strconv.Itoa(c.Port))
		if err != nil {
			conn, err = net.ListenPacket("udp4", ":0")
		}
		if err != nil {
			return []Finding{{"public address", Failed, err.Error(), ""}}
		}
		defer func() { _ = conn.Close() }()
		v.port = uint16(conn.LocalAddr().(*net.UDPAddr).Port)
		for _, server := range c.STUNServers {
			mapped, err := mappingSeenBy(ctx, conn, strings.TrimPrefix(server, "stun:"))
			if err != nil {
				found = append(found, Finding{"STUN server", Warning, fmt.Sprintf("%s: %v", server, err),
					"Check the name, and that the firewall lets UDP out to it and back."})
				continue
			}
			v.mapped = append(v.mapped, mapped)
		}
	}
	return append(found, v.finding())
}

// view is the media port as others see it.
type view struct {
	// own are the addresses of the host, port the local port of the requests to STUN servers.
	own  []netip.Addr
	port uint16
	// configured are the public addresses of the configuration, mapped the answers of the STUN servers, of which there
	// are servers.
	configured []string
	mapped     []netip.AddrPort
	servers    int
}

// finding judges the view. The kinds of mapping are those of RFC 4787, section 4.1.
func (v view) finding() Finding {
	f := Finding{Subject: "public address", Status: OK}
	forward := fmt.Sprintf("Forward UDP port %d of the public address to the same port of this host", v.port)
	public := slices.IndexFunc(v.own, func(a netip.Addr) bool { return a.IsGlobalUnicast() && !a.IsPrivate() })
	switch {
	case v.servers == 0 && len(v.configured) > 0:
		f.Result = "clients are told " + strings.Join(v.configured, ", ") + " (media.public_ips), not checked by STUN"
	case v.servers == 0 && public >= 0:
		f.Result = fmt.Sprintf("this host has the public address %v", v.own[public])
	case v.servers == 0:
		f.Status = Warning
		f.Result = "this host has private addresses only (" + joined(v.own) + "): clients elsewhere do not reach media"
		f.Advice = "Pass the public address with --public-ip, or let the server ask with --media-stun-servers."
	case len(v.mapped) == 0:
		f.Status, f.Result = Failed, "no STUN server answers: the server does not learn its public address"
		f.Advice = "Allow UDP in the firewall, or pass the public address with --public-ip."
	case slices.ContainsFunc(v.mapped, func(m netip.AddrPort) bool { return m != v.mapped[0] }):
		f.Status = Failed
		f.Result = "the NAT maps the port differently for each destination (symmetric NAT): " + joined(v.mapped)
		f.Advice = forward + ", and pass that address with --public-ip; or let clients use the relay."
	case len(v.configured) > 0 && !slices.Contains(v.configured, v.mapped[0].Addr().String()):
		f.Status = Warning
		f.Result = fmt.Sprintf("STUN servers see %v, but clients are told %s (media.public_ips)", v.mapped[0].Addr(),
			strings.Join(v.configured, ", "))
		f.Advice = "Correct --public-ip, unless clients reach the server by another way."
	case slices.Contains(v.own, v.mapped[0].Addr()):
		f.Result = fmt.Sprintf("no NAT: STUN servers see %v, an address of this host", v.mapped[0].Addr())
	case v.mapped[0].Port() != v.port:
		f.Status = Warning
		f.Result = fmt.Sprintf("behind a NAT at %v, which replaces port %d by %d", v.mapped[0].Addr(), v.port,
			v.mapped[0].Port())
		f.Advice = forward + "."
	default:
		f.Result = fmt.Sprintf("behind a NAT at %v, which keeps the port", v.mapped[0].Addr())
		if len(v.mapped) == 1 {
			f.Result += "; two STUN servers would show whether the mapping depends on the destination"
		}
		f.Advice = forward + ", if that is not done: the mapping alone admits only hosts that the server has called."
	}
	return f
}

// joined returns values with commas between them.
func joined[T fmt.Stringer](values []T) string {
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i] = v.String()
	}
	return strings.Join(texts, ", ")
}

// hostAddresses returns the addresses of the host's interfaces without loopback and link-local ones.
func hostAddresses() []netip.Addr {
	var own []netip.Addr
	interfaces, _ := net.InterfaceAddrs()
	for _, a := range interfaces {
		if prefix, err := netip.ParsePrefix(a.String()); err == nil && prefix.Addr().IsGlobalUnicast() {
			own = append(own, prefix.Addr())
		}
	}
	return own
}

// mappingSeenBy asks the STUN server HOST or HOST:PORT over IPv4 for the address at which the server sees the
// connection.
func mappingSeenBy(ctx context.Context, conn net.PacketConn, server string) (netip.AddrPort, error) {
	if _, _, err := net.SplitHostPort(server); err != nil {
		server = net.JoinHostPort(server, "3478")
	}
	address, err := net.ResolveUDPAddr("udp4", server)
	if err != nil {
		return netip.AddrPort{}, err
	}
	return mappingOf(ctx, conn, address)
}

// mappingOf asks a STUN server for the address at which the server sees the connection.
func mappingOf(ctx context.Context, conn net.PacketConn, server *net.UDPAddr) (netip.AddrPort, error) {
	request, err := stun.Build(stun.TransactionID, stun.BindingRequest)
	if err != nil {
		return netip.AddrPort{}, err
	}
	buffer := make([]byte, 1500)
	for end := time.Now().Add(stunPatience); time.Now().Before(end) && ctx.Err() == nil; {
		if _, err := conn.WriteTo(request.Raw, server); err != nil {
			return netip.AddrPort{}, err
		}
		if err := conn.SetReadDeadline(time.Now().Add(stunRepeat)); err != nil {
			return netip.AddrPort{}, err
		}
		for {
			n, _, err := conn.ReadFrom(buffer)
			if err != nil {
				break
			}
			if mapped, ok := mappedAddress(buffer[:n], request.TransactionID); ok {
				return mapped, nil
			}
		}
	}
	return netip.AddrPort{}, errSilent
}

// mappedAddress parses the answer to a request (RFC 8489, section 14.2).
func mappedAddress(data []byte, transaction [stun.TransactionIDSize]byte) (netip.AddrPort, bool) {
	answer := stun.New()
	if stun.Decode(data, answer) != nil || answer.TransactionID != transaction || answer.Type != stun.BindingSuccess {
		return netip.AddrPort{}, false
	}
	var mapped stun.XORMappedAddress
	if mapped.GetFrom(answer) != nil {
		return netip.AddrPort{}, false
	}
	address, ok := netip.AddrFromSlice(mapped.IP)
	return netip.AddrPortFrom(address.Unmap(), uint16(mapped.Port)), ok
}
