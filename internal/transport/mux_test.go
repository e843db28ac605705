package transport

import (
	"net"
	"net/netip"
	"testing"

	"github.com/pion/stun/v4"

	"github.com/volsfu/volsfu/internal/description"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Bounds of the ICE mux: remote addresses of an ICE generation, and addresses among them that have not answered a
// check.
const (
	maxRemotes  = description.MaxCandidates
	maxUnproven = 16
)

// TestChecksComeFromSoManyAddresses: a remote peer with valid credentials sends checks from ever new ports, twice as
// many as are accepted.
func TestChecksComeFromSoManyAddresses(t *testing.T) {
	p := newPair(t)
	line, err := p.offers.AddReceiving(volumetric.KindVideo)
	if err != nil {
		t.Fatal(err)
	}
	p.negotiate([]*Line{line})
	p.connect()
	ufrag, password, err := p.offers.agent.GetLocalUserCredentials()
	if err != nil {
		t.Fatal(err)
	}
	remote, _, err := p.answers.agent.GetLocalUserCredentials()
	if err != nil {
		t.Fatal(err)
	}
	// The offerer is controlling, so the check has the attribute of a controlled agent.
	check, err := stun.Build(stun.TransactionID, stun.BindingRequest, stun.NewUsername(ufrag+":"+remote),
		stun.RawAttribute{Type: stun.AttrICEControlled, Value: make([]byte, 8)},
		stun.RawAttribute{Type: stun.AttrPriority, Value: []byte{0, 0, 0, 1}},
		stun.NewShortTermIntegrity(password), stun.Fingerprint)
	if err != nil {
		t.Fatal(err)
	}
	port := net.UDPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), p.endpoints[0].Port()))
	candidates := func() int {
		list, err := p.offers.agent.GetRemoteCandidates()
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	before := candidates()
	var conns []net.PacketConn
	defer func() {
		for _, conn := range conns {
			_ = conn.Close()
		}
	}()
	for range 2 * maxRemotes {
		conn, err := net.ListenPacket("udp4", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		conns = append(conns, conn)
		if _, err := conn.WriteTo(check.Raw, port); err != nil {
			t.Fatal(err)
		}
	}
	p.until("checks are refused", func() bool {
		return p.endpoints[0].Limits().ChecksRefused >= 2*maxRemotes-maxUnproven
	})
	p.until("the others are remote candidates", func() bool {
		added := candidates() - before
		if added > maxUnproven {
			t.Fatalf("ICE has %d remote candidates more, expected %d at most", added, maxUnproven)
		}
		return added == maxUnproven
	})
	// Addresses that were known before are still accepted. After an ICE restart, new ones are accepted, too.
	send(t, p.attachBeforeSend[line.MID()], volumetric.MIMEVolumetric, 1)
	p.until("a packet", func() bool { return len(p.offersTo.packets(p.attachBeforeSend[line.MID()].SSRC())) > 0 })
	p.restart = true
	p.negotiate(nil)
	renewed, _, err := p.offers.agent.GetLocalUserCredentials()
	if err != nil {
		t.Fatal(err)
	}
	p.until("the addresses are forgotten", func() bool {
		mux := p.endpoints[0].mediaPorts()[0].mux
		return !mux.Knows(ufrag) && mux.Knows(renewed)
	})
}
