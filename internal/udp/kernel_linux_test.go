package udp

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// systemVariants are kernels with fewer features than this one, and one with few messages per call.
func systemVariants() []variant {
	return []variant{
		able("without segmenting", func(use *abilities) { use.segmenting = false }),
		able("without coalescing", func(use *abilities) { use.coalescing = false }),
		able("without an epoll", func(use *abilities) { use.watching = false }),
		calling("full every third time", full),
		able("without codepoints", func(use *abilities) { use.settingECN, use.reportingECN = false, false }),
		calling("runs refused by the device", refusing(unix.EIO)),
		calling("runs refused for the peer", refusing(unix.EINVAL)),
		calling("interrupted, one at a time", interrupted),
	}
}

// able opens ports with Listen and the given features.
func able(name string, change func(use *abilities)) variant {
	return variant{name, func(t testing.TB, c Config) *Port {
		use := wanted(c)
		change(&use)
		return opened(t)(listenWith(c, use))
	}}
}

// calling opens ports with Listen and another call for sending.
func calling(name string, change func(multiCall) multiCall) variant {
	return variant{name, func(t testing.TB, c Config) *Port {
		p := opened(t)(Listen(c))
		for _, s := range p.Sockets() {
			s.kernel.sendmmsg = change(s.kernel.sendmmsg)
		}
		return p
	}}
}

// full is a kernel whose send buffer has no space for every third call, the first among them.
func full(call multiCall) multiCall {
	var calls atomic.Uint32
	return func(fd uintptr, headers []unix.Mmsghdr) (int, syscall.Errno) {
		if calls.Add(1)%3 == 1 {
			return 0, unix.EAGAIN
		}
		return call(fd, headers)
	}
}

// refusing is a kernel that refuses segmented runs.
func refusing(err syscall.Errno) func(multiCall) multiCall {
	return refusingWhere(isRun, err)
}

// refusingWhere is a kernel that refuses some messages. As the real one, it reports an error only if the first message
// is refused.
func refusingWhere(which func(*unix.Mmsghdr) bool, err syscall.Errno) func(multiCall) multiCall {
	return func(call multiCall) multiCall {
		return func(fd uintptr, headers []unix.Mmsghdr) (int, syscall.Errno) {
			for i := range headers {
				if !which(&headers[i]) {
					continue
				}
				if i == 0 {
					return 0, err
				}
				return call(fd, headers[:i])
			}
			return call(fd, headers)
		}
	}
}

// isRun reports whether a message is segmented: the segment length is the first control message.
func isRun(header *unix.Mmsghdr) bool {
	if header.Hdr.Controllen == 0 {
		return false
	}
	first := (*unix.Cmsghdr)(unsafe.Pointer(header.Hdr.Control))
	return first.Level == unix.SOL_UDP && first.Type == unix.UDP_SEGMENT
}

// interrupted is a kernel that sends one message with every other call, and is interrupted in the others.
func interrupted(call multiCall) multiCall {
	var calls atomic.Uint32
	return func(fd uintptr, headers []unix.Mmsghdr) (int, syscall.Errno) {
		if calls.Add(1)%2 == 1 {
			return 0, unix.EINTR
		}
		return call(fd, headers[:1])
	}
}

// TestCoalescedRuns expects runs to arrive as they were sent, with their segment size, and a whole Send to take one
// system call.
func TestCoalescedRuns(t *testing.T) {
	from, to := opened(t)(Listen(Config{Address: loopback4})), opened(t)(Listen(Config{Address: loopback4}))
	if !from.Sockets()[0].kernel.segmenting.Load() || !option(t, to, unix.UDP_GRO) {
		t.Skip("this kernel has no UDP_SEGMENT or UDP_GRO")
	}
	sent := []Message{
		run(to.Address(), 0, 10, 1000, 1000),
		run(to.Address(), 10, 1, 70, 70),
		run(to.Address(), 11, 43, 1200, 500),
		run(to.Address(), 54, 2, 1200, 1),
	}
	send(t, from, sent...)
	in := NewInbox()
	if err := to.Sockets()[0].Receive(in); err != nil {
		t.Fatal(err)
	}
	if len(in.Messages()) != len(sent) {
		t.Fatalf("%d messages, expected %d", len(in.Messages()), len(sent))
	}
	for i, got := range in.Messages() {
		if got.Peer != from.Address() || got.Segment != sent[i].Segment || !bytes.Equal(got.Data, sent[i].Data) {
			t.Errorf("message %d: %d bytes in segments of %d from %v, expected %d in %d from %v",
				i, len(got.Data), got.Segment, got.Peer, len(sent[i].Data), sent[i].Segment, from.Address())
		}
	}
	if got := from.Stats(); got != (Stats{Sent: 56, SentECN: CodepointCounts{56}, Sends: 1, Runs: 4}) {
		t.Errorf("the sender counts %+v", got)
	}
	if got := to.Stats(); got != (Stats{Received: 56, ReceivedECN: CodepointCounts{56}, Receives: 1}) {
		t.Errorf("the receiver counts %+v", got)
	}
}

