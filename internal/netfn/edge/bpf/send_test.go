package bpf

import (
	"bytes"
	"encoding/binary"
	"math"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/ringbuf"

	"github.com/volsfu/volsfu/internal/netfn/wire"
	"github.com/volsfu/volsfu/test/namespace"
)

// skBuff is the kernel's struct __sk_buff, the context of programs at TC hooks.
type skBuff struct {
	_              [2]uint32
	Mark           uint32
	_              [6]uint32
	IngressIfindex uint32
	Ifindex        uint32
	_              uint32
	Cb             [5]uint32
	_              [24]uint32
	GsoSegs        uint32
	_              [2]uint32
	GsoSize        uint32
	_              [3]uint32
}

// sender is a loaded sender whose programs run on frames in a namespace of their own, on its loopback interface.
type sender struct {
	*SenderObjects
	t     testing.TB
	space *namespace.Namespace
}

// loopback is the index of the loopback interface in every namespace.
const loopback = 1

// newSender returns a sender with one rule, to the inner networks of the tests, and two paths: path 0 over IPv4 and
// path 1 over IPv6, both on the loopback interface.
func newSender(t *testing.T) *sender {
	t.Helper()
	s := &sender{SenderObjects: &SenderObjects{}, t: t, space: namespace.New(t)}
	loadInto(t, unpinned(t, LoadSender), s.SenderObjects)
	t.Cleanup(func() { _ = s.Close() })
	s.space.Run(t, "ip link set lo up")
	put(t, s.SendConfig, uint32(0), SenderConfig{LeaseNs: math.MaxUint64, Mark: Mark, Epoch: testEpoch, Port: testPort})
	s.setRule(anyPacket)
	to := []netip.Prefix{netip.MustParsePrefix("10.2.0.0/16"), netip.MustParsePrefix("fd00:2::/32")}
	for key := range RulePrefixes(to) {
		put(t, s.Prefixes, key, uint32(1))
	}
	path := SenderPath{Local: MapAddress(outerFrom4), Remote: MapAddress(outerTo4), Ifindex: loopback, Mtu: 1500,
		Version: 4, Ether: 1, Source: [6]uint8{2, 0, 0, 0, 0, 2}}
	put(t, s.Paths, uint32(0), path)
	path.Local, path.Remote, path.Version = MapAddress(outerFrom6), MapAddress(outerTo6), 6
	put(t, s.Paths, uint32(1), path)
	return s
}

// anyPacket is a rule that takes any packet to path 0.
var anyPacket = SenderRule{PortLast: 65535, Dscp: AnyDSCP, Format: FormatEncapsulated, Set: 1}

func (s *sender) setRule(rule SenderRule) {
	s.t.Helper()
	put(s.t, s.Rules, uint32(0), rule)
}

// send runs a program at the egress of the loopback interface, and returns the verdict and the frame afterwards.
func (s *sender) send(p *ebpf.Program, frame []byte, context skBuff) (verdict uint32, out []byte) {
	s.t.Helper()
	context.Ifindex = loopback
	options := ebpf.RunOptions{Data: frame, DataOut: make([]byte, len(frame)+256), Context: context}
	var err error
	s.space.Do(func() { verdict, err = p.Run(&options) })
	if err != nil {
		s.t.Fatal(err)
	}
	return verdict, options.DataOut
}

func (s *sender) selectedCounters() (sum SenderSelected) {
	s.t.Helper()
	var each []SenderSelected
	if err := s.Selected.Lookup(uint32(0), &each); err != nil {
		s.t.Fatal(err)
	}
	for _, c := range each {
		sum.Packets += c.Packets
		sum.Bytes += c.Bytes
		sum.Plain += c.Plain
		sum.Refused += c.Refused
		sum.Segmented += c.Segmented
	}
	return sum
}

func sentOn(t testing.TB, s *SenderObjects, path uint32) (sum SenderSent) {
	t.Helper()
	var each []SenderSent
	if err := s.Sent.Lookup(path, &each); err != nil {
		t.Fatal(err)
	}
	for _, c := range each {
		sum.Packets += c.Packets
		sum.Bytes += c.Bytes
		sum.Failed += c.Failed
		sum.Oversize += c.Oversize
	}
	return sum
}

