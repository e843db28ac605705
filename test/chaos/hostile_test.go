package chaos

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"runtime"
	"testing"
	"time"

	"golang.org/x/net/ipv4"

	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/intruder"
	"github.com/volsfu/volsfu/test/long"
	"github.com/volsfu/volsfu/test/wait"
)

// Limits of an intruder's effects.
const (
	// mostHeap is the maximum growth of the heap of server, participants and intruder. DTLS may keep 8 MB of one
	// connection, SCTP 1 MiB, and the four need the remainder.
	mostHeap = 64 << 20
	// mostFragments is the maximum number of fragments of one message without content that SCTP may accept: a message
	// of 256 KiB is 230 packets.
	mostFragments = 512
	// mostChecks is the maximum number of datagrams that a bystander may get for an answer that names the bystander's
	// ports.
	mostChecks = 100
	// bystanderTime is the time for which they are counted: a server without a limit sends a check to each of 64 ports
	// every 50 ms.
	bystanderTime = 2 * time.Second
)

func TestHostileSTUNAndDTLSDoNotStopOthers(t *testing.T) {
	long.Test(t)
	r := open(t)
	r.endure(t, []mischief{
		{"behaves", behave},
		{"sends an empty fragment beyond the start", sendEmptyFragments},
		{"sends mutated DTLS", sendMutatedDTLS},
		{"sends handshake messages after the handshake", sendMessages},
		{"replays a STUN request", replaySTUN},
		{"sends mutated STUN", sendMutatedSTUN},
		{"sends SCTP fragments without content", sendEmptySCTP},
		{"opens channels without end", openChannels},
		{"sends garbage for SCTP", sendGarbageSCTP},
		{"names a bystander in one answer", nameBystander},
		{"names a bystander in many answers", nameBystanderOften},
		{"names the others' addresses", nameOthers},
	})
}

// intrude lets an intruder join a separate room.
func (r *room) intrude(t testing.TB, join signal.Join) *intruder.Intruder {
	t.Helper()
	ctx, cancel := contextWithPatience()
	defer cancel()
	i, err := intruder.Join(ctx, intruder.Config{URL: r.Server.URL()}, join)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(i.Close)
	return i
}

// reach is intrude for an intruder with data channels that is connected by ICE.
func (r *room) reach(t testing.TB) (*intruder.Intruder, *intruder.Path) {
	t.Helper()
	i := r.intrude(t, signal.Join{DataChannel: true})
	ctx, cancel := contextWithPatience()
	defer cancel()
	p, err := i.Reach(ctx)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.End)
	return i, p
}

// secure is reach with complete handshakes of DTLS and SCTP.
func (r *room) secure(t testing.TB) (*intruder.Intruder, *intruder.Path, *intruder.Association) {
	t.Helper()
	i, p := r.reach(t)
	ctx, cancel := contextWithPatience()
	defer cancel()
	conn, err := p.Handshake(ctx)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	a, err := intruder.Associate(ctx, conn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Abort)
	return i, p, a
}

// answersChecks waits until the server answers a check of the intruder's.
func answersChecks(t testing.TB, i *intruder.Intruder, p *intruder.Path) {
	t.Helper()
	before := p.Replies()
	wait.Until(t, "the server answers a check", func() bool {
		_, _ = p.WriteToUDPAddrPort(i.Request(), p.Server)
		return p.Replies() > before
	})
}

// heap returns the heap in use after a collection, in bytes.
func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// withinHeap performs an action, and fails the test if the heap has grown too much right after it.
func withinHeap(t *testing.T, do func()) {
	t.Helper()
	before := heap()
	do()
	if grown := heap() - before; grown > mostHeap {
		t.Errorf("the heap has grown by %d MiB, expected at most %d MiB", grown>>20, mostHeap>>20)
	}
}

