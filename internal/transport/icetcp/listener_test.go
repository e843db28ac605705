package icetcp

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pion/logging"
	"github.com/pion/stun/v4"

	"github.com/volsfu/volsfu/internal/transport/ratelimit"
)

// playedListener accepts the connections and errors that the test provides.
type playedListener struct {
	results chan accepted
	closed  chan struct{}
	closing sync.Once
}

type accepted struct {
	conn net.Conn
	err  error
}

func newPlayedListener() *playedListener {
	return &playedListener{results: make(chan accepted, 100), closed: make(chan struct{})}
}

// Accept implements net.Listener.
func (l *playedListener) Accept() (net.Conn, error) {
	select {
	case r := <-l.results:
		return r.conn, r.err
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *playedListener) Close() error {
	l.closing.Do(func() { close(l.closed) })
	return nil
}

// Addr implements net.Listener.
func (l *playedListener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 7} }

// fail makes Accept fail with an error of the system.
func (l *playedListener) fail(reason syscall.Errno) {
	l.results <- accepted{err: &net.OpError{Op: "accept", Net: "tcp", Err: os.NewSyscallError("accept4", reason)}}
}

// connect returns the far end of a connection that is accepted.
func (l *playedListener) connect() net.Conn { return l.connectFrom("127.0.0.1") }

// connectFrom is connect for a connection from an address.
func (l *playedListener) connectFrom(address string) net.Conn {
	near, far := net.Pipe()
	l.results <- accepted{conn: pipeFrom{near, &net.TCPAddr{IP: net.ParseIP(address), Port: 4711}}}
	return far
}

// pipeFrom is a pipe with the remote address of a connection.
type pipeFrom struct {
	net.Conn
	remote net.Addr
}

// RemoteAddr implements net.Conn.
func (p pipeFrom) RemoteAddr() net.Addr { return p.remote }

// framed returns a packet with its header on a stream.
func framed(packet []byte) []byte {
	return append(binary.BigEndian.AppendUint16(nil, uint16(len(packet))), packet...)
}

// bindingRequest returns the first packet of a connection to the peer with the name.
func bindingRequest(t testing.TB, name string) []byte {
	t.Helper()
	message, err := stun.Build(stun.TransactionID, stun.BindingRequest, stun.NewUsername(name+":remote"))
	if err != nil {
		t.Fatal(err)
	}
	return framed(message.Raw)
}

// checkBurst is the number of STUN messages that a peer may send at once.
const checkBurst = 256

// failures receives the errors of Config.Failed.
type failures chan error

func (f failures) tell(err error) { f <- err }

// listening returns a played listener and its configuration, whose failures are kept.
func listening() (Config, failures, *playedListener) {
	logs := logging.NewDefaultLoggerFactory()
	logs.DefaultLogLevel = logging.LogLevelDisabled
	failed := make(failures, 1)
	return Config{
		Connections: 4096, AddressConnections: 256, Latency: 250 * time.Millisecond, Consent: 5 * time.Second,
		PeerChecks:    ratelimit.Rate{PerSecond: 100, Burst: checkBurst},
		AddressChecks: ratelimit.Rate{PerSecond: 2000, Burst: 4000},
		Failed:        failed.tell, Logs: logs,
	}, failed, newPlayedListener()
}

// ended reports whether a connection is closed, once all other goroutines are blocked.
func ended(t *testing.T, far net.Conn) bool {
	t.Helper()
	synctest.Wait()
	if err := far.SetReadDeadline(time.Now().Add(time.Millisecond)); err != nil {
		return true
	}
	_, err := far.Read(make([]byte, 1))
	return errors.Is(err, io.EOF)
}