// headerOf returns the data header of a frame of a size of outer headers, and sets the send time to 0 in the frame.
func headerOf(t *testing.T, frame []byte, outer int) wire.Header {
	t.Helper()
	at := etherSize + outer - wire.HeaderSize
	if len(frame) < at+wire.HeaderSize {
		t.Fatalf("a frame of %d bytes has no data header", len(frame))
	}
	h, err := wire.ParseHeader(frame[at:])
	if err != nil {
		t.Fatal(err)
	}
	if h.Sent == 0 {
		t.Error("the header has no send time")
	}
	copy(frame[at+12:], []byte{0, 0, 0, 0})
	h.Sent = 0
	return h
}

// TestSendEncapsulates compares encapsulated packets of all versions byte by byte, and passes them to the receiver.
func TestSendEncapsulates(t *testing.T) {
	s := newSender(t)
	r := newReceiver(t, ReceiverConfig{Epoch: testEpoch, Port: testPort})
	for path, outer := range []struct {
		from, to netip.Addr
		size     int
	}{{outerFrom4, outerTo4, Overhead4}, {outerFrom6, outerTo6, Overhead6}} {
		rule := anyPacket
		rule.Set, rule.Primary = 1<<path, uint8(path)
		s.setRule(rule)
		for tos := range uint8(4) {
			inners := []packet{udpOf(innerFrom4, innerTo4, 1), udpOf(innerFrom6, innerTo6, 0),
				tcpOf(innerFrom4, innerTo4, 1, 9),
				{from: innerFrom4, to: innerTo4, protocol: 1, payload: 8},
				{from: innerFrom4, to: innerTo4, protocol: protoUDP, options: 1}}
			for _, p := range inners {
				p.tos = 12<<2 | tos
				inner := p.bytes()
				verdict, out := s.send(s.SendEther, frame(inner), skBuff{})
				h := headerOf(t, out, outer.size)
				want := wire.Header{Path: uint8(path), Set: 1 << path, Flow: h.Flow, Epoch: testEpoch, Base: h.Base}
				if verdict != tcNext || h != want || h.Flow > 15 {
					t.Errorf("verdict %d, header %+v, want %+v", verdict, h, want)
				}
				frameWant := encapsulate(outer.from, outer.to, p.tos, h, inner)
				if path == 1 { // the flow label
					frameWant[2], frameWant[3] = 0xc0, h.Flow
				}
				if !bytes.Equal(out, frame(frameWant)) {
					t.Errorf("sent\n% x, want\n% x", out, frame(frameWant))
				}
				if verdict, back := run(t, r.ReceiveXdp, out); verdict != xdpPass || !bytes.Equal(back, frame(inner)) {
					t.Errorf("the receiver's verdict is %d, on\n% x, want\n% x", verdict, back, frame(inner))
				}
			}
		}
	}
	if got := receivedOn(t, r, 0).First + receivedOn(t, r, 1).First; got != 40 {
		t.Errorf("%d packets were first copies, want 40", got)
	}
}

// TestSendNumbers checks that the packets of a connection have one flow and consecutive numbers.
func TestSendNumbers(t *testing.T) {
	s := newSender(t)
	next := map[uint8]uint32{}
	for i := range 200 {
		p := udpOf(innerFrom4, innerTo4, 0)
		p.ports[0] += uint16(i % 20)
		_, out := s.send(s.SendEther, frame(p.bytes()), skBuff{})
		h := headerOf(t, out, Overhead4)
		if h.Base != next[h.Flow] {
			t.Fatalf("packet %d has number %d of flow %d, want %d", i, h.Base, h.Flow, next[h.Flow])
		}
		next[h.Flow]++
	}
	if len(next) < 5 {
		t.Errorf("20 connections have %d flows, want at least 5 of 16", len(next))
	}
}