// option reads a boolean option of UDP.
func option(t *testing.T, p *Port, number int) bool {
	value := 0
	if err := p.Sockets()[0].kernel.Control(func(fd uintptr) {
		value, _ = unix.GetsockoptInt(int(fd), unix.SOL_UDP, number)
	}); err != nil {
		t.Fatal(err)
	}
	return value != 0
}

// TestPlainOptions expects plain receiving to leave UDP_GRO off: a coalesced run would be received as one datagram.
func TestPlainOptions(t *testing.T) {
	if option(t, opened(t)(Listen(Config{Address: loopback4, PlainReceiving: true})), unix.UDP_GRO) {
		t.Error("UDP_GRO is on")
	}
}

func TestMissingCall(t *testing.T) {
	missing := func(uintptr, []unix.Mmsghdr) (int, syscall.Errno) { return 0, unix.ENOSYS }
	if works(missing, 0) {
		t.Error("a call that the kernel does not have counts as working")
	}
}

// TestRefusedRuns checks when a socket gives up segmenting.
func TestRefusedRuns(t *testing.T) {
	tests := []struct {
		err                syscall.Errno
		worked             bool // before
		delivered, further bool // whether the datagrams arrive, and whether segmenting stays on
	}{
		{unix.EIO, false, true, false},
		{unix.EIO, true, true, true},
		{unix.EOPNOTSUPP, false, true, false},
		{unix.ENOPROTOOPT, false, true, false},
		{unix.EINVAL, false, true, true},
		{unix.EMSGSIZE, false, true, true},
		{unix.EMSGSIZE, true, true, true},
		{unix.EPERM, false, false, true},
		{unix.ENETUNREACH, false, false, true},
		{unix.EHOSTUNREACH, false, false, true},
		{unix.ECONNREFUSED, false, false, true},
	}
	for _, test := range tests {
		t.Run(fmt.Sprintf("%v, worked %v", test.err, test.worked), func(t *testing.T) {
			from, to := opened(t)(Listen(Config{Address: loopback4})), opened(t)(Listen(Config{Address: loopback4}))
			s := from.Sockets()[0]
			if !s.kernel.segmenting.Load() {
				t.Skip("this kernel has no UDP_SEGMENT")
			}
			if test.worked {
				send(t, from, run(to.Address(), 0, 2, 100, 100))
				take(t, to, to.Sockets()[0], 2)
			}
			before := from.Stats()
			s.kernel.sendmmsg = refusing(test.err)(s.kernel.sendmmsg)
			messages := []Message{run(to.Address(), 0, 1, 30, 30), run(to.Address(), 1, 5, 100, 60),
				run(to.Address(), 6, 1, 30, 30)}
			send(t, from, messages...)
			want, errors := messages, uint64(0)
			if !test.delivered {
				want, errors = []Message{messages[0], messages[2]}, 5
			}
			same(t, take(t, to, to.Sockets()[0], 7-int(errors)), from.Address(), want...)
			if got := from.Stats(); got.SendErrors != errors || got.Sent-before.Sent != 7-errors || got.Runs-
				before.Runs != 7-errors {
				t.Errorf("expected %d errors and %d sent singly: %+v", errors, 7-errors, got)
			}
			if got := s.kernel.segmenting.Load(); got != test.further {
				t.Errorf("segmenting is %v, expected %v", got, test.further)
			}
		})
	}
}

// TestRefusedPeer expects that one unreachable peer does not affect others of the same call.
func TestRefusedPeer(t *testing.T) {
	from, to := opened(t)(Listen(Config{Address: loopback4})), opened(t)(Listen(Config{Address: loopback4}))
	s := from.Sockets()[0]
	s.kernel.sendmmsg = refusingWhere(func(header *unix.Mmsghdr) bool { return header.Hdr.Iov.Len%100 != 0 },
		unix.EHOSTUNREACH)(s.kernel.sendmmsg)
	good := []Message{run(to.Address(), 0, 2, 200, 200), run(to.Address(), 2, 1, 300, 300)}
	bad := []Message{run(to.Address(), 0, 3, 200, 50), run(to.Address(), 0, 1, 50, 50)}
	send(t, from, bad[0], good[0], bad[1], bad[0], good[1], bad[1])
	same(t, take(t, to, to.Sockets()[0], 3), from.Address(), good...)
	if got := from.Stats(); got.Sent != 3 || got.SendErrors != 8 {
		t.Errorf("expected 3 sent and 8 errors: %+v", got)
	}
}