// TestICETCPOutlivesWantOfDescriptors: Accept fails for some minutes, as while the process has no descriptors. Pion's
// loop continues afterwards.
func TestICETCPOutlivesWantOfDescriptors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config, failed, listener := listening()
		begin := time.Now()
		const failures = 90
		for n := range failures {
			listener.fail([]syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM,
				syscall.ECONNABORTED}[n%5])
		}
		far := listener.connect()
		mux := Serve(listener, config)
		// The message is not STUN, which only the mux detects.
		if _, err := far.Write([]byte{0, 4, 1, 2, 3, 4}); err != nil {
			t.Fatal(err)
		}
		if !ended(t, far) {
			t.Error("the mux takes no connection any more")
		}
		// 5, 10, … 640 ms, then 1 s.
		if took := time.Since(begin); took > failures*mostPause || took < failures*mostPause/2 {
			t.Errorf("%d failures took %v", failures, took)
		}
		if err := mux.Close(); err != nil {
			t.Error(err)
		}
		select {
		case err := <-failed:
			t.Errorf("told %v", err)
		default:
		}
	})
}

// TestTheEndOfICETCPIsTold: a permanent error is reported.
func TestTheEndOfICETCPIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config, failed, listener := listening()
		listener.fail(syscall.EBADF)
		mux := Serve(listener, config)
		synctest.Wait()
		select {
		case err := <-failed:
			if !errors.Is(err, syscall.EBADF) {
				t.Errorf("told %v, expected EBADF", err)
			}
		default:
			t.Error("nobody is told that nothing is accepted any more")
		}
		if err := mux.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestSilentConnectionsEnd opens a connection that sends nothing.
func TestSilentConnectionsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config, _, listener := listening()
		mux := Serve(listener, config)
		begin := time.Now()
		far := listener.connect()
		if _, err := far.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("reading gave %v", err)
		}
		if took := time.Since(begin); took != firstMessageTime {
			t.Errorf("a connection that says nothing lasts %v, expected %v", took, firstMessageTime)
		}
		// Closing does not wait for a silent connection.
		begin = time.Now()
		far = listener.connect()
		synctest.Wait()
		if err := mux.Close(); err != nil {
			t.Error(err)
		}
		if !ended(t, far) || time.Since(begin) > time.Millisecond {
			t.Errorf("closing took %v", time.Since(begin))
		}
	})
}

// crowdedListener is a listener with limits. The test receives its connections.
type crowdedListener struct {
	*listener
	t       *testing.T
	played  *playedListener
	accepts chan net.Conn
}

func newCrowdedListener(t *testing.T, limits limits) *crowdedListener {
	t.Helper()
	config, _, played := listening()
	l := &crowdedListener{listener: newListener(played, config, limits), t: t, played: played,
		accepts: make(chan net.Conn, 10)}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			l.accepts <- conn
		}
	}()
	return l
}

// connect opens a connection from an address. near is nil if the connection is refused.
func (l *crowdedListener) connect(address string) (far, near net.Conn) {
	l.t.Helper()
	far = l.played.connectFrom(address)
	synctest.Wait()
	select {
	case near = <-l.accepts:
	default:
	}
	return far, near
}

// greet sends the first packet of a connection and reads it at the near end. It reports whether that succeeds.
func (l *crowdedListener) greet(far, near net.Conn, packet []byte) bool {
	l.t.Helper()
	go func() { _, _ = far.Write(packet) }()
	_, err := io.ReadFull(near, make([]byte, len(packet)))
	if err != nil {
		_ = near.Close()
	}
	return err == nil
}