// TestSendLeaves checks the packets that leave unchanged.
func TestSendLeaves(t *testing.T) {
	s := newSender(t)
	udp := udpOf(innerFrom4, innerTo4, 1)
	changed := func(change func(*packet)) []byte {
		p := udp
		change(&p)
		return frame(p.bytes())
	}
	broadcast := frame(udp.bytes())
	broadcast[0] = 0xff
	arp := frame(udp.bytes())
	arp[13] = 6
	v6 := packet{from: innerFrom6, to: innerTo6, protocol: protoUDP}
	fragment6, multicast6 := v6, v6
	fragment6.protocol, multicast6.to = 44, netip.MustParseAddr("ff02::1")
	tests := []struct {
		name    string
		frame   []byte
		context skBuff
		rule    func(*SenderRule)
		config  func(*SenderConfig)
		plain   uint64
		refused uint64
	}{
		{name: "other destination", frame: changed(func(p *packet) { p.to = innerFrom4 })},
		{name: "first fragment", frame: changed(func(p *packet) { p.fragment = 0x2000 })},
		{name: "last fragment", frame: changed(func(p *packet) { p.fragment = 100 })},
		{name: "IPv6 fragment", frame: frame(fragment6.bytes())},
		{name: "multicast", frame: changed(func(p *packet) { p.to = netip.MustParseAddr("224.0.0.1") })},
		{name: "IPv6 multicast", frame: frame(multicast6.bytes())},
		{name: "broadcast", frame: broadcast},
		{name: "ARP", frame: arp},
		{name: "copy", frame: frame(udp.bytes()), context: skBuff{Mark: Mark}},
		{name: "protocol", frame: frame(udp.bytes()), rule: func(r *SenderRule) { r.Protocol = protoTCP }},
		{name: "ports", frame: frame(udp.bytes()), rule: func(r *SenderRule) { r.PortFirst, r.PortLast = 2001, 2002 }},
		{name: "no ports", frame: changed(func(p *packet) { p.protocol = 1 }),
			rule: func(r *SenderRule) { r.PortFirst = 1 }},
		{name: "DSCP", frame: frame(udp.bytes()), rule: func(r *SenderRule) { r.Dscp = 46 }},
		{name: "mark", frame: frame(udp.bytes()), context: skBuff{Mark: 4},
			rule: func(r *SenderRule) { r.Mark, r.MarkMask = 1, 1 }},
		{name: "format", frame: frame(udp.bytes()), rule: func(r *SenderRule) { r.Format = FormatPlain }},
		{name: "no path", frame: frame(udp.bytes()), rule: func(r *SenderRule) { r.Set = 4 }, plain: 1},
		{name: "no lease", frame: frame(udp.bytes()), config: func(c *SenderConfig) { c.LeaseNs = 1 }, plain: 1},
		{name: "above the MTU", frame: changed(func(p *packet) { p.payload = 1500 - Overhead4 - 28 + 1 }), plain: 1},
		{name: "IPv6 cannot be stamped", frame: frame(v6.bytes()),
			rule: func(r *SenderRule) { r.Format = FormatStamped }, refused: 1},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			rule := anyPacket
			config := SenderConfig{LeaseNs: math.MaxUint64, Mark: Mark, Epoch: testEpoch, Port: testPort}
			if test.rule != nil {
				test.rule(&rule)
			}
			if test.config != nil {
				test.config(&config)
			}
			s.setRule(rule)
			put(t, s.SendConfig, uint32(0), config)
			before := s.selectedCounters()
			verdict, out := s.send(s.SendEther, test.frame, test.context)
			if verdict != tcNext || !bytes.Equal(out, test.frame) {
				t.Errorf("verdict %d, and the frame became\n% x, want\n% x", verdict, out, test.frame)
			}
			after := s.selectedCounters()
			if after.Plain-before.Plain != test.plain || after.Refused-before.Refused != test.refused ||
				after.Packets != before.Packets {
				t.Errorf("counted %+v after %+v, want %d plain and %d refused", after, before, test.plain, test.refused)
			}
		})
	}
	t.Run("outer", func(t *testing.T) {
		put(t, s.Prefixes, SenderPrefix{Bits: 96}, uint32(1)) // any IPv4 destination
		s.setRule(anyPacket)
		hello := packet{from: outerFrom4, to: outerTo4, protocol: protoUDP, ports: [2]uint16{9, testPort}}
		if _, out := s.send(s.SendEther, frame(hello.bytes()), skBuff{}); !bytes.Equal(out, frame(hello.bytes())) {
			t.Errorf("a control message was encapsulated: % x", out)
		}
	})
}

