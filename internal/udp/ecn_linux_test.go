package udp

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/volsfu/volsfu/internal/ecn"
)

// bothFamilies is the address of a socket that receives IPv6 and IPv4.
var bothFamilies = netip.AddrPortFrom(netip.IPv6Unspecified(), 0)

// codepoints are all of them.
var codepoints = []ecn.Codepoint{ecn.NotECT, ecn.ECT1, ecn.ECT0, ecn.CE}

// marked returns a run with a codepoint.
func marked(m Message, codepoint ecn.Codepoint) Message {
	m.ECN = codepoint
	return m
}

// stamped returns a run with a request for its departure time.
func stamped(m Message) Message {
	m.Stamped = true
	return m
}

// arrival is a received datagram with its codepoint.
type arrival struct {
	number  uint32
	length  int
	ecn     ecn.Codepoint
	stamped bool
}

// arrivals receives a number of datagrams made by run, in order. It also returns the number of messages that had them.
func arrivals(t testing.TB, p *Port, count int) (got []arrival, messages int) {
	t.Helper()
	timer := time.AfterFunc(patience, func() { _ = p.Close() })
	defer timer.Stop()
	for in := NewInbox(); len(got) < count; {
		if err := p.Sockets()[0].Receive(in); err != nil {
			t.Fatalf("after %d of %d datagrams: %v", len(got), count, err)
		}
		for _, m := range in.Messages() {
			messages++
			for d := range m.Datagrams() {
				got = append(got, arrival{binary.BigEndian.Uint32(d), len(d), m.ECN, m.Arrived.Kernel != 0})
			}
		}
	}
	return got, messages
}

// sentAs returns the arrivals expected of messages.
func sentAs(messages ...Message) (want []arrival) {
	for _, m := range messages {
		for d := range m.Datagrams() {
			want = append(want, arrival{number: binary.BigEndian.Uint32(d), length: len(d), ecn: m.ECN})
		}
	}
	return want
}

// sameCodepoints compares arrivals, in order, except for timestamps.
func sameCodepoints(t *testing.T, got, want []arrival) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d datagrams, expected %d", len(got), len(want))
	}
	for i := range want {
		if got[i].number != want[i].number || got[i].length != want[i].length || got[i].ecn != want[i].ecn {
			t.Fatalf("datagram %d arrived as number %d with %d bytes and %v, expected number %d with %d bytes and "+
				"%v", i,
				got[i].number, got[i].length, got[i].ecn, want[i].number, want[i].length, want[i].ecn)
		}
	}
}

