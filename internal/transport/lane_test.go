package transport

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pion/dtls/v3/pkg/crypto/selfsign"
	"github.com/pion/rtp"

	"github.com/volsfu/volsfu/internal/netem"
	"github.com/volsfu/volsfu/internal/udp"
	"github.com/volsfu/volsfu/test/wait"
)

// laneAuthority knows the certificates of the servers of a test.
type laneAuthority struct {
	mu    sync.Mutex
	names map[string]string
}

var errForeignLane = errors.New("the certificate is foreign")

func (a *laneAuthority) verify(raw [][]byte) (string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(raw) > 0 {
		if name := a.names[string(raw[0])]; name != "" {
			return name, nil
		}
	}
	return "", errForeignLane
}

// listen opens a port. A server without a name has a foreign certificate.
func (a *laneAuthority) listen(t testing.TB, name string, accepts bool, conn net.PacketConn) *LanePort {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := selfsign.SelfSign(key)
	if err != nil {
		t.Fatal(err)
	}
	if name != "" {
		a.mu.Lock()
		a.names[string(certificate.Certificate[0])] = name
		a.mu.Unlock()
	}
	port, err := udp.Listen(udp.Config{Address: netip.MustParseAddrPort("127.0.0.1:0"), Sockets: 1})
	if conn != nil {
		port, err = udp.Attach(conn)
	}
	if err != nil {
		t.Fatal(err)
	}
	p := NewLanePort(port, LaneConfig{
		Certificate: func() *tls.Certificate { return &certificate }, Verify: a.verify, Accepts: accepts,
	})
	t.Cleanup(func() { _ = p.Close() })
	return p
}

func newLaneAuthority() *laneAuthority { return &laneAuthority{names: map[string]string{}} }

// handshook is the result of a handshake.
type handshook struct {
	lane *Lane
	name string
	err  error
}

// acceptLane makes the handshake of the next accepted lane.
func acceptLane(p *LanePort) <-chan handshook {
	result := make(chan handshook, 1)
	go func() {
		l, open := <-p.Accepted()
		if !open {
			result <- handshook{err: net.ErrClosed}
			return
		}
		name, err := l.Handshake(context.Background())
		result <- handshook{l, name, err}
	}()
	return result
}

// openLane opens a lane from a port to another.
func openLane(t testing.TB, from, to *LanePort, number int) (dialed, accepted *Lane) {
	t.Helper()
	result := acceptLane(to)
	dialed, err := from.Dial(to.Address(), number)
	if err != nil {
		t.Fatal(err)
	}
	if name, err := dialed.Handshake(t.Context()); err != nil || name != "two" {
		t.Fatalf("the dialing side has the name %q, error %v", name, err)
	}
	r := <-result
	if r.err != nil || r.name != "one" {
		t.Fatalf("the accepting side has the name %q, error %v", r.name, r.err)
	}
	return dialed, r.lane
}

// sendOn sends packets 1 to n of a stream.
func sendOn(t testing.TB, l *Lane, ssrc uint32, n int) {
	t.Helper()
	outlet := l.NewOutlet(ssrc, ssrc+1)
	for i := range n {
		header := rtp.Header{Version: 2, PayloadType: lanePayloadType, SSRC: ssrc, SequenceNumber: uint16(i + 1)}
		if err := outlet.Queue(&header, []byte("payload")); err != nil {
			t.Fatal(err)
		}
		l.Post(nil)
	}
}

// TestLane opens lanes with several numbers, sends packets and records in both directions, and closes one side.
func TestLane(t *testing.T) {
	a := newLaneAuthority()
	one, two := a.listen(t, "one", false, nil), a.listen(t, "two", true, nil)
	for _, number := range []int{0, MaxLanes - 1} {
		dialed, accepted := openLane(t, one, two, number)
		if accepted.Number() != number || dialed.Number() != number {
			t.Errorf("numbers %d and %d, expected %d", dialed.Number(), accepted.Number(), number)
		}
		before := time.Now()
		sinks := [2]*recorder{newRecorder(), newRecorder()}
		dialed.Start(sinks[0])
		accepted.Start(sinks[1])
		sendOn(t, dialed, 20, 3)
		sendOn(t, accepted, 30, 3)
		wait.Until(t, "the packets", func() bool {
			return len(sinks[1].packets(20)) == 3 && len(sinks[0].packets(30)) == 3
		})
		received, _ := accepted.Traffic()
		if _, sent := dialed.Traffic(); sent != received || sent.Packets != 3 {
			t.Errorf("%+v sent, %+v received, expected 3 packets", sent, received)
		}
		if at := accepted.LastReceived(); at.Before(before) || at.After(time.Now()) {
			t.Errorf("received at %v, expected a time since %v", at, before)
		}
		if _, err := dialed.Control().Write([]byte("record")); err != nil {
			t.Fatal(err)
		}
		record := make([]byte, 100)
		if n, err := accepted.Read(record); err != nil || string(record[:n]) != "record" {
			t.Errorf("read %q, error %v", record[:n], err)
		}
		dialed.Close()
		if _, err := accepted.Read(record); err == nil {
			t.Error("the other side has closed, and Read succeeds")
		}
		accepted.Close()
	}
}