// TestStrangersMakeRoom: more clients connect than the limit. Connections that have not named a known peer are closed,
// the oldest first, whatever they have sent. Connections of known peers remain.
func TestStrangersMakeRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newCrowdedListener(t, limits{total: 2, address: 100, peer: 100})
		l.addPeer("ada")
		silent, _ := l.connect("127.0.0.1")
		first, near := l.connect("127.0.0.1")
		if !l.greet(first, near, bindingRequest(t, "ada")) {
			t.Fatal("a peer is not known")
		}
		second, secondNear := l.connect("127.0.0.1")
		if !ended(t, silent) || ended(t, first) || ended(t, second) {
			t.Fatal("the silent one was to make room, and nobody else")
		}
		if !l.greet(second, secondNear, bindingRequest(t, "nobody")) {
			t.Fatal("somebody is sent off whose peer may come yet")
		}
		third, thirdNear := l.connect("127.0.0.1")
		if !ended(t, second) || ended(t, third) || ended(t, first) {
			t.Fatal("the one that named nobody was to make room, and nobody else")
		}
		if !l.greet(third, thirdNear, bindingRequest(t, "grace")) {
			t.Fatal("somebody is sent off whose peer may come yet")
		}
		l.addPeer("grace")
		refused, taken := l.connect("127.0.0.1")
		if taken != nil || !ended(t, refused) || ended(t, first) || ended(t, third) {
			t.Fatal("two are for peers that there are, and a third was taken")
		}
		// Closing twice makes room for one.
		_, _ = near.Close(), near.Close()
		fourth, taken := l.connect("127.0.0.1")
		if taken == nil {
			t.Fatal("one has left, and nobody is taken")
		}
		fifth, _ := l.connect("127.0.0.1")
		if !ended(t, fourth) || ended(t, fifth) {
			t.Error("the newer one was to be taken in place of the silent one")
		}
		if got, want := l.stats(), (Stats{Open: 2, Strangers: 1, Full: 1, Unproven: 3}); got != want {
			t.Errorf("counted %+v, expected %+v", got, want)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		if !ended(t, fifth) || ended(t, third) {
			t.Error("closing was to end who is for nobody")
		}
		l.removePeer("grace")
		_ = thirdNear.Close()
		if got, want := l.stats(), (Stats{Full: 1, Unproven: 3}); got != want || len(l.peers) != 1 ||
			l.peers["ada"].open != 0 {
			t.Errorf("counted %+v and the peers %v in the end, expected %+v and ada alone", got, l.peers, want)
		}
	})
}

// TestOneAddressConnectsSoOften: the limit of one address does not affect others.
func TestOneAddressConnectsSoOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newCrowdedListener(t, limits{total: 100, address: 2, peer: 100})
		l.addPeer("ada")
		other, _ := l.connect("203.0.113.10")
		var open []net.Conn
		for range 2 {
			far, near := l.connect("203.0.113.9")
			if !l.greet(far, near, bindingRequest(t, "ada")) {
				t.Fatal("a peer is not known")
			}
			open = append(open, near)
		}
		if far, taken := l.connect("203.0.113.9"); taken != nil || !ended(t, far) {
			t.Error("a third from one address was taken")
		}
		if far, taken := l.connect("203.0.113.11"); taken == nil || ended(t, far) || ended(t, other) {
			t.Error("another address was to be taken, and no other one to go")
		}
		_ = open[0].Close()
		stranger, _ := l.connect("203.0.113.9")
		if _, taken := l.connect("203.0.113.9"); taken == nil || !ended(t, stranger) || ended(t, other) {
			t.Error("the address's own stranger was to make room")
		}
		one, _ := l.connect("2001:db8::1")
		two, _ := l.connect("2001:db8::2")
		three, _ := l.connect("2001:db8::ffff:3")
		if !ended(t, one) || ended(t, two) || ended(t, three) {
			t.Error("a prefix of 64 bits was to count as one address")
		}
		for range 10 {
			if far, taken := l.connect("127.0.0.1"); taken == nil || ended(t, far) {
				t.Error("this host's own was not taken")
			}
		}
		if got := l.stats(); got.AddressFull != 1 || got.Full != 0 {
			t.Errorf("counted %+v", got)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		for _, near := range open {
			_ = near.Close()
		}
		if got := l.stats(); got.Open != 0 || got.Strangers != 0 || len(l.sources) != 0 {
			t.Errorf("counted %+v and the addresses %v in the end", got, l.sources)
		}
	})
}