// TestCodepoints sends single datagrams and runs with every codepoint, with and without a request for timestamps, to a
// socket of both families and to sockets of one.
func TestCodepoints(t *testing.T) {
	on6(t)
	for _, test := range []struct {
		name     string
		from, to netip.AddrPort
		peer     netip.Addr
	}{
		{"IPv4", loopback4, loopback4, loopback4.Addr()},
		{"IPv6", loopback6, loopback6, loopback6.Addr()},
		{"IPv4 between sockets of both families", bothFamilies, bothFamilies, loopback4.Addr()},
		{"mapped", bothFamilies, loopback4, netip.AddrFrom16(loopback4.Addr().As16())},
		{"IPv6 between sockets of both families", bothFamilies, bothFamilies, loopback6.Addr()},
	} {
		t.Run(test.name, func(t *testing.T) {
			from, to := opened(t)(Listen(Config{Address: test.from})), opened(t)(Listen(Config{Address: test.to}))
			if !from.Sockets()[0].kernel.settingECN.Load() {
				t.Skip("this kernel has no sendmmsg")
			}
			stamps := from.Sockets()[0].TakeStamps(true) && to.Sockets()[0].TakeStamps(true)
			peer := netip.AddrPortFrom(test.peer, to.Address().Port())
			var sent []Message
			var counts CodepointCounts
			for round := range 3 {
				for _, codepoint := range codepoints {
					single := marked(run(peer, len(sent), 1, 100+len(sent), 100+len(sent)), codepoint)
					many := marked(run(peer, 1000*len(sent), 7, 900, 500), codepoint)
					if round > 0 {
						many = stamped(many)
					}
					if round > 1 {
						single = stamped(single)
					}
					sent = append(sent, single, many)
					counts[codepoint] += 8
				}
			}
			send(t, from, sent...)
			want := sentAs(sent...)
			got, _ := arrivals(t, to, len(want))
			sameCodepoints(t, got, want)
			if stats := from.Stats(); stats.SentECN != counts || stats.Sent != counts.Sum() || stats.SendErrors != 0 {
				t.Errorf("the sender counts %+v, expected %v", stats, counts)
			}
			if stats := to.Stats(); stats.ReceivedECN != counts || stats.Received != counts.Sum() {
				t.Errorf("the receiver counts %+v, expected %v", stats, counts)
			}
			if !stamps {
				return
			}
			// 4 codepoints: runs of the last two rounds, and single datagrams of the last.
			departures := 0
			for in := NewInbox(); departures < 12; departures += len(in.Departures()) {
				if err := from.Sockets()[0].Receive(in); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// controlsOf returns the control messages of a message.
func controlsOf(t testing.TB, header *unix.Mmsghdr) []unix.SocketControlMessage {
	t.Helper()
	if header.Hdr.Controllen == 0 {
		return nil
	}
	messages, err := unix.ParseSocketControlMessage(
		unsafe.Slice(header.Hdr.Control, int(header.Hdr.Controllen)))
	if err != nil {
		t.Fatal(err)
	}
	return messages
}

// has returns a function that reports whether a message has a control message of one of the given levels and types.
func has(t testing.TB, kinds ...[2]int32) func(*unix.Mmsghdr) bool {
	return func(header *unix.Mmsghdr) bool {
		return slices.ContainsFunc(controlsOf(t, header), func(m unix.SocketControlMessage) bool {
			return slices.Contains(kinds, [2]int32{m.Header.Level, m.Header.Type})
		})
	}
}

// The kinds of control messages.
var (
	segmentKind = [2]int32{unix.SOL_UDP, unix.UDP_SEGMENT}
	tosKind     = [2]int32{unix.SOL_IP, unix.IP_TOS}
	classKind   = [2]int32{unix.SOL_IPV6, unix.IPV6_TCLASS}
	stampKind   = [2]int32{unix.SOL_SOCKET, unix.SO_TIMESTAMPING_NEW}
)

// TestControls checks the control messages of every kind of run.
func TestControls(t *testing.T) {
	mapped := netip.AddrPortFrom(netip.AddrFrom16(loopback4.Addr().As16()), 5)
	for _, peer := range []netip.AddrPort{loopback4, mapped, loopback6} {
		for subset := range 8 {
			m := Message{Peer: peer, Data: make([]byte, 1000), Segment: 1000}
			kinds, values := [][2]int32(nil), []uint32(nil)
			if subset&1 != 0 {
				m.Segment = 300
				kinds, values = append(kinds, segmentKind), append(values, 300)
			}
			if subset&2 != 0 {
				m.ECN = ecn.CE
				kind := tosKind
				if peer == loopback6 {
					kind = classKind
				}
				kinds, values = append(kinds, kind), append(values, uint32(ecn.CE))
			}
			if subset&4 != 0 {
				m.Stamped = true
				kinds, values = append(kinds, stampKind), append(values, askedStamps)
			}
			// The memory has the controls of an earlier run.
			var controls sendControls
			controls.set(&Message{Peer: loopback6, Data: make([]byte, 9), Segment: 1, ECN: ecn.ECT0, Stamped: true})
			header := unix.Mmsghdr{Hdr: unix.Msghdr{Control: (*byte)(unsafe.Pointer(&controls))}}
			header.Hdr.SetControllen(controls.set(&m))
			got := controlsOf(t, &header)
			if len(got) != len(kinds) {
				t.Fatalf("%v, subset %d: %d control messages, expected %d", peer, subset, len(got), len(kinds))
			}
			for i, c := range got {
				value := uint32(0)
				switch len(c.Data) {
				case 2:
					value = uint32(binary.NativeEndian.Uint16(c.Data))
				case 4:
					value = binary.NativeEndian.Uint32(c.Data)
				}
				if kind := [2]int32{c.Header.Level, c.Header.Type}; kind != kinds[i] || value != values[i] {
					t.Errorf("%v, subset %d: control %d is %v with %d, expected %v with %d", peer, subset, i, kind,
						value,
						kinds[i], values[i])
				}
			}
		}
	}
}

// TestParseControls parses the codepoint between other control messages.
func TestParseControls(t *testing.T) {
	message := func(level, kind int32, data ...byte) []byte {
		b := make([]byte, unix.CmsgSpace(len(data)))
		header := (*unix.Cmsghdr)(unsafe.Pointer(&b[0]))
		header.Level, header.Type = level, kind
		header.SetLen(unix.CmsgLen(len(data)))
		copy(b[unix.CmsgLen(0):], data)
		return b
	}
	number := func(value uint32) []byte { return binary.NativeEndian.AppendUint32(nil, value) }
	gro := message(unix.SOL_UDP, unix.UDP_GRO, number(1200)...)
	for _, test := range []struct {
		name     string
		controls []byte
		want     controlFacts
	}{
		{"nothing", nil, controlFacts{}},
		{"TOS with DSCP", message(unix.SOL_IP, unix.IP_TOS, 0xb9), controlFacts{ecn: ecn.ECT1}},
		{"traffic class with DSCP", message(unix.SOL_IPV6, unix.IPV6_TCLASS, number(0xba)...),
			controlFacts{ecn: ecn.ECT0}},
		{
			"run, TOS", slices.Concat(gro, message(unix.SOL_IP, unix.IP_TOS, 3)),
			controlFacts{segment: 1200, ecn: ecn.CE},
		},
		{"traffic class, run", slices.Concat(message(unix.SOL_IPV6, unix.IPV6_TCLASS, number(1)...), gro),
			controlFacts{segment: 1200, ecn: ecn.ECT1}},
		{"TOS without data", slices.Concat(message(unix.SOL_IP, unix.IP_TOS), gro), controlFacts{segment: 1200}},
		{"short traffic class", slices.Concat(message(unix.SOL_IPV6, unix.IPV6_TCLASS, 3, 3, 3), gro),
			controlFacts{segment: 1200}},
		{"option of another level", message(unix.SOL_UDP, unix.IP_TOS, 3), controlFacts{}},
		{"truncated", message(unix.SOL_IP, unix.IP_TOS, 3)[:unix.CmsgLen(0)], controlFacts{}},
	} {
		if got := parseControls(test.controls); got != test.want {
			t.Errorf("%s: %+v, expected %+v", test.name, got, test.want)
		}
	}
}

// TestRefusedCodepoints: a socket gives up codepoints if the kernel refuses them, and for no other reason. Nothing is
// lost.
func TestRefusedCodepoints(t *testing.T) {
	ecnKinds := [][2]int32{tosKind, classKind}
	for _, test := range []struct {
		name    string
		refused [][2]int32
		err     syscall.Errno
		// The features afterwards.
		settingECN, segmenting, stamping bool
	}{
		{"codepoints", ecnKinds, unix.EINVAL, false, true, true},
		{"codepoints, ENOPROTOOPT", ecnKinds, unix.ENOPROTOOPT, false, true, true},
		{"codepoints, EOPNOTSUPP", ecnKinds, unix.EOPNOTSUPP, false, true, true},
		{"runs of a peer", [][2]int32{segmentKind}, unix.EINVAL, true, true, true},
		{"runs of a peer, EMSGSIZE", [][2]int32{segmentKind}, unix.EMSGSIZE, true, true, true},
		{"runs", [][2]int32{segmentKind}, unix.EIO, true, false, true},
		{"runs, EOPNOTSUPP", [][2]int32{segmentKind}, unix.EOPNOTSUPP, true, false, true},
		{"stamps", [][2]int32{stampKind}, unix.EINVAL, true, true, false},
		{"stamps, EPERM", [][2]int32{stampKind}, unix.EPERM, true, true, false},
		{"stamps and codepoints", [][2]int32{stampKind, tosKind, classKind}, unix.EINVAL, false, true, false},
		{"everything", [][2]int32{segmentKind, stampKind, tosKind, classKind}, unix.EINVAL, false, true, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			from, to := opened(t)(Listen(Config{Address: loopback4})), opened(t)(Listen(Config{Address: loopback4}))
			k := &from.Sockets()[0].kernel
			if !k.segmenting.Load() || !from.Sockets()[0].TakeStamps(true) {
				t.Skip("this kernel has no UDP_SEGMENT or no timestamps")
			}
			k.sendmmsg = refusingWhere(has(t, test.refused...), test.err)(k.sendmmsg)
			var sent []Message
			for i, codepoint := range []ecn.Codepoint{ecn.ECT1, ecn.CE, ecn.ECT1, ecn.NotECT} {
				single, many := run(to.Address(), 100*i, 1, 50, 50), run(to.Address(), 100*i+1, 6, 700, 300)
				sent = append(sent, marked(single, codepoint), stamped(marked(many, codepoint)),
					stamped(marked(single, codepoint)), marked(many, codepoint))
			}
			// The second call finds the refused features disabled.
			for round := range 2 {
				send(t, from, sent...)
				want := sentAs(sent...)
				got, _ := arrivals(t, to, len(want))
				for i := range want {
					if got[i].number != want[i].number || got[i].length != want[i].length {
						t.Fatalf("round %d: datagram %d arrived as number %d with %d bytes, expected number %d with %d",
							round, i, got[i].number, got[i].length, want[i].number, want[i].length)
					}
					if !test.settingECN {
						want[i].ecn = ecn.NotECT
					}
				}
				sameCodepoints(t, got, want)
			}
			if stats := from.Stats(); stats.SendErrors != 0 || !test.settingECN && stats.SentECN[ecn.ECT1] != 0 {
				t.Errorf("the sender counts %+v", stats)
			}
			if e, s, d := k.settingECN.Load(), k.segmenting.Load(), k.stamping.Load(); e != test.settingECN ||
				s != test.segmenting || d != test.stamping {
				t.Errorf("codepoints are %v, runs %v, stamps %v; expected %v, %v, %v", e, s, d, test.settingECN,
					test.segmenting, test.stamping)
			}
		})
	}
}

// TestRefusedOtherwise: errors that the codepoint does not cause leave it on.
func TestRefusedOtherwise(t *testing.T) {
	for _, err := range []syscall.Errno{unix.EINVAL, unix.EPERM, unix.ENETUNREACH, unix.EOPNOTSUPP} {
		t.Run(err.Error(), func(t *testing.T) {
			from, to := opened(t)(Listen(Config{Address: loopback4})), opened(t)(Listen(Config{Address: loopback4}))
			k := &from.Sockets()[0].kernel
			k.sendmmsg = refusingWhere(func(h *unix.Mmsghdr) bool { return h.Hdr.Iov.Len%100 != 0 }, err)(k.sendmmsg)
			good := marked(run(to.Address(), 0, 1, 200, 200), ecn.ECT1)
			send(t, from, marked(run(to.Address(), 1, 1, 50, 50), ecn.ECT1), good,
				marked(run(to.Address(), 2, 3, 50, 50), ecn.ECT1), good)
			got, _ := arrivals(t, to, 2)
			sameCodepoints(t, got, sentAs(good, good))
			if stats := from.Stats(); stats.SendErrors != 4 || stats.Sent != 2 || !k.settingECN.Load() {
				t.Errorf("codepoints are %v after errors of peers: %+v", k.settingECN.Load(), stats)
			}
		})
	}
}

// TestPlainCodepoints: plain calls send and receive as Not-ECT.
func TestPlainCodepoints(t *testing.T) {
	for _, plain := range []Config{{PlainSending: true}, {PlainReceiving: true}} {
		t.Run(fmt.Sprintf("sending %v, receiving %v", plain.PlainSending, plain.PlainReceiving), func(t *testing.T) {
			plain.Address = loopback4
			from, to := opened(t)(Listen(plain)), opened(t)(Listen(plain))
			message := marked(run(to.Address(), 0, 2, 100, 100), ecn.ECT1)
			send(t, from, message)
			got, _ := arrivals(t, to, 2)
			sameCodepoints(t, got, sentAs(marked(message, ecn.NotECT)))
			sent := from.Stats().SentECN
			if left := ecn.ECT1; plain.PlainSending && sent[left] != 0 || !plain.PlainSending && sent[left] != 2 {
				t.Errorf("the sender counts %v", sent)
			}
			if got := to.Stats().ReceivedECN; got != (CodepointCounts{2}) {
				t.Errorf("the receiver counts %v", got)
			}
		})
	}
}

// TestUnknownCodepoint: bits beyond the ECN field do not reach the IP header.
func TestUnknownCodepoint(t *testing.T) {
	from, to := opened(t)(Listen(Config{Address: loopback4})), opened(t)(Listen(Config{Address: loopback4}))
	send(t, from, marked(run(to.Address(), 0, 1, 50, 50), 0xfd))
	got, _ := arrivals(t, to, 1)
	sameCodepoints(t, got, sentAs(marked(run(to.Address(), 0, 1, 50, 50), ecn.ECT1)))
	if stats := from.Stats(); stats.SentECN != (CodepointCounts{ecn.ECT1: 1}) {
		t.Errorf("the sender counts %+v", stats)
	}
}

// train is the number of datagrams of each case of TestCodepointsOnVeth.
const train = 60

// TestCodepointsOnVeth sends datagrams over a pair of virtual network cards, of which the sending one segments runs and
// the receiving one coalesces datagrams. Each datagram arrives with the codepoint with which it was sent: marks are
// neither lost nor spread over the datagrams before and after, though the kernel coalesces datagrams of one codepoint.
func TestCodepointsOnVeth(t *testing.T) {
	from, to := onVeth(t)
	all := func(codepoint ecn.Codepoint) func(int) ecn.Codepoint {
		return func(int) ecn.Codepoint { return codepoint }
	}
	ce := func(every int) func(int) ecn.Codepoint {
		return func(i int) ecn.Codepoint {
			if i%every == every-1 {
				return ecn.CE
			}
			return ecn.ECT1
		}
	}
	for _, family := range []struct {
		name string
		peer netip.Addr
	}{{"IPv4", vethAddresses[1]}, {"IPv6", vethAddresses6[1]}} {
		peer := netip.AddrPortFrom(family.peer, to.Address().Port())
		for _, test := range []struct {
			name string
			// run is the number of datagrams of each message, and ecn the codepoint of each message.
			run int
			ecn func(i int) ecn.Codepoint
			// coalesces is set if some messages must arrive coalesced.
			coalesces bool
		}{
			{"one codepoint", 1, all(ecn.ECT1), true},
			{"CE alone", 1, all(ecn.CE), true},
			{"every third CE", 1, ce(3), true},
			{"every second CE", 1, ce(2), false},
			{"all codepoints in turn", 1, func(i int) ecn.Codepoint { return codepoints[i%4] }, false},
			{"runs, every third CE", 5, ce(3), true},
			{"runs of all codepoints in turn", 5, func(i int) ecn.Codepoint { return codepoints[i%4] }, true},
			{"long runs, every second CE", 30, ce(2), true},
		} {
			t.Run(family.name+", "+test.name, func(t *testing.T) {
				var sent []Message
				for i := range train / test.run {
					m := marked(run(peer, i*test.run, test.run, 1000, 1000), test.ecn(i))
					if i%4 == 0 {
						m = stamped(m)
					}
					sent = append(sent, m)
				}
				before := from.Stats()
				send(t, from, sent...)
				want := sentAs(sent...)
				got, messages := arrivals(t, to, len(want))
				sameCodepoints(t, got, want)
				t.Logf("%d datagrams arrived in %d messages", len(got), messages)
				if test.coalesces && messages == len(got) {
					t.Error("nothing was coalesced")
				}
				if i := slices.IndexFunc(got, func(a arrival) bool { return !a.stamped }); i >= 0 {
					t.Errorf("datagram %d has no timestamp", i)
				}
				if stats := from.Stats(); stats.Sent-before.Sent != train || stats.SendErrors != 0 {
					t.Errorf("expected %d sent: %+v", train, stats)
				}
			})
		}
	}
	heads := 0
	for in := NewInbox(); heads == 0; {
		if err := from.Sockets()[0].Receive(in); err != nil {
			t.Fatal(err)
		}
		for _, d := range in.Departures() {
			if !bytes.Equal(d.Head[:], datagram(int(binary.BigEndian.Uint32(d.Head[:])), headSize)) {
				t.Errorf("a departure of %v", d)
			}
			heads++
		}
	}
}