// TestLaneNamesItsClock reads the time of the last packet: by the monotonic clock, so that a step of the wall clock has
// no effect.
func TestLaneNamesItsClock(t *testing.T) {
	l := (&LanePort{started: time.Now()}).newLane(netip.AddrPort{}, nil)
	if !l.LastReceived().IsZero() {
		t.Error("a lane without packets has a time")
	}
	at := time.Now()
	l.setReceived(at)
	// Round removes the monotonic reading.
	if got := l.LastReceived(); got.Sub(at) != 0 || got == got.Round(0) {
		t.Errorf("received at %v, expected %v with a monotonic reading", got, at)
	}
}

// TestLaneRefusesCertificates opens lanes with a foreign certificate on either side.
func TestLaneRefusesCertificates(t *testing.T) {
	a := newLaneAuthority()
	for _, names := range [][2]string{{"", "two"}, {"one", ""}} {
		one, two := a.listen(t, names[0], false, nil), a.listen(t, names[1], true, nil)
		result := acceptLane(two)
		l, err := one.Dial(two.Address(), 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.Handshake(t.Context()); err == nil {
			// A client of DTLS 1.2 that the server refuses learns of it by the next record.
			if _, err := l.Read(make([]byte, 10)); err == nil {
				t.Errorf("%q: the lane is open", names)
			}
		} else if !errors.Is(err, ErrLane) {
			t.Errorf("%q: the error is %v", names, err)
		}
		r := <-result
		if !errors.Is(r.err, ErrLane) {
			t.Errorf("%q: the error of the accepting side is %v", names, r.err)
		}
		for _, l := range []*Lane{l, r.lane} {
			wait.Until(t, "the end of the lane", func() bool {
				select {
				case <-l.Done():
					return true
				default:
					return false
				}
			})
		}
	}
}

// TestLaneClosesDuringHandshake closes a lane, or its port, while the other side does not answer, and lanes whose
// handshake ends at the same time.
func TestLaneClosesDuringHandshake(t *testing.T) {
	a := newLaneAuthority()
	silent, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() })
	for _, closing := range []func(*LanePort, *Lane){
		func(_ *LanePort, l *Lane) { l.Close() },
		func(p *LanePort, _ *Lane) { _ = p.Close() },
	} {
		port := a.listen(t, "one", false, nil)
		l, err := port.Dial(silent.LocalAddr().(*net.UDPAddr).AddrPort(), 0)
		if err != nil {
			t.Fatal(err)
		}
		result := make(chan error, 1)
		go func() {
			_, err := l.Handshake(context.Background())
			result <- err
		}()
		if _, _, err := silent.ReadFromUDPAddrPort(make([]byte, 2000)); err != nil {
			t.Fatal(err)
		}
		closing(port, l)
		if err := <-result; !errors.Is(err, ErrLane) {
			t.Errorf("the error is %v", err)
		}
	}
	for range 10 {
		one, two := a.listen(t, "one", false, nil), a.listen(t, "two", true, nil)
		result := acceptLane(two)
		l, err := one.Dial(two.Address(), 0)
		if err != nil {
			t.Fatal(err)
		}
		go l.Close()
		if _, err := l.Handshake(t.Context()); err == nil {
			select {
			case <-l.Done():
			case <-time.After(wait.Patience):
				t.Fatal("the lane is open")
			}
		}
		_ = two.Close()
		<-result
		if _, err := one.Dial(two.Address(), 0); err != nil {
			t.Errorf("the port of a closed lane: %v", err)
		}
		_ = one.Close()
		if _, err := one.Dial(two.Address(), 0); !errors.Is(err, ErrLane) {
			t.Errorf("a closed port dials, error %v", err)
		}
	}
}

// TestLaneKeepsEarlyMedia sends packets before the other side calls Start.
func TestLaneKeepsEarlyMedia(t *testing.T) {
	a := newLaneAuthority()
	one, two := a.listen(t, "one", false, nil), a.listen(t, "two", true, nil)
	dialed, accepted := openLane(t, one, two, 0)
	dialed.Start(newRecorder())
	sendOn(t, dialed, 20, 10)
	// The kernel of a loopback interface keeps the order: the record arrives after the packets.
	if _, err := dialed.Control().Write([]byte("record")); err != nil {
		t.Fatal(err)
	}
	if _, err := accepted.Read(make([]byte, 100)); err != nil {
		t.Fatal(err)
	}
	sink := newRecorder()
	accepted.Start(sink)
	if n := len(sink.packets(20)); n != 10 {
		t.Errorf("%d early packets, expected 10", n)
	}
}