// TestPassingErrors expects Receive to continue after errors of a peer, and to return other errors.
func TestPassingErrors(t *testing.T) {
	p := opened(t)(Listen(Config{Address: loopback4}))
	s := p.Sockets()[0]
	errors := []syscall.Errno{unix.ECONNREFUSED, unix.EHOSTUNREACH, unix.ENETUNREACH, unix.EMSGSIZE, unix.EINTR}
	next := s.kernel.recvmmsg
	s.kernel.recvmmsg = func(fd uintptr, headers []unix.Mmsghdr) (int, syscall.Errno) {
		if len(errors) == 0 {
			return next(fd, headers)
		}
		err := errors[0]
		errors = errors[1:]
		return 0, err
	}
	message := run(p.Address(), 0, 3, 100, 90)
	send(t, p, message)
	same(t, take(t, p, s, 3), p.Address(), message)
	errors = []syscall.Errno{unix.ENETUNREACH, unix.EBADF}
	if err := s.Receive(NewInbox()); err == nil || !strings.Contains(err.Error(), unix.EBADF.Error()) {
		t.Errorf("%v, expected %v", err, unix.EBADF)
	}
}

func TestBuffers(t *testing.T) {
	const asked = 1 << 20
	for _, plain := range []bool{false, true} {
		p := opened(t)(Listen(Config{Address: loopback4, Sockets: 2, ReceiveBuffer: asked, SendBuffer: asked,
			PlainReceiving: plain, PlainSending: plain}))
		for _, buffer := range []struct {
			name, limit string
			granted     int
		}{
			{"receive", "rmem_max", p.ReceiveBuffer()},
			{"send", "wmem_max", p.SendBuffer()},
		} {
			text, err := os.ReadFile("/proc/sys/net/core/" + buffer.limit)
			if err != nil {
				t.Fatal(err)
			}
			limit, err := strconv.Atoi(strings.TrimSpace(string(text)))
			if err != nil {
				t.Fatal(err)
			}
			if buffer.granted > asked || buffer.granted < min(asked, limit) {
				t.Errorf("%s buffer of %d bytes, expected %d to %d", buffer.name, buffer.granted,
					min(asked, limit), asked)
			}
		}
	}
	if p := opened(t)(Listen(Config{Address: loopback4})); p.ReceiveBuffer() <= 0 || p.SendBuffer() <= 0 {
		t.Errorf("buffers of %d and %d bytes, expected the system's default", p.ReceiveBuffer(), p.SendBuffer())
	}
}

// TestReceiveDrops overflows a receive buffer. The number of drops is also known after the port is closed.
func TestReceiveDrops(t *testing.T) {
	const sent = 500
	from := opened(t)(Listen(Config{Address: loopback4}))
	to := opened(t)(Listen(Config{Address: loopback4, ReceiveBuffer: 1 << 14, PlainReceiving: true}))
	for i := range sent / 10 {
		send(t, from, run(to.Address(), 10*i, 10, 1000, 1000))
	}
	drops := to.Stats().ReceiveDrops
	if drops == 0 || drops >= sent {
		t.Fatalf("%d of %d dropped, expected some", drops, sent)
	}
	take(t, to, to.Sockets()[0], sent-int(drops))
	if err := to.Close(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if got := to.Stats(); got.ReceiveDrops != drops || got.Received != sent-drops {
			t.Errorf("expected %d received and %d dropped of %d: %+v", sent-drops, drops, sent, got)
		}
	}
}

// TestPortNotShared expects that no other socket of the same user with SO_REUSEPORT shares the port.
func TestPortNotShared(t *testing.T) {
	shared := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error {
		return setInt(raw, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
	}}
	other, err := shared.ListenPacket(t.Context(), "udp4", loopback4.String())
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	taken := other.LocalAddr().(*net.UDPAddr).AddrPort()
	p, err := Listen(Config{Address: taken, Sockets: 2})
	if err == nil {
		_ = p.Close()
		t.Fatal("shares a port with a stranger")
	}
	if !strings.Contains(err.Error(), taken.String()) {
		t.Errorf("%v, expected it to name %v", err, taken)
	}
}