// TestSendSelects checks the conditions of rules that a packet meets, and that the first of several rules decides.
func TestSendSelects(t *testing.T) {
	s := newSender(t)
	udp := udpOf(innerFrom4, innerTo4, 1) // ports 1000 and 2000
	udp.tos = 46 << 2
	for name, change := range map[string]func(*SenderRule){
		"protocol":         func(r *SenderRule) { r.Protocol = protoUDP },
		"destination port": func(r *SenderRule) { r.PortFirst, r.PortLast = 2000, 2000 },
		"source port":      func(r *SenderRule) { r.PortFirst, r.PortLast = 999, 1000 },
		"DSCP":             func(r *SenderRule) { r.Dscp = 46 },
		"mark":             func(r *SenderRule) { r.Mark, r.MarkMask = 4, 6 },
	} {
		rule := anyPacket
		change(&rule)
		s.setRule(rule)
		if _, out := s.send(s.SendEther, frame(udp.bytes()), skBuff{Mark: 5}); len(out) == len(frame(udp.bytes())) {
			t.Errorf("%s: the packet was not selected", name)
		}
	}
	to := []netip.Prefix{netip.MustParsePrefix("10.2.0.2/32"), netip.MustParsePrefix("10.2.0.0/16"),
		netip.MustParsePrefix("10.0.0.0/8")}
	for key, mask := range RulePrefixes(to) {
		put(t, s.Prefixes, key, mask)
	}
	tcpOnly := anyPacket
	tcpOnly.Protocol = protoTCP
	put(t, s.Rules, uint32(0), tcpOnly)
	put(t, s.Rules, uint32(1), tcpOnly)
	put(t, s.Rules, uint32(2), anyPacket)
	if _, out := s.send(s.SendEther, frame(udp.bytes()), skBuff{}); headerOf(t, out, Overhead4).Flow>>4 != 2 {
		t.Error("the packet is not of rule 2, whose prefix contains those of rules 0 and 1")
	}
	if _, out := s.send(s.SendEther, frame(tcpOf(innerFrom4, innerTo4, 0, 1).bytes()), skBuff{}); headerOf(t, out,
		Overhead4).Flow>>4 != 0 {
		t.Error("the packet is not of rule 0")
	}
}

// TestSendCopies checks copies on two paths of different IP versions: both are counted, and the original leaves last.
func TestSendCopies(t *testing.T) {
	s := newSender(t)
	rule := anyPacket
	rule.Set = 3
	s.setRule(rule)
	inner := udpOf(innerFrom4, innerTo4, 1).bytes()
	verdict, out := s.send(s.SendEther, frame(inner), skBuff{})
	if h := headerOf(t, out, Overhead4); verdict != tcNext || h.Path != 0 || h.Set != 3 {
		t.Errorf("verdict %d and header %+v of the last copy, want path 0 of the set 3", verdict, h)
	}
	if got := sentOn(t, s.SenderObjects, 0); got != (SenderSent{Packets: 1, Bytes: uint64(len(inner) + Overhead4)}) {
		t.Errorf("path 0 counted %+v", got)
	}
	if got := s.selectedCounters(); got != (SenderSelected{Packets: 1, Bytes: uint64(len(inner))}) {
		t.Errorf("counted %+v", got)
	}
	// The packet of path 0 is too large for path 1.
	put(t, s.Paths, uint32(1), SenderPath{Ifindex: loopback, Mtu: 100, Version: 4})
	if _, out = s.send(s.SendEther, frame(inner), skBuff{}); headerOf(t, out, Overhead4).Set != 1 {
		t.Error("a packet above the MTU of path 1 does not leave on path 0 only")
	}
	if got := sentOn(t, s.SenderObjects, 1); got.Oversize != 1 {
		t.Errorf("path 1 counted %+v, want one oversize packet", got)
	}
	// A path on another device: the original is redirected.
	s.setRule(anyPacket)
	put(t, s.Paths, uint32(0), SenderPath{Ifindex: 99, Mtu: 1500, Version: 4})
	if verdict, _ = s.send(s.SendEther, frame(inner), skBuff{}); verdict != tcRedirect {
		t.Errorf("verdict %d, want a redirect", verdict)
	}
	// A clone for a device that does not exist.
	put(t, s.Paths, uint32(1), SenderPath{Ifindex: 98, Mtu: 1500, Version: 4})
	rule.Set = 3
	s.setRule(rule)
	s.send(s.SendEther, frame(inner), skBuff{})
	if got := sentOn(t, s.SenderObjects, 1); got.Failed != 1 {
		t.Errorf("path 1 counted %+v, want one failed clone", got)
	}
}

