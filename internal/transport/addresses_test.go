package transport

import (
	"encoding/binary"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/volsfu/volsfu/test/wait"
)

// offered waits until the peer has offered candidates of all the addresses.
func offered(t *testing.T, p *Peer, addresses ...string) {
	t.Helper()
	offerLines(t, p)
	missing := slices.Clone(addresses)
	deadline := time.After(wait.Patience)
	for len(missing) > 0 {
		select {
		case <-p.Notify():
			for _, event := range p.Events() {
				if event.Candidate == nil {
					continue
				}
				// The address is the fifth field (RFC 8839 section 5.1).
				address := strings.Fields(event.Candidate.Candidate)[4]
				missing = slices.DeleteFunc(missing, func(m string) bool { return m == address })
			}
		case <-deadline:
			t.Fatalf("timed out waiting for candidates of %v", missing)
		}
	}
}

func TestPublicAddressesAreOffered(t *testing.T) {
	for _, addresses := range [][]string{{"203.0.113.5"}, {"203.0.113.5", "203.0.113.6"}} {
		t.Run(strings.Join(addresses, " and "), func(t *testing.T) {
			config := loopbackConfig()
			config.PublicIPs = addresses
			offered(t, newLone(t, config), addresses...)
		})
	}
}

// mappedAddress answers a STUN binding request with the given IPv4 address as the mapped address (RFC 8489 sections 5
// and 14.2).
func mappedAddress(request []byte, seen netip.AddrPort) []byte {
	const bindingSuccess, xorMappedAddress, familyIPv4, cookie = 0x0101, 0x0020, 1, 0x2112a442
	address := seen.Addr().As4()
	response := binary.BigEndian.AppendUint16(nil, bindingSuccess)
	response = binary.BigEndian.AppendUint16(response, 12)
	// The magic cookie and the transaction identifier are those of the request.
	response = append(response, request[4:20]...)
	response = binary.BigEndian.AppendUint16(response, xorMappedAddress)
	response = binary.BigEndian.AppendUint16(response, 8)
	response = binary.BigEndian.AppendUint16(response, familyIPv4)
	response = binary.BigEndian.AppendUint16(response, seen.Port()^(cookie>>16))
	return binary.BigEndian.AppendUint32(response, binary.BigEndian.Uint32(address[:])^cookie)
}

// TestSTUNServersAreAskedFromTheMediaPort: a STUN server reports another address of this host.
func TestSTUNServersAreAskedFromTheMediaPort(t *testing.T) {
	const public = "203.0.113.9"
	server, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = server.Close() }()
	asked := make(chan uint16, 16)
	go func() {
		defer close(asked)
		packet := make([]byte, 1500)
		for {
			n, from, err := server.ReadFromUDPAddrPort(packet)
			if err != nil {
				return
			}
			if n < 20 {
				continue
			}
			_, _ = server.WriteToUDPAddrPort(mappedAddress(packet,
				netip.AddrPortFrom(netip.MustParseAddr(public), from.Port())), from)
			select {
			case asked <- from.Port():
			default:
			}
		}
	}()
	config := loopbackConfig()
	config.STUNServers = []string{"stun:" + server.LocalAddr().String()}
	endpoint, err := Listen(config)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = endpoint.Close() }()
	p, err := endpoint.NewPeer(newRecorder())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.Close() }()
	offered(t, p, public)
	_ = server.Close()
	for port := range asked {
		if port != endpoint.Port() {
			t.Errorf("the STUN server was asked from port %d, expected the media port, %d", port, endpoint.Port())
		}
	}
}