// TestOnePeerIsConnectedToSoOften: the limit of one peer applies to clients that know its name.
func TestOnePeerIsConnectedToSoOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newCrowdedListener(t, limits{total: 100, address: 100, peer: 2})
		l.addPeer("ada")
		var open []net.Conn
		for n := range 3 {
			far, near := l.connect("203.0.113.9")
			if taken := l.greet(far, near, bindingRequest(t, "ada")); taken != (n < 2) {
				t.Errorf("connection %d was taken: %v", n, taken)
			}
			open = append(open, near)
		}
		far, near := l.connect("203.0.113.9")
		if l.greet(far, near, framed([]byte("GET / HTTP/1.1"))) {
			t.Error("what is none of ICE was taken")
		}
		if got, want := l.stats(), (Stats{Open: 2, PeerFull: 1, Unproven: 2}); got != want {
			t.Errorf("counted %+v, expected %+v", got, want)
		}
		for _, near := range open {
			_ = near.Close()
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestConnectionsTurnOver closes each connection of a peer and opens another one, which is another address for ICE.
func TestConnectionsTurnOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newCrowdedListener(t, limits{total: 100, address: 100, peer: 2})
		l.addPeer("ada")
		for n := range maxTurnover + 3 {
			far, near := l.connect("127.0.0.1")
			if taken := l.greet(far, near, bindingRequest(t, "ada")); taken != (n < maxTurnover) {
				t.Fatalf("connection %d was taken: %t, expected the first %d alone", n, taken, maxTurnover)
			}
			_ = near.Close()
		}
		if got := l.stats(); got.PeerFull != 3 {
			t.Errorf("counted %+v, expected 3 refused for their peer", got)
		}
		// The peer's next ICE generation begins with zero connections.
		l.removePeer("ada")
		l.addPeer("grace")
		far, near := l.connect("127.0.0.1")
		if !l.greet(far, near, bindingRequest(t, "grace")) {
			t.Error("a connection of another generation is refused")
		}
		if err := errors.Join(near.Close(), l.Close()); err != nil {
			t.Error(err)
		}
	})
}