// TestSendProbes checks that one packet of 128 also leaves on the paths that are probed.
func TestSendProbes(t *testing.T) {
	s := newSender(t)
	rule := anyPacket
	rule.Probes, rule.Divisor = 2, 128
	s.setRule(rule)
	for number := range uint32(300) {
		_, out := s.send(s.SendEther, frame(udpOf(innerFrom4, innerTo4, 1).bytes()), skBuff{})
		want := uint8(1)
		if number%128 == 0 {
			want = 3
		}
		if h := headerOf(t, out, Overhead4); h.Set != want {
			t.Fatalf("number %d leaves on the set %d, want %d", h.Base, h.Set, want)
		}
	}
}

// TestSendStamps compares the stamped and the published marking with packets built in Go.
func TestSendStamps(t *testing.T) {
	s := newSender(t)
	put(t, s.Paths, uint32(1), SenderPath{Ifindex: loopback, Mtu: 1500, Version: 4, Ether: 1,
		Source: [6]uint8{2, 0, 0, 0, 0, 2}})
	// The numbers continue when the format changes.
	number := uint16(0)
	for _, format := range []struct{ format, tos uint8 }{
		{FormatStamped, (1+testEpoch%7)<<5 | 1<<2 | 1}, {FormatPaper, 2},
	} {
		rule := anyPacket
		rule.Format, rule.Set = format.format, 2
		s.setRule(rule)
		for range 3 {
			p := udpOf(innerFrom4, innerTo4, 5555)
			p.tos = 46<<2 | 1
			_, out := s.send(s.SendEther, frame(p.bytes()), skBuff{})
			p.tos = format.tos
			if format.format == FormatStamped {
				p.id = number
			}
			number++
			if want := frame(p.bytes()); !bytes.Equal(out, want) {
				t.Errorf("format %d: sent\n% x, want\n% x", format.format, out, want)
			}
		}
	}
}

// TestSendSegmentIDs: a stamped super-packet has its number as identification, from which its segments count. The
// published marking keeps the identification of the network stack.
func TestSendSegmentIDs(t *testing.T) {
	s := newSender(t)
	for _, test := range []struct {
		format uint8
		want   uint16
	}{{FormatStamped, 0}, {FormatPaper, 777}} {
		rule := anyPacket
		rule.Format = test.format
		s.setRule(rule)
		p := tcpOf(innerFrom4, innerTo4, 1, 2000)
		p.id = 777
		_, out := s.send(s.SendEther, frame(p.bytes()), skBuff{GsoSegs: 2, GsoSize: 1000})
		if got := binary.BigEndian.Uint16(out[etherSize+4:]); got != test.want {
			t.Errorf("format %d: the identification is %d, want %d", test.format, got, test.want)
		}
	}
}

