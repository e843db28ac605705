package hotpath

import (
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/ecn"
	"github.com/volsfu/volsfu/internal/udp"
)

// TestImpairedPathsKeepCodepoints sends datagrams of each codepoint over an impaired path in both directions.
func TestImpairedPathsKeepCodepoints(t *testing.T) {
	server, err := udp.Listen(udp.Config{Address: netip.MustParseAddrPort("127.0.0.1:0")})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = server.Close() }()
	path, err := impair(Load{RTT: time.Millisecond}, 1, server.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = path.close() }()
	_ = path.client.SetReadDeadline(time.Now().Add(10 * time.Second))
	inbox, buffer := udp.NewInbox(), make([]byte, 100)
	for _, codepoint := range []ecn.Codepoint{ecn.ECT1, ecn.NotECT, ecn.CE, ecn.ECT0} {
		if _, err := path.client.WriteECN([]byte("request"), server.Address(), codepoint); err != nil {
			t.Fatal(err)
		}
		if err := server.Sockets()[0].Receive(inbox); err != nil {
			t.Fatal(err)
		}
		request := inbox.Messages()[0]
		if string(request.Data) != "request" || request.ECN != codepoint {
			t.Fatalf("the server received %q with %v, expected %v", request.Data, request.ECN, codepoint)
		}
		reply := []udp.Message{{Peer: request.Peer, Data: []byte("replyreply"), Segment: 5, ECN: codepoint}}
		if err := server.Sockets()[0].Send(reply); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			n, from, arrived, err := path.client.ReadECN(buffer)
			if err != nil || string(buffer[:n]) != "reply" || from != server.Address() || arrived != codepoint {
				t.Fatalf("the client received %q from %v with %v, %v; expected %v", buffer[:n], from, arrived, err,
					codepoint)
			}
		}
	}
	stranger, err := net.DialUDP("udp4", nil, net.UDPAddrFromAddrPort(path.port.Address()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stranger.Close() }()
	if _, err := stranger.Write([]byte("strange")); err != nil {
		t.Fatal(err)
	}
	_ = path.client.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
	if n, _, _, err := path.client.ReadECN(buffer); err == nil {
		t.Errorf("the client received %q of a stranger", buffer[:n])
	}
}