// TestConnectionsOfOneAddressAreBounded connects as often as an address may, and more often.
func TestConnectionsOfOneAddressAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newCrowdedListener(t, limits{total: 1 << 20, address: 1 << 20, peer: 2})
		for n := range connectBurst + 1 {
			far, near := l.connect("203.0.113.9")
			if (near != nil) != (n < connectBurst) {
				t.Fatalf("connection %d was taken: %t, expected the first %d alone", n, near != nil, connectBurst)
			}
			if near == nil && !ended(t, far) {
				t.Error("a connection that was refused is open")
			}
		}
		for _, address := range []string{"203.0.113.10", "127.0.0.1"} {
			if _, near := l.connect(address); near == nil {
				t.Errorf("a connection from %s is refused", address)
			}
		}
		time.Sleep(time.Second)
		taken := 0
		for range 2 * connectRate {
			if _, near := l.connect("203.0.113.9"); near != nil {
				taken++
			}
		}
		if taken != connectRate {
			t.Errorf("after a second %d connections are taken, expected %d", taken, connectRate)
		}
		if got := l.stats(); got.TooOften != 1+connectRate {
			t.Errorf("counted %+v, expected %d too often", got, 1+connectRate)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestChecksOfConnections sends STUN messages over two connections of one peer and one of a stranger. Above the limit
// of a participant the connections end. Media is not limited.
func TestChecksOfConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newCrowdedListener(t, limits{total: 100, address: 100, peer: 2})
		l.addPeer("ada")
		media := framed(make([]byte, 1000))
		media[frameHeader] = 128
		read := func(far, near net.Conn, packet []byte) bool { return l.greet(far, near, packet) }
		for name, connections := range map[string]int{"ada": 2, "stranger": 1} {
			var fars, nears []net.Conn
			for range connections {
				far, near := l.connect("127.0.0.1")
				if !l.greet(far, near, bindingRequest(t, name)) {
					t.Fatal("a first connection is refused")
				}
				fars, nears = append(fars, far), append(nears, near)
			}
			// The first message of the first connection of a peer is counted before the peer is known.
			came := 1
			for came < 10*checkBurst && read(fars[came%connections], nears[came%connections], bindingRequest(t, name)) {
				if !read(fars[0], nears[0], media) {
					t.Fatalf("media of %s is refused after %d messages", name, came)
				}
				came++
			}
			if came < checkBurst-2 || came > checkBurst+2 {
				t.Errorf("%d messages of %s came, expected %d", came, name, checkBurst)
			}
			for _, near := range nears {
				_ = near.Close()
			}
		}
		if got := l.stats(); got.TooManyChecks != 2 {
			t.Errorf("counted %+v, expected 2 with too many checks", got)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
}

// FuzzFrames splits a stream at two places. The parts have as many messages as the whole stream.
func FuzzFrames(f *testing.F) {
	f.Add([]byte{0, 1, 20, 128, 3}, uint8(3), uint16(1), uint16(9))
	f.Add([]byte{3}, uint8(0), uint16(0), uint16(0))
	f.Fuzz(func(t *testing.T, firsts []byte, size uint8, one, two uint16) {
		var stream []byte
		want := 0
		for _, first := range firsts {
			packet := make([]byte, size)
			if size > 0 {
				packet[0] = first
			}
			if size == 0 || first <= 3 {
				want++
			}
			stream = append(stream, framed(packet)...)
		}
		var at [2]int
		at[0] = min(int(one), len(stream))
		at[1] = min(max(at[0], int(two)), len(stream))
		var frames frames
		got := frames.add(stream[:at[0]]) + frames.add(stream[at[0]:at[1]]) + frames.add(stream[at[1]:])
		if got != want || frames.have != 0 || frames.rest != 0 {
			t.Errorf("%d messages and %d+%d bytes of a packet that is not whole, expected %d and none", got,
				frames.have, frames.rest, want)
		}
	})
}

// TestSilentConnectionsAreSentNoMedia: a peer that is silent for consentLife receives checks only, until it sends
// something.
func TestSilentConnectionsAreSentNoMedia(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newCrowdedListener(t, limits{total: 2, address: 2, peer: 2})
		l.addPeer("ada")
		far, near := l.connect("127.0.0.1")
		request, media := bindingRequest(t, "ada"), framed([]byte{128, 1, 2, 3})
		if !l.greet(far, near, request) {
			t.Fatal("a first connection is refused")
		}
		came := make(chan byte, 10)
		go func() {
			b := make([]byte, len(request))
			for {
				if _, err := io.ReadFull(far, b[:frameHeader]); err != nil {
					return
				}
				rest := b[:binary.BigEndian.Uint16(b)]
				if _, err := io.ReadFull(far, rest); err != nil {
					return
				}
				came <- rest[0]
			}
		}()
		// A packet of media and a check are sent after each time.
		for _, step := range []struct {
			silent time.Duration
			speaks bool
			want   []byte
		}{
			{l.config.Consent, false, []byte{128, 0}},
			{time.Nanosecond, false, []byte{0}},
			{time.Minute, false, []byte{0}},
			{0, true, []byte{128, 0}},
		} {
			time.Sleep(step.silent)
			if step.speaks && !l.greet(far, near, framed([]byte{200})) {
				t.Fatal("the connection has ended")
			}
			for _, packet := range [][]byte{media, request} {
				if _, err := near.Write(packet); err != nil {
					t.Fatal(err)
				}
			}
			synctest.Wait()
			for _, want := range step.want {
				if got := <-came; got != want {
					t.Errorf("after %v of silence a packet that begins with %d came, expected %d", step.silent, got,
						want)
				}
			}
			if len(came) > 0 {
				t.Errorf("after %v of silence %d packets more came", step.silent, len(came))
			}
		}
		if unconsented := l.unconsented.Load(); unconsented != 2 {
			t.Errorf("%d packets count as not consented to, expected 2", unconsented)
		}
		if err := errors.Join(near.Close(), l.Close()); err != nil {
			t.Error(err)
		}
	})
}