// TestReceiveStamped checks the filter of stamped packets over a wrap of the identification, and that the filter clears
// the DSCP.
func TestReceiveStamped(t *testing.T) {
	r := newReceiver(t, ReceiverConfig{Epoch: testEpoch, Port: testPort})
	p := udpOf(innerFrom4, innerTo4, 0)
	for number := 0; number < 66_000; {
		for path := range uint8(2) {
			p.id, p.tos = uint16(number), (1+testEpoch%7)<<5|path<<2|1
			verdict, out := run(t, r.StampedXdp, frame(p.bytes()))
			if want := uint32(xdpPass) - uint32(path); verdict != want {
				t.Fatalf("number %d on path %d: verdict %d, want %d", number, path, verdict, want)
			}
			p.tos = 1
			if verdict == xdpPass && !bytes.Equal(out, frame(p.bytes())) {
				t.Fatalf("passed\n% x, want\n% x", out, frame(p.bytes()))
			}
		}
		if number < 65_000 {
			number += 1000
		} else {
			number++
		}
	}
	p.tos = 46 << 2 // another epoch: it passes
	if verdict, _ := run(t, r.StampedXdp, frame(p.bytes())); verdict != xdpPass {
		t.Errorf("verdict %d on another epoch, want a pass", verdict)
	}
}

// TestReceivePaper checks that the published filter drops a second packet with an identification within a second, also
// if it is no copy.
func TestReceivePaper(t *testing.T) {
	r := newReceiver(t, ReceiverConfig{Divisor: 1})
	reader, err := ringbuf.NewReader(r.Samples)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = reader.Close() }()
	p := udpOf(innerFrom4, innerTo4, 77)
	for i, want := range []uint32{xdpPass, xdpDrop, xdpDrop} {
		p.ports[0]++ // another connection
		verdict, _ := run(t, r.PaperXdp, frame(p.bytes()))
		if verdict != want {
			t.Errorf("packet %d: verdict %d, want %d", i, verdict, want)
		}
		reader.SetDeadline(time.Now())
		record, err := reader.Read()
		if err != nil {
			t.Fatalf("the sample of packet %d: %v", i, err)
		}
		var sample ReceiverSample
		if _, err := binary.Decode(record.RawSample, binary.NativeEndian, &sample); err != nil {
			t.Fatal(err)
		}
		if sample.Number != 77 || sample.ArrivedNs == 0 || sample.First == 1 != (verdict == xdpPass) {
			t.Errorf("packet %d: the sample is %+v", i, sample)
		}
	}
	if got := receivedOn(t, r, 0); got.First != 1 || got.Repeated != 2 {
		t.Errorf("counted %+v", got)
	}
}

// FuzzSend gives any bytes to the sender's programs: they send them on, with at most the encapsulation in front.
func FuzzSend(f *testing.F) {
	objects := &SenderObjects{}
	loadInto(f, unpinned(f, LoadSender), objects)
	f.Cleanup(func() { _ = objects.Close() })
	put(f, objects.SendConfig, uint32(0), SenderConfig{LeaseNs: math.MaxUint64, Mark: Mark, Epoch: 1, Port: testPort})
	put(f, objects.Rules, uint32(0), anyPacket)
	put(f, objects.Prefixes, SenderPrefix{}, uint32(1))
	put(f, objects.Paths, uint32(0), SenderPath{Ifindex: loopback, Mtu: math.MaxUint16, Version: 4, Ether: 1})
	f.Add(frame(udpOf(innerFrom4, innerTo4, 1).bytes()))
	f.Add(frame(tcpOf(innerFrom6, innerTo6, 1, 2).bytes()))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) < etherSize+40 || len(b) > 3000 {
			return // test runs need the IP header of the EtherType
		}
		verdict, out := run(t, objects.SendEther, b)
		inner := b[etherSize:]
		if verdict != tcNext && verdict != tcRedirect || !bytes.HasSuffix(out, inner) ||
			len(out) != len(b) && len(out) != len(b)+Overhead4 {
			t.Fatalf("verdict %d, % x became % x", verdict, b, out)
		}
	})
}

// index returns the index and the hardware address of an interface of a namespace.
func index(t testing.TB, n *namespace.Namespace, name string) (i uint32, address [6]uint8) {
	t.Helper()
	var found *net.Interface
	var err error
	n.Do(func() { found, err = net.InterfaceByName(name) })
	if err != nil {
		t.Fatal(err)
	}
	copy(address[:], found.HardwareAddr)
	return uint32(found.Index), address
}
