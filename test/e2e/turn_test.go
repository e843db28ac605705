package e2e

import (
	"crypto/tls"
	"encoding/json"
	"net"
	"net/http"
	"testing"

	"github.com/volsfu/volsfu/internal/admin"
	"github.com/volsfu/volsfu/internal/config"
	"github.com/volsfu/volsfu/test/certificate"
	"github.com/volsfu/volsfu/test/testbed"
	"github.com/volsfu/volsfu/test/wait"
)

// blocked is a UDP socket whose packets a firewall drops.
type blocked struct{ *net.UDPConn }

func newBlocked(t *testing.T) net.PacketConn {
	t.Helper()
	conn, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	return blocked{conn}
}

func (blocked) WriteTo(b []byte, _ net.Addr) (int, error) { return len(b), nil }

// TestTURN has a client publish and receive through the server's TURN server: over UDP or TCP, and over TLS beside
// signalling.
func TestTURN(t *testing.T) {
	for _, test := range []struct {
		name   string
		secure bool
		// dials is set for a client without a UDP socket.
		dials bool
	}{{"UDP or TCP", false, false}, {"TLS", true, false}, {"TLS, a client without UDP", true, true}} {
		t.Run(test.name, func(t *testing.T) {
			files := certificate.New(t, "127.0.0.1")
			c := startConference(t, wide, func(c *config.Config) {
				c.TURN.Listen = "127.0.0.1:0"
				c.Media.TCP = false
				if test.secure {
					c.TURN.Listen = ""
					c.Server.TLSCert, c.Server.TLSKey = files.Certificate, files.Key
				}
			})
			wait.Until(t, "the self-test succeeds", func() bool { return metric(t, c, "volsfu_turn_works") == 1 })
			checkState(t, c)
			trusting := &tls.Config{RootCAs: files.Pool}
			part := testbed.Part{Room: "room", Identity: "relayed", Receive: true, TLS: trusting, TCP: test.dials,
				Loads: []testbed.Load{body(1, 1)}}
			if !test.dials {
				part.Media = newBlocked(t)
			}
			relayed := join(t, c, part)
			direct := join(t, c, testbed.Part{Room: "room", Identity: "direct", Receive: true, TLS: trusting,
				Loads: []testbed.Load{body(1, 1)}})
			wait.Until(t, "frames arrive", func() bool {
				return frames(relayed, tile("direct", "body", 0)) > 20 &&
					frames(direct, tile("relayed", "body", 0)) > 20
			})
			for _, direction := range []string{"up", "down"} {
				if n := metric(t, c, `volsfu_turn_packets_total{direction="`+direction+`"}`); n < 40 {
					t.Errorf("%g packets were relayed %s, expected those of 20 frames", n, direction)
				}
			}
			if n := metric(t, c, "volsfu_turn_allocations"); n == 0 {
				t.Error("there is no allocation")
			}
			relayed.Leave()
			direct.Leave()
			wait.Until(t, "the allocations end with their sessions", func() bool {
				return metric(t, c, "volsfu_turn_allocations") == 0
			})
		})
	}
}

// TestTURNWithInterfaces has a client with network interfaces of its own publish and receive through TURN: the media
// port is not reached at the address that clients are told.
func TestTURNWithInterfaces(t *testing.T) {
	c := startConference(t, wide, func(c *config.Config) {
		c.TURN.Listen, c.TURN.Host = "127.0.0.1:0", "127.0.0.1"
		c.Media.TCP, c.Media.PublicIPs = false, []string{"203.0.113.5"}
	})
	wait.Until(t, "the self-test succeeds", func() bool { return metric(t, c, "volsfu_turn_works") == 1 })
	part := testbed.Part{Room: "room", Receive: true, Interfaces: []string{"lo"}, Loads: []testbed.Load{body(1, 1)}}
	part.Identity = "ada"
	ada := join(t, c, part)
	part.Identity = "grace"
	grace := join(t, c, part)
	wait.Until(t, "frames arrive", func() bool {
		return frames(ada, tile("grace", "body", 0)) > 20 && frames(grace, tile("ada", "body", 0)) > 20
	})
	for _, direction := range []string{"up", "down"} {
		if n := metric(t, c, `volsfu_turn_packets_total{direction="`+direction+`"}`); n < 40 {
			t.Errorf("%g packets were relayed %s, expected those of 20 frames", n, direction)
		}
	}
}

// checkState checks that operators see the addresses that clients are told, and the result of the self-test.
func checkState(t *testing.T, c *testbed.Conference) {
	t.Helper()
	response, err := http.Get("http://" + c.Server.AdminAddress() + "/admin/v1/server")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	var state admin.ServerState
	if err := json.NewDecoder(response.Body).Decode(&state); err != nil {
		t.Fatal(err)
	}
	if len(state.Addresses) == 0 || state.TURN == nil || len(state.TURN.URLs) == 0 || !state.TURN.Tested ||
		state.TURN.Error != "" {
		t.Errorf("the addresses are %v, TURN is %+v, expected a test without an error", state.Addresses, state.TURN)
	}
}
