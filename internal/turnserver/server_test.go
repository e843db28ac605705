package turnserver

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pion/stun/v4"
	"github.com/pion/turn/v5"

	"github.com/volsfu/volsfu/test/wait"
)

// TestRelay: packets pass to the media port and back over UDP and TCP, and to no other address.
func TestRelay(t *testing.T) {
	s := newStage(t, nil)
	other := newEcho(t)
	for _, url := range s.URLs() {
		t.Run(strings.SplitAfter(url, "=")[1], func(t *testing.T) {
			// A client that asks for a channel to another port loses its TCP connection.
			foreign := other.LocalAddress()
			for _, to := range []netip.AddrPort{foreign,
				netip.AddrPortFrom(netip.MustParseAddr("127.0.0.2"), s.media.LocalAddress().Port())} {
				before := s.refusals(refusedPeer)
				if err := s.use(t, url, "ada", func(relayed net.PacketConn) error {
					if exchange(relayed, to, "stray", 300*time.Millisecond) {
						t.Errorf("a packet passed to %v", to)
					}
					wait.Until(t, fmt.Sprintf("a refusal of %v is counted", to),
						func() bool { return s.refusals(refusedPeer) > before })
					return nil
				}); err != nil {
					t.Error(err)
				}
			}
			err := s.use(t, url, "ada", func(relayed net.PacketConn) error {
				if !exchange(relayed, s.media.LocalAddress(), "hello", patience) {
					t.Error("no packet returned from the media port")
				}
				told := addressOf(relayed.LocalAddr())
				if actual, ok := s.RelayedAddress(told); !ok || actual.Addr() != netip.MustParseAddr("127.0.0.1") {
					t.Errorf("the relayed address %v is received as %v, %t", told, actual, ok)
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wait.Until(t, "the allocations end with their clients", func() bool { return s.Stats().Allocations == 0 })
	if stats := s.Stats(); stats.PacketsUp == 0 || stats.PacketsDown == 0 || stats.BytesUp < stats.PacketsUp {
		t.Errorf("the counts are %+v", stats)
	}
}

// TestSeveralAddresses: a media port behind a NAT has an address that does not exist on this host.
func TestSeveralAddresses(t *testing.T) {
	s := newStage(t, nil)
	public := netip.AddrPortFrom(netip.MustParseAddr("203.0.113.5"), s.media.LocalAddress().Port())
	s.media.tell(public, s.media.LocalAddress())
	err := s.use(t, s.LocalURLs()[0], "ada", func(relayed net.PacketConn) error {
		if told := addressOf(relayed.LocalAddr()); told.Addr() != public.Addr() {
			t.Errorf("the relayed address is %v, expected one of %v", told, public.Addr())
		}
		if !exchange(relayed, public, "hello", patience) {
			t.Error("no packet returned from the public address of the media port")
		}
		if exchange(relayed, s.media.LocalAddress(), "hello", 200*time.Millisecond) {
			t.Error("a packet returned from a second address")
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if n := s.refusals(refusedPeer); n != 0 {
		t.Errorf("%d packets to own addresses count as refused", n)
	}
}

// TestCredentials: a credential makes allocations until it expires, and refreshes them as long as the session lives.
func TestCredentials(t *testing.T) {
	s := newStage(t, nil)
	now := time.Now()
	valid, _ := s.credentials.issue("ada", now.Add(time.Minute))
	expired, _ := s.credentials.issue("ada", now.Add(-time.Second))
	unknown, _ := s.credentials.issue("grace", now.Add(time.Minute))
	for _, test := range []struct {
		name, username string
		method         stun.Method
		refused        refusal
	}{
		{"valid", valid, stun.MethodAllocate, ""},
		{"expired", expired, stun.MethodAllocate, refusedExpired},
		{"refreshing with an expired one", expired, stun.MethodRefresh, ""},
		{"permission with an expired one", expired, stun.MethodCreatePermission, ""},
		{"unknown session", unknown, stun.MethodAllocate, refusedSession},
		{"refreshing after the end of the session", unknown, stun.MethodRefresh, refusedSession},
		{"no time", "ada", stun.MethodAllocate, refusedCredential},
		{"no session", "1800000000:", stun.MethodAllocate, refusedCredential},
		{"no number", "soon:ada", stun.MethodAllocate, refusedCredential},
		{"empty", "", stun.MethodAllocate, refusedCredential},
	} {
		before := s.Stats().Refused
		_, key, ok := s.authenticate(&turn.RequestAttributes{Username: test.username, Realm: realm,
			SrcAddr: &net.UDPAddr{IP: net.IPv4(203, 0, 113, 1), Port: 1}, Method: test.method})
		if ok != (test.refused == "") || ok && len(key) == 0 {
			t.Errorf("%s: accepted %t", test.name, ok)
		}
		if test.refused != "" && s.refusals(test.refused) != before[string(test.refused)]+1 {
			t.Errorf("%s: the refusal is not counted as %s", test.name, test.refused)
		}
	}
}

// TestWrongCredentials uses the credentials of another server, and those of a session that has ended.
func TestWrongCredentials(t *testing.T) {
	s, other := newStage(t, nil), newCredentials()
	url := s.URLs()[1]
	ctx := t.Context()
	username, password := other.issue("ada", time.Now().Add(time.Minute))
	if err := Check(ctx, url, username, password, nil, func(net.PacketConn) error { return nil }); err == nil {
		t.Error("the credential of another server made an allocation")
	}
	if s.refusals(refusedCredential) == 0 {
		t.Error("the wrong password is not counted")
	}
	var relayed net.PacketConn
	err := s.use(t, url, "ada", func(conn net.PacketConn) error {
		relayed = conn
		if !exchange(relayed, s.media.LocalAddress(), "hello", patience) {
			return errors.New("no packet returned")
		}
		s.sessions.set("ada", false)
		wait.Until(t, "the allocation ends with the session", func() bool { return s.Stats().Allocations == 0 })
		if exchange(relayed, s.media.LocalAddress(), "hello", 300*time.Millisecond) {
			t.Error("a packet passed after the end of the session")
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if err := s.use(t, url, "ada", func(net.PacketConn) error { return nil }); err == nil {
		t.Error("the credential of a session that has ended made an allocation")
	}
	if s.refusals(refusedSession) == 0 {
		t.Error("the refusal is not counted")
	}
}

// TestQuotas makes more allocations than a session and the server may have. Those that exist go on.
func TestQuotas(t *testing.T) {
	for name, test := range map[string]struct {
		total  int
		limit  int
		reason refusal
	}{
		"session": {100, sessionAllocations, refusedSessionQuota},
		"server":  {5, 5, refusedTotal},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, func(c *Config) { c.Allocations = test.total })
			err := s.use(t, s.URLs()[0], "ada", func(first net.PacketConn) error {
				var group sync.WaitGroup
				made := make(chan struct{}, 2*test.limit)
				release := make(chan struct{})
				for n := range 2 * test.limit {
					group.Go(func() {
						_ = s.use(t, s.URLs()[n%2], "ada", func(net.PacketConn) error {
							made <- struct{}{}
							<-release
							return nil
						})
					})
				}
				wait.Until(t, "the others are refused", func() bool {
					return s.refusals(test.reason) >= uint64(test.limit+1)
				})
				wait.Until(t, "the permitted ones are made", func() bool { return len(made) == test.limit-1 })
				if n := s.Stats().Allocations; n != test.limit {
					t.Errorf("%d allocations, expected %d", n, test.limit)
				}
				if !exchange(first, s.media.LocalAddress(), "hello", patience) {
					t.Error("the first allocation does not work any more")
				}
				close(release)
				group.Wait()
				return nil
			})
			if err != nil {
				t.Error(err)
			}
			wait.Until(t, "the places are free", func() bool { return s.Stats().Allocations == 0 })
		})
	}
}

// TestMethods: the server has no TCP relays (RFC 6062), no reservations, and answers no stranger's data.
func TestMethods(t *testing.T) {
	s := newStage(t, nil)
	conn, err := net.Dial("udp4", strings.TrimSuffix(strings.TrimPrefix(s.LocalURLs()[0], "turn:"), "?transport=udp"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	for _, kind := range []stun.MessageType{
		stun.NewType(stun.MethodConnect, stun.ClassRequest), stun.NewType(stun.MethodConnectionBind, stun.ClassRequest),
		stun.BindingSuccess, stun.NewType(stun.MethodData, stun.ClassIndication),
	} {
		m, err := stun.Build(stun.TransactionID, kind)
		if err != nil {
			t.Fatal(err)
		}
		before := s.refusals(refusedMethod)
		if _, err := conn.Write(m.Raw); err != nil {
			t.Fatal(err)
		}
		wait.Until(t, kind.String()+" is refused", func() bool { return s.refusals(refusedMethod) == before+1 })
	}
	if _, _, err := (allocator{s.Server}).AllocatePacketConn(turn.AllocateListenerConfig{Network: "udp4"}); err == nil {
		t.Error("a socket was reserved without a user")
	}
}

// TestConnections: an address has a limited number of connections, and Close ends all.
func TestConnections(t *testing.T) {
	s := newStage(t, func(c *Config) { c.Allocations = 2 })
	address := s.listener.Addr().String()
	var open []net.Conn
	for range 2*connectionsPerAllocation + 3 {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, conn)
	}
	wait.Until(t, "the connections beyond the limit are refused", func() bool {
		return s.refusals(refusedConnection) == 3
	})
	for _, conn := range open {
		_ = conn.Close()
	}
	wait.Until(t, "the others end", func() bool { return s.Stats().Connections == 0 })
}

func TestConfig(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"listen without a port": func(c *Config) { c.Listen = "example.org" },
		"host's port":           func(c *Config) { c.Host = "example.org:none" },
		"allocations":           func(c *Config) { c.Allocations = 0 },
		"address_allocations":   func(c *Config) { c.AddressAllocations = 0 },
	} {
		c := DefaultConfig()
		change(&c)
		if err := c.Validate(); !errors.Is(err, ErrConfig) {
			t.Errorf("%s: error is %v", name, err)
		}
	}
	if err := DefaultConfig().Validate(); err != nil {
		t.Errorf("the defaults: %v", err)
	}
}

// TestURLs: the URLs have the configured host, the name in the certificate, or the addresses of the media port.
func TestURLs(t *testing.T) {
	media := &echo{told: []netip.AddrPort{netip.MustParseAddrPort("203.0.113.5:7882"),
		netip.MustParseAddrPort("203.0.113.6:7882"), netip.MustParseAddrPort("[2001:db8::5]:7882")}}
	for name, test := range map[string]struct {
		host, certificate string
		want              string
	}{
		"addresses": {"", "", "turn:203.0.113.5:3478?transport=udp turn:203.0.113.5:3478?transport=tcp " +
			"turn:[2001:db8::5]:3478?transport=udp turn:[2001:db8::5]:3478?transport=tcp"},
		"certificate": {"", "sfu.example.org", "turn:203.0.113.5:3478?transport=udp " +
			"turn:203.0.113.5:3478?transport=tcp turn:[2001:db8::5]:3478?transport=udp " +
			"turn:[2001:db8::5]:3478?transport=tcp turns:sfu.example.org:8443?transport=tcp"},
		"host": {"turn.example.org", "", "turn:turn.example.org:3478?transport=udp " +
			"turn:turn.example.org:3478?transport=tcp turns:turn.example.org:8443?transport=tcp"},
		"host and port": {"turn.example.org:443", "sfu.example.org", "turn:turn.example.org:3478?transport=udp " +
			"turn:turn.example.org:3478?transport=tcp turns:turn.example.org:443?transport=tcp"},
	} {
		s := &Server{config: Config{Host: test.host}, media: media, port: 3478}
		if told := s.ServeTLS(test.certificate, 8443); told != (test.host+test.certificate != "") {
			t.Errorf("%s: clients are told of TLS: %t", name, told)
		}
		if got := strings.Join(s.URLs(), " "); got != test.want {
			t.Errorf("%s: got %s, expected %s", name, got, test.want)
		}
	}
}