// TestLaneWithForgedAddress opens lanes with addresses that do not answer, which send media as well. Such lanes keep no
// packets, and do not prevent a server from opening a lane.
func TestLaneWithForgedAddress(t *testing.T) {
	a := newLaneAuthority()
	network := netem.NewNetwork(1)
	t.Cleanup(func() { _ = network.Close() })
	listen := func(address string) net.PacketConn {
		conn, err := network.Listen(netip.MustParseAddrPort(address))
		if err != nil {
			t.Fatal(err)
		}
		return conn
	}
	one := a.listen(t, "one", false, listen("10.0.0.1:1"))
	two := a.listen(t, "two", true, listen("10.0.0.2:1"))
	var lanes []*Lane
	hello := clientHelloOf(t, a)
	for i := range 2 * laneHandshakes {
		from := netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)}), 7)
		conn := listen(from.String())
		for _, datagram := range [][]byte{hello, {0x80, 96, 0, 1, 0, 0, 0, 0, 0, 0, 0, 9, 1, 2, 3}} {
			if _, err := conn.WriteTo(datagram, net.UDPAddrFromAddrPort(two.Address())); err != nil {
				t.Fatal(err)
			}
		}
		// The reply asks for a proof.
		l := <-two.Accepted()
		lanes = append(lanes, l)
		go func() { _, _ = l.Handshake(context.Background()) }()
		if _, _, err := conn.ReadFrom(make([]byte, 2000)); err != nil {
			t.Fatal(err)
		}
		_ = conn.Close()
	}
	two.mu.Lock()
	unproven, opening := len(two.unproven), two.opening
	two.mu.Unlock()
	if unproven != laneHandshakes || opening != 0 {
		t.Errorf("%d unproven lanes and %d handshakes, expected %d and 0", unproven, opening, laneHandshakes)
	}
	for _, l := range lanes {
		l.incoming.mu.Lock()
		if n := len(l.incoming.early); n > 0 {
			t.Errorf("a lane with an unproven address keeps %d datagrams", n)
		}
		l.incoming.mu.Unlock()
	}
	openLane(t, one, two, 0)
	if n := len(*two.lanes.Load()); n > laneHandshakes {
		t.Errorf("%d lanes, expected at most %d", n, laneHandshakes)
	}
}

// clientHelloOf returns the first datagram of a lane that dials.
func clientHelloOf(t testing.TB, a *laneAuthority) []byte {
	t.Helper()
	silent, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = silent.Close() }()
	l, err := a.listen(t, "other", false, nil).Dial(silent.LocalAddr().(*net.UDPAddr).AddrPort(), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() { _, _ = l.Handshake(context.Background()) }()
	datagram := make([]byte, 2000)
	n, _, err := silent.ReadFromUDPAddrPort(datagram)
	if err != nil {
		t.Fatal(err)
	}
	return datagram[:n]
}

// TestLaneWithLoss opens a lane over a path that loses a fifth of the datagrams, and sends packets, of which as many
// are lost.
func TestLaneWithLoss(t *testing.T) {
	a := newLaneAuthority()
	network := netem.NewNetwork(1)
	t.Cleanup(func() { _ = network.Close() })
	var ports [2]*LanePort
	for i, name := range []string{"one", "two"} {
		address := netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)}), 1)
		access := netem.DefaultConfig()
		access.Loss = 0.1
		if err := network.SetAccess(address.Addr(), access, access); err != nil {
			t.Fatal(err)
		}
		conn, err := network.Listen(address)
		if err != nil {
			t.Fatal(err)
		}
		ports[i] = a.listen(t, name, i == 1, conn)
	}
	dialed, accepted := openLane(t, ports[0], ports[1], 0)
	sink := newRecorder()
	accepted.Start(sink)
	dialed.Start(newRecorder())
	sendOn(t, dialed, 20, 1000)
	// The packets before the last one have passed as well.
	wait.Until(t, "the packets", func() bool { return len(sink.packets(20)) > 700 })
	if n := len(sink.packets(20)); n > 900 {
		t.Errorf("%d of 1,000 packets, expected 810", n)
	}
}

// failingConn is a connection whose reads fail after fail is closed.
type failingConn struct {
	net.PacketConn
	fail chan struct{}
}

var errLaneSocket = errors.New("the network card is gone")

func (c *failingConn) ReadFrom([]byte) (int, net.Addr, error) {
	<-c.fail
	return 0, nil, errLaneSocket
}

// TestLanePortFails ends the only socket of a port. The error is reported, and the lanes of the port end.
func TestLanePortFails(t *testing.T) {
	a := newLaneAuthority()
	inner, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	broken := &failingConn{inner, make(chan struct{})}
	port := a.listen(t, "one", false, broken)
	l, err := port.Dial(netip.MustParseAddrPort("127.0.0.1:9"), 0)
	if err != nil {
		t.Fatal(err)
	}
	close(broken.fail)
	if err := <-port.Failed(); err == nil || !strings.Contains(err.Error(), errLaneSocket.Error()) {
		t.Errorf("the error is %v", err)
	}
	<-l.Done()
	_ = port.Close()
	if err, open := <-port.Failed(); open {
		t.Errorf("Close reports %v", err)
	}
}