func sendEmptyFragments(t *testing.T, r *room) {
	_, p := r.reach(t)
	for n := range uint16(20) {
		_, _ = p.WriteTo(intruder.EmptyBeyondStart(n), nil)
	}
	i, p := r.reach(t)
	ctx, cancel := contextWithPatience()
	defer cancel()
	conn, err := p.Handshake(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for n := range uint16(20) {
		_, _ = p.WriteTo(intruder.EmptyBeyondStart(n), nil)
	}
	answersChecks(t, i, p)
	_ = conn.Close()
}

// mutations is the number of mutated records or requests per connection: enough for some that are almost valid.
const mutations = 2000

func sendMutatedDTLS(t *testing.T, r *room) {
	m := intruder.NewMutator(5)
	buffer := make([]byte, 2048)
	for n := range 6 {
		i, p := r.reach(t)
		if n%2 == 0 {
			ctx, cancel := contextWithPatience()
			conn, err := p.Handshake(ctx)
			cancel()
			if err != nil {
				t.Fatal(err)
			}
			for _, record := range p.Sent() {
				m.Learn(record)
			}
			defer func() { _ = conn.Close() }()
		}
		for range mutations {
			_, _ = p.WriteTo(buffer[:m.Next(buffer)], nil)
		}
		// A server that has ended the connection for a bad record answers no check on it, but accepts a new one.
		i.Close()
		p.End()
	}
	i, p := r.reach(t)
	answersChecks(t, i, p)
}

// sendMessages sends messages with all available numbers, 85 MB.
func sendMessages(t *testing.T, r *room) {
	i, p, _ := r.secure(t)
	body := make([]byte, 1300)
	withinHeap(t, func() {
		for n := 6; n < 1<<16; n++ {
			message := intruder.Fragment(intruder.CertificateMessage, uint16(n), uint32(len(body)), 0, body)
			_, _ = p.WriteTo(intruder.Record(intruder.Handshake, uint64(1000+n), message), nil)
			// Data that is sent too quickly is lost, and no later data is kept.
			if n%256 == 0 {
				answersChecks(t, i, p)
			}
		}
	})
}

// replays is the number of repetitions of a request: without a limit each of 100,000 takes 8 KiB.
const replays = 100_000

func replaySTUN(t *testing.T, r *room) {
	i, p := r.reach(t)
	request := i.Request()
	batch := ipv4.NewPacketConn(p.UDPConn)
	messages := make([]ipv4.Message, 50)
	for n := range messages {
		messages[n] = ipv4.Message{Buffers: [][]byte{request}, Addr: net.UDPAddrFromAddrPort(p.Server)}
	}
	withinHeap(t, func() {
		for range replays / len(messages) {
			_, _ = batch.WriteBatch(messages, 0)
			// At full speed the socket's buffer would overflow, and lose the others' packets.
			time.Sleep(time.Millisecond)
		}
	})
}

func sendMutatedSTUN(t *testing.T, r *room) {
	i, p := r.reach(t)
	m := rand.New(rand.NewPCG(6, 7))
	for range mutations {
		request := i.Request()
		for range 1 + m.IntN(4) {
			switch at := m.IntN(len(request)); m.IntN(4) {
			case 0:
				request = request[:at]
			case 1:
				request = append(request, request[at:]...)
			default:
				request[at] ^= 1 << m.IntN(8)
			}
			if len(request) == 0 {
				request = []byte{0}
			}
		}
		_, _ = p.WriteToUDPAddrPort(request[:min(len(request), 1400)], p.Server)
	}
	i, p = r.reach(t)
	answersChecks(t, i, p)
}

// sendSCTP sends packets until the given number of chunks is sent or the server has ended the association.
// Unacknowledged chunks are sent again. It returns the number of acknowledged chunks.
func sendSCTP(t *testing.T, a *intruder.Association, kind intruder.Packets, chunks uint32) (taken uint32, ended bool) {
	t.Helper()
	first := a.Next()
	// rounds limits the sending to a server that acknowledges nothing.
	const rounds = 50
	sent, idle := uint32(0), 0
	for sent < chunks && idle < rounds {
		before := a.Acknowledged()
		for n := range uint32(10) {
			if a.Send(kind.Packet(a.Tag(), before+1+n*kind.Chunks)) != nil {
				return a.Acknowledged() + 1 - first, true
			}
		}
		select {
		case <-a.Ended():
			return a.Acknowledged() + 1 - first, true
		case <-time.After(10 * time.Millisecond):
		}
		if idle++; a.Acknowledged() != before {
			idle = 0
		}
		sent = a.Acknowledged() + 1 - first
	}
	select {
	case <-a.Ended():
		ended = true
	default:
	}
	return a.Acknowledged() + 1 - first, ended
}

func sendEmptySCTP(t *testing.T, r *room) {
	_, _, a := r.secure(t)
	taken, ended := sendSCTP(t, a, intruder.EmptyFragments, 4*mostFragments)
	if !ended && taken > mostFragments {
		t.Errorf("%d empty fragments were taken, expected at most %d, or the association's end", taken, mostFragments)
	}
}

func openChannels(t *testing.T, r *room) {
	const channels = 1000
	_, _, a := r.secure(t)
	taken, ended := sendSCTP(t, a, intruder.OpenedChannels, channels)
	if !ended && taken >= channels {
		t.Errorf("the server has let %d channels be opened on an association, expected its end after some 64", taken)
	}
}

// sendGarbageSCTP sends chunks of every type with any content.
func sendGarbageSCTP(t *testing.T, r *room) {
	m := rand.New(rand.NewPCG(6, 7))
	for range 5 {
		_, _, a := r.secure(t)
		for range mutations / 5 {
			body := make([]byte, 4*m.IntN(100))
			for k := range body {
				body[k] = byte(m.Uint32())
			}
			if a.Send(intruder.Garbage(a.Tag(), byte(m.IntN(16)), byte(m.Uint32()), body)) != nil {
				break
			}
		}
	}
	i, p := r.reach(t)
	answersChecks(t, i, p)
}

// bystander has sockets of a host that does not take part, and counts their datagrams.
type bystander struct {
	conns     []*net.UDPConn
	addresses []netip.AddrPort
}

func newBystander(t *testing.T, ports int) *bystander {
	t.Helper()
	b := &bystander{}
	for range ports {
		conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		b.conns, b.addresses = append(b.conns, conn), append(b.addresses, conn.LocalAddr().(*net.UDPAddr).AddrPort())
	}
	return b
}

// count reads the datagrams received so far.
func (b *bystander) count() (n int) {
	buffer := make([]byte, 2048)
	for _, conn := range b.conns {
		// With a deadline in the past, the kernel's queue is not read.
		_ = conn.SetReadDeadline(time.Now().Add(time.Millisecond))
		for {
			if _, err := conn.Read(buffer); err != nil {
				break
			}
			n++
		}
	}
	return n
}

func nameBystander(t *testing.T, r *room) {
	b := newBystander(t, 64)
	i := r.intrude(t, signal.Join{DataChannel: true})
	answerNext(t, i, b.addresses)
	time.Sleep(bystanderTime)
	if n := b.count(); n > mostChecks {
		t.Errorf("%d datagrams arrived at a bystander within %v, expected at most %d", n, bystanderTime, mostChecks)
	}
}

// answerNext answers the server's next offer with candidates. It reports whether there was one.
func answerNext(t *testing.T, i *intruder.Intruder, candidates []netip.AddrPort) bool {
	t.Helper()
	ctx, cancel := contextWithPatience()
	defer cancel()
	offer, err := i.Offer(ctx)
	if errors.Is(err, intruder.ErrRefused) {
		return false
	}
	if err != nil {
		t.Fatal(err)
	}
	return i.Answer(offer, candidates...) == nil
}

func nameBystanderOften(t *testing.T, r *room) {
	const answers = 8
	b := newBystander(t, 64*answers)
	i := r.intrude(t, signal.Join{DataChannel: true})
	for n := range answers {
		if !answerNext(t, i, b.addresses[64*n:64*(n+1)]) {
			break
		}
		voice := volumetric.Publication{
			Name: fmt.Sprintf("voice %d", n), Kind: volumetric.KindAudio, Mode: volumetric.ModeAlternatives,
			Codec: volumetric.Codec{MIMEType: "audio/opus", ClockRate: 48_000, Channels: 2},
			Tiles: make([]volumetric.Tile, 1), Qualities: make([]volumetric.QualityLevel, 1),
		}
		if n < answers-1 && i.Send(&signal.Publish{Publication: voice}) != nil {
			break
		}
	}
	time.Sleep(bystanderTime)
	if n, most := b.count(), answers*mostChecks; n > most {
		t.Errorf("%d datagrams arrived at a bystander after %d answers, expected at most %d", n, answers, most)
	}
}

// nameOthers uses the media addresses of the four as candidates.
func nameOthers(t *testing.T, r *room) {
	var theirs []netip.AddrPort
	for _, name := range r.names {
		theirs = append(theirs, r.addresses[name])
	}
	for range 4 {
		answerNext(t, r.intrude(t, signal.Join{DataChannel: true}), theirs)
	}
	time.Sleep(bystanderTime)
	for _, name := range r.names {
		if n := r.peers[name].Count("resumed"); n > 0 {
			t.Errorf("%s had to resume %d times", name, n)
		}
	}
}

// TestForgedSourcesDoNoHarm lets an outsider without a token send datagrams with the source address of another
// participant.
func TestForgedSourcesDoNoHarm(t *testing.T) {
	long.Test(t)
	raw := forger(t)
	r := open(t)
	media := r.intrude(t, signal.Join{DataChannel: true})
	wait.Until(t, "the server sends its media addresses", func() bool { return media.Media().IsValid() })
	resumed := map[string]int{}
	for _, forged := range []struct {
		name   string
		record func(n uint16) []byte
	}{
		{"empty fragments", intruder.EmptyBeyondStart},
		{"application data", func(n uint16) []byte {
			return intruder.Record(intruder.ApplicationData, 0x1000+uint64(n), []byte("hello"))
		}},
		{"alerts", func(uint16) []byte { return intruder.CloseNotify() }},
	} {
		t.Run(forged.name, func(t *testing.T) {
			suffered := r.during(t, func(t *testing.T) {
				for _, victim := range r.names {
					for n := range uint16(20) {
						raw(t, r.addresses[victim], media.Media(), forged.record(n))
					}
				}
			})
			suffered.expectNone(t)
			for _, victim := range r.names {
				n := r.peers[victim].Count("resumed")
				if n > resumed[victim] {
					t.Errorf("%s had to resume %d times, expected none", victim, n-resumed[victim])
				}
				resumed[victim] = n
			}
		})
	}
}

// forger returns a function that sends datagrams with any source. It skips the test if this is not permitted.
func forger(t *testing.T) func(t *testing.T, from, to netip.AddrPort, data []byte) {
	t.Helper()
	conn, err := net.ListenPacket("ip4:udp", "127.0.0.1")
	if errors.Is(err, os.ErrPermission) {
		t.Skipf("skipped: a raw socket takes root: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	raw, err := ipv4.NewRawConn(conn)
	if err != nil {
		t.Fatal(err)
	}
	return func(t *testing.T, from, to netip.AddrPort, data []byte) {
		t.Helper()
		datagram := append([]byte{
			byte(from.Port() >> 8), byte(from.Port()), byte(to.Port() >> 8), byte(to.Port()),
			byte((8 + len(data)) >> 8), byte(8 + len(data)), 0, 0,
		}, data...)
		header := &ipv4.Header{
			Version: 4, Len: ipv4.HeaderLen, TotalLen: ipv4.HeaderLen + len(datagram), TTL: 64, Protocol: 17,
			Src: from.Addr().AsSlice(), Dst: to.Addr().AsSlice(),
		}
		if err := raw.WriteTo(header, datagram, nil); err != nil {
			t.Fatal(err)
		}
	}
}
