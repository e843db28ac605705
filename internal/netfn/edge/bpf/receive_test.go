package bpf

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io/fs"
	"math/rand/v2"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/ringbuf"

	"github.com/volsfu/volsfu/internal/netfn/window"
	"github.com/volsfu/volsfu/internal/netfn/wire"
)

const (
	testEpoch = 7

	xdpDrop, xdpPass = 1, 2
	tcNext, tcShot   = 0xffffffff, 2
	tcRedirect       = 7
)

// unpinned removes the pinning of a specification's maps, so that each test has maps of its own.
func unpinned(t testing.TB, load func() (*ebpf.CollectionSpec, error)) *ebpf.CollectionSpec {
	t.Helper()
	spec, err := load()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range spec.Maps {
		m.Pinning = ebpf.PinNone
	}
	return spec
}

// loadInto loads programs and maps, or skips the test if that is not permitted.
func loadInto(t testing.TB, spec *ebpf.CollectionSpec, objects any) {
	t.Helper()
	err := spec.LoadAndAssign(objects, nil)
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, ebpf.ErrNotSupported) {
		t.Skipf("skipped: BPF programs take CAP_BPF and CAP_NET_ADMIN: %v", err)
	}
	if err != nil {
		var refused *ebpf.VerifierError
		if errors.As(err, &refused) {
			t.Fatalf("%+v", refused)
		}
		t.Fatal(err)
	}
}

// newReceiver returns a loaded receiver that accepts the sources and inner prefixes of the tests.
func newReceiver(t testing.TB, config ReceiverConfig) *ReceiverObjects {
	t.Helper()
	r := &ReceiverObjects{}
	loadInto(t, unpinned(t, LoadReceiver), r)
	t.Cleanup(func() { _ = r.Close() })
	configure(t, r, config)
	return r
}

// configure writes the maps of a receiver.
func configure(t testing.TB, r *ReceiverObjects, config ReceiverConfig) {
	t.Helper()
	put(t, r.ReceiveConfig, uint32(0), config)
	for _, s := range []ReceiverSource{sourceOf(outerFrom4, outerTo4), sourceOf(outerFrom6, outerTo6)} {
		put(t, r.Sources, s, [6]uint8{})
	}
	for _, prefix := range []string{"10.1.0.0/16", "fd00:1::/32"} {
		put(t, r.Inner, AcceptedPrefix(netip.MustParsePrefix(prefix)), uint32(1))
	}
}

func sourceOf(remote, local netip.Addr) (s ReceiverSource) {
	s.Remote, s.Local = MapAddress(remote), MapAddress(local)
	return s
}

func put(t testing.TB, m *ebpf.Map, key, value any) {
	t.Helper()
	if err := m.Put(key, value); err != nil {
		t.Fatalf("map %v: %v", m, err)
	}
}

// receivedOn returns the counters of a path, of all processors.
func receivedOn(t testing.TB, r *ReceiverObjects, path uint32) (sum ReceiverReceived) {
	t.Helper()
	var each []ReceiverReceived
	if err := r.Received.Lookup(path, &each); err != nil {
		t.Fatal(err)
	}
	for _, c := range each {
		sum.Packets += c.Packets
		sum.Bytes += c.Bytes
		sum.First += c.First
		sum.Repeated += c.Repeated
		sum.Outside += c.Outside
		sum.Malformed += c.Malformed
		sum.Refused += c.Refused
		sum.Congested += c.Congested
	}
	return sum
}

func ignoredBy(t testing.TB, r *ReceiverObjects) (sum ReceiverIgnored) {
	t.Helper()
	var each []ReceiverIgnored
	if err := r.Ignored.Lookup(uint32(0), &each); err != nil {
		t.Fatal(err)
	}
	for _, c := range each {
		sum.Foreign += c.Foreign
		sum.Control += c.Control
		sum.LostSamples += c.LostSamples
	}
	return sum
}

// run runs a program on a frame once, and returns its verdict and the frame afterwards.
func run(t testing.TB, p *ebpf.Program, frame []byte) (uint32, []byte) {
	t.Helper()
	options := ebpf.RunOptions{Data: frame, DataOut: make([]byte, len(frame)+256)}
	verdict, err := p.Run(&options)
	if err != nil {
		t.Fatal(err)
	}
	return verdict, options.DataOut
}

// The programs that take frames, with their verdicts.
type receiverProgram struct {
	name       string
	program    func(*ReceiverObjects) *ebpf.Program
	pass, drop uint32
}

var receiverPrograms = []receiverProgram{
	{"xdp", func(r *ReceiverObjects) *ebpf.Program { return r.ReceiveXdp }, xdpPass, xdpDrop},
	{"tc", func(r *ReceiverObjects) *ebpf.Program { return r.ReceiveEther }, tcNext, tcShot},
}

func tcpOf(from, to netip.Addr, sequence uint32, payload int) packet {
	return packet{from: from, to: to, protocol: protoTCP, sequence: sequence, payload: payload}
}

func udpOf(from, to netip.Addr, id uint16) packet {
	return packet{from: from, to: to, protocol: protoUDP, id: id, payload: 100, ports: [2]uint16{1000, 2000}}
}

// TestReceiveDecisions checks every decision on a frame: the verdict, the counter that counts it, and the frame that
// passes.
func TestReceiveDecisions(t *testing.T) {
	single := wire.Header{Path: 2, Set: 5, Flow: 0x31, Epoch: testEpoch, Base: 1000, Sent: 5}
	with := func(change func(*wire.Header)) wire.Header {
		h := single
		change(&h)
		return h
	}
	options := packet{from: innerFrom4, to: innerTo4, protocol: protoUDP, options: 2}.bytes()
	inner4, inner6 := udpOf(innerFrom4, innerTo4, 9).bytes(), udpOf(innerFrom6, innerTo6, 0).bytes()
	copy4 := func(h wire.Header, inner []byte) []byte { return frame(encapsulate(outerFrom4, outerTo4, 0, h, inner)) }
	altered := func(b []byte, at int, value byte) []byte {
		b = bytes.Clone(b)
		b[at] = value
		return b
	}
	plain := copy4(single, inner4)
	const udpAt, headerAt, innerAt = etherSize + 20, etherSize + 28, etherSize + 44
	first := ReceiverReceived{First: 1}
	tests := []struct {
		name    string
		frame   []byte
		opened  []byte // the inner packet if it passes; nil if the frame passes unchanged, or is dropped
		dropped bool
		want    ReceiverReceived // but packets and bytes
		ignored ReceiverIgnored
	}{
		{name: "IPv4 in IPv4", frame: plain, opened: inner4, want: first},
		{name: "IPv6 in IPv4", frame: copy4(single, inner6), opened: inner6, want: first},
		{name: "IPv4 in IPv6", frame: frame(encapsulate(outerFrom6, outerTo6, 0, single, inner4)), opened: inner4,
			want: first},
		{name: "IPv6 in IPv6", frame: frame(encapsulate(outerFrom6, outerTo6, 0, single, inner6)), opened: inner6,
			want: first},
		{name: "options", frame: copy4(single, options), opened: options, want: first},
		{name: "other epoch", frame: copy4(with(func(h *wire.Header) { h.Epoch++ }), inner4), opened: inner4,
			want: ReceiverReceived{Outside: 1}},
		{name: "epoch 0", frame: copy4(with(func(h *wire.Header) { h.Epoch = 0 }), inner4), opened: inner4,
			want: ReceiverReceived{Outside: 1}},
		{name: "inner source", frame: copy4(single, udpOf(innerTo4, innerFrom4, 1).bytes()), dropped: true,
			want: ReceiverReceived{Refused: 1}},
		{name: "version", frame: altered(plain, headerAt, 0x20), dropped: true, want: ReceiverReceived{Malformed: 1}},
		{name: "kind", frame: altered(plain, headerAt, 0x13), dropped: true, want: ReceiverReceived{Malformed: 1}},
		{name: "path", frame: altered(plain, headerAt+1, 10), dropped: true, want: ReceiverReceived{Malformed: 1}},
		{name: "UDP length", frame: altered(plain, udpAt+5, 1), dropped: true, want: ReceiverReceived{Malformed: 1}},
		{name: "inner length", frame: altered(plain, innerAt+3, 1), dropped: true,
			want: ReceiverReceived{Malformed: 1}},
		{name: "inner version", frame: altered(plain, innerAt, 0x55), dropped: true,
			want: ReceiverReceived{Malformed: 1}},
		{name: "inner header length", frame: altered(plain, innerAt, 0x44), dropped: true,
			want: ReceiverReceived{Malformed: 1}},
		{name: "truncated", frame: plain[:len(plain)-1], dropped: true, want: ReceiverReceived{Malformed: 1}},
		{name: "no inner packet", frame: copy4(single, nil), dropped: true, want: ReceiverReceived{Malformed: 1}},
		{name: "identification of IPv6", frame: copy4(with(func(h *wire.Header) { h.Kind = wire.KindID }), inner6),
			dropped: true, want: ReceiverReceived{Malformed: 1}},
		{name: "sequence number of UDP",
			frame: copy4(with(func(h *wire.Header) { h.Kind = wire.KindSequence }), inner4), dropped: true,
			want: ReceiverReceived{Malformed: 1}},
		{name: "segment without payload", frame: copy4(with(func(h *wire.Header) { h.Kind = wire.KindSequence }),
			tcpOf(innerFrom6, innerTo6, 1, 0).bytes()), dropped: true, want: ReceiverReceived{Malformed: 1}},
		{name: "hello", frame: altered(plain, headerAt, wire.HeaderVersion<<4|8),
			ignored: ReceiverIgnored{Control: 1}},
		{name: "report", frame: altered(plain, headerAt, wire.HeaderVersion<<4|9),
			ignored: ReceiverIgnored{Control: 1}},
		{name: "reflected", frame: frame(encapsulate(outerTo4, outerFrom4, 0, single, inner4)),
			ignored: ReceiverIgnored{Foreign: 1}},
		{name: "other port", frame: altered(plain, udpAt+3, 1)},
		{name: "outer fragment", frame: altered(plain, etherSize+6, 0x20)},
		{name: "outer options", frame: altered(plain, etherSize, 0x46)},
		{name: "TCP", frame: altered(plain, etherSize+9, protoTCP)},
		{name: "too short for a header", frame: plain[:headerAt+8]},
		{name: "ARP", frame: altered(plain, 13, 6)},
	}
	for _, p := range receiverPrograms {
		r := newReceiver(t, ReceiverConfig{Epoch: testEpoch, Port: testPort})
		processors := ebpf.MustPossibleCPU()
		for _, test := range tests {
			t.Run(p.name+"/"+test.name, func(t *testing.T) {
				// The word of number 1000, and the counters.
				put(t, r.Windows, uint32(single.Flow)*window.Size/32+1000/32, uint64(0))
				put(t, r.Received, uint32(2), make([]ReceiverReceived, processors))
				put(t, r.Ignored, uint32(0), make([]ReceiverIgnored, processors))
				verdict, out := run(t, p.program(r), test.frame)
				want, bytesOut := p.pass, test.frame
				if test.dropped {
					want = p.drop
				} else if test.opened != nil {
					bytesOut = frame(test.opened)
				}
				if verdict != want {
					t.Errorf("verdict %d, want %d", verdict, want)
				}
				if !test.dropped && !bytes.Equal(out, bytesOut) {
					t.Errorf("the frame became\n% x, want\n% x", out, bytesOut)
				}
				got := receivedOn(t, r, 2)
				if test.want != (ReceiverReceived{}) {
					test.want.Packets, test.want.Bytes = 1, got.Bytes
				}
				if got != test.want {
					t.Errorf("counted %+v, want %+v", got, test.want)
				}
				if got := ignoredBy(t, r); got != test.ignored {
					t.Errorf("counted %+v, want %+v", got, test.ignored)
				}
			})
		}
	}
}

// TestReceiveHardwareAddress checks that a frame for another host on the link is left alone, and is no first copy.
func TestReceiveHardwareAddress(t *testing.T) {
	own, other := [6]uint8{2, 0, 0, 0, 0, 1}, [6]uint8{2, 0, 0, 0, 0, 3}
	for _, p := range receiverPrograms {
		r := newReceiver(t, ReceiverConfig{Epoch: testEpoch, Port: testPort})
		if p.name == "xdp" {
			put(t, r.Sources, sourceOf(outerFrom4, outerTo4), own)
		} else {
			own = [6]uint8{} // of the loopback interface
		}
		f := frame(encapsulate(outerFrom4, outerTo4, 0, wire.Header{Epoch: testEpoch},
			udpOf(innerFrom4, innerTo4, 1).bytes()))
		copy(f, other[:])
		if verdict, out := run(t, p.program(r), f); verdict != p.pass || !bytes.Equal(out, f) {
			t.Errorf("%s: verdict %d, and a frame for another host became % x", p.name, verdict, out)
		}
		copy(f, own[:])
		run(t, p.program(r), f)
		if got := receivedOn(t, r, 0); got.Packets != 1 || got.First != 1 {
			t.Errorf("%s: counted %+v, want one first copy", p.name, got)
		}
	}
}

// TestReceiveECN checks the table of RFC 6040, section 4.2, for both inner versions.
func TestReceiveECN(t *testing.T) {
	const notECT, ect1, ect0, ce = 0, 1, 2, 3
	want := [4][4]int{ // by inner and outer field; -1: dropped
		notECT: {notECT, notECT, notECT, -1},
		ect1:   {ect1, ect1, ect1, ce},
		ect0:   {ect0, ect1, ect0, ce},
		ce:     {ce, ce, ce, ce},
	}
	r := newReceiver(t, ReceiverConfig{Epoch: testEpoch, Port: testPort})
	number := uint32(0)
	for _, p := range receiverPrograms {
		for _, from := range []netip.Addr{innerFrom4, innerFrom6} {
			for inner := range uint8(4) {
				for outer := range uint8(4) {
					in := packet{from: from, to: innerTo4, protocol: protoUDP, tos: 46<<2 | inner, payload: 10}
					if from == innerFrom6 {
						in.to = innerTo6
					}
					number++
					h := wire.Header{Epoch: testEpoch, Base: number}
					outside := encapsulate(outerFrom4, outerTo4, 46<<2|outer, h, in.bytes())
					verdict, out := run(t, p.program(r), frame(outside))
					ecn := want[inner][outer]
					if ecn < 0 {
						if verdict != p.drop {
							t.Errorf("%s: outer %d, inner %d: verdict %d, want a drop", p.name, outer, inner, verdict)
						}
						continue
					}
					in.tos = 46<<2 | uint8(ecn)
					if verdict != p.pass || !bytes.Equal(out, frame(in.bytes())) {
						t.Errorf("%s: outer %d, inner %d: verdict %d and\n% x, want\n% x", p.name, outer, inner,
							verdict, out, frame(in.bytes()))
					}
				}
			}
		}
	}
	if got := receivedOn(t, r, 0).Congested; got != 4 {
		t.Errorf("counted %d congested copies, want 4", got)
	}
}

// TestReceiveSegments delivers the segments of super-packets in random order, three copies each. Each passes once.
func TestReceiveSegments(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	for _, p := range receiverPrograms {
		r := newReceiver(t, ReceiverConfig{Epoch: testEpoch, Port: testPort})
		base := ^uint32(0) - 100 // over the wrap
		passed, total := 0, 0
		for range 20 {
			segments := 2 + random.Uint32N(40)
			size := 1 + random.IntN(1400)
			last := 1 + random.IntN(size)
			sequence := random.Uint32()
			end := sequence + (segments-1)*uint32(size) + uint32(last)
			kind := uint8(wire.KindID + random.IntN(2))
			var frames [][]byte
			for i := range segments {
				payload := size
				if i == segments-1 {
					payload = last
				}
				inner := packet{from: innerFrom4, to: innerTo4, protocol: protoUDP, id: uint16(base + i),
					payload: payload}
				h := wire.Header{Kind: kind, Epoch: testEpoch, Base: base}
				if kind == wire.KindSequence {
					inner = tcpOf(innerFrom4, innerTo4, sequence+i*uint32(size), payload)
					if random.IntN(2) == 0 {
						inner = tcpOf(innerFrom6, innerTo6, sequence+i*uint32(size), payload)
					}
					h.Base, h.End = base+segments-1, uint16(end)
				}
				if number, err := h.Number(inner.bytes()); err != nil || number != base+i {
					t.Fatalf("segment %d has number %d, %v, want %d", i, number, err, base+i)
				}
				for h.Path = range 3 {
					frames = append(frames, frame(encapsulate(outerFrom4, outerTo4, 0, h, inner.bytes())))
				}
			}
			random.Shuffle(len(frames), func(i, j int) { frames[i], frames[j] = frames[j], frames[i] })
			for _, f := range frames {
				if verdict, _ := run(t, p.program(r), f); verdict == p.pass {
					passed++
				}
			}
			base += segments
			total += int(segments)
		}
		var first, outside uint64
		for path := range uint32(3) {
			counters := receivedOn(t, r, path)
			first += counters.First
			outside += counters.Outside
		}
		if passed != total || first != uint64(total) || outside != 0 {
			t.Errorf("%s: %d of %d segments passed, %d first, %d outside the window", p.name, passed, total, first,
				outside)
		}
	}
}

// TestReceiveSamples checks which copies are sampled, and what a sample says.
func TestReceiveSamples(t *testing.T) {
	r := newReceiver(t, ReceiverConfig{Epoch: testEpoch, Port: testPort, Divisor: 4})
	reader, err := ringbuf.NewReader(r.Samples)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = reader.Close() }()
	inner := udpOf(innerFrom4, innerTo4, 0).bytes()
	var want []ReceiverSample
	for number := uint32(1); number <= 8; number++ {
		for path := range uint8(2) {
			h := wire.Header{Path: path, Set: 3, Flow: 0x21, Epoch: testEpoch, Base: number, Sent: 77}
			run(t, r.ReceiveXdp, frame(encapsulate(outerFrom4, outerTo4, 0, h, inner)))
			if number%4 == 0 {
				want = append(want, ReceiverSample{Number: number, SentUs: 77, Epoch: testEpoch,
					Size: uint16(len(inner) + Overhead4), Flow: 0x21, Path: path, Set: 3, First: 1 - path})
			}
		}
	}
	reader.SetDeadline(time.Now())
	for i := range want {
		record, err := reader.Read()
		if err != nil {
			t.Fatalf("sample %d: %v", i, err)
		}
		var got ReceiverSample
		if _, err := binary.Decode(record.RawSample, binary.NativeEndian, &got); err != nil {
			t.Fatal(err)
		}
		if got.ArrivedNs == 0 {
			t.Error("the sample has no time")
		}
		got.ArrivedNs = 0
		if got != want[i] {
			t.Errorf("sample %d is %+v, want %+v", i, got, want[i])
		}
	}
	if _, err := reader.Read(); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("one more sample: %v", err)
	}
}

// comparison drives the model of a window and the BPF program with the same packets.
type comparison struct {
	r      *ReceiverObjects
	model  [2]window.Window // of two flows
	counts ReceiverReceived
}

func newComparison(t testing.TB) *comparison {
	c := &comparison{r: newReceiver(t, ReceiverConfig{})}
	c.restart(t, testEpoch)
	return c
}

func (c *comparison) restart(t testing.TB, epoch uint16) {
	put(t, c.r.ReceiveConfig, uint32(0), ReceiverConfig{Epoch: epoch, Port: testPort})
	for i := range c.model {
		c.model[i].Restart(epoch)
	}
}

// clear empties both windows.
func (c *comparison) clear(t testing.TB) {
	t.Helper()
	c.model = [2]window.Window{}
	keys := make([]uint32, 2*window.Size/32)
	for i := range keys {
		keys[i] = uint32(i)
	}
	if _, err := c.r.Windows.BatchUpdate(keys, make([]uint64, len(keys)), nil); err != nil {
		t.Fatal(err)
	}
	c.restart(t, testEpoch)
}

// add gives a packet to both, and fails the test if their verdicts differ.
func (c *comparison) add(t testing.TB, flow uint8, epoch uint16, number uint32) {
	t.Helper()
	want := c.model[flow].Add(epoch, number)
	h := wire.Header{Flow: flow, Epoch: epoch, Base: number}
	inner := packet{from: innerFrom4, to: innerTo4, protocol: protoUDP}.bytes()
	run(t, c.r.ReceiveXdp, frame(encapsulate(outerFrom4, outerTo4, 0, h, inner)))
	counts := receivedOn(t, c.r, 0)
	var got window.Verdict
	switch {
	case counts.First == c.counts.First+1:
		got = window.First
	case counts.Repeated == c.counts.Repeated+1:
		got = window.Repeat
	case counts.Outside == c.counts.Outside+1:
		got = window.Outside
	default:
		t.Fatalf("not counted: %+v", counts)
	}
	c.counts = counts
	if got != want {
		t.Fatalf("flow %d, epoch %d, number %d: the program says %v, the model %v", flow, epoch, number, got, want)
	}
}

// step applies four bytes of fuzz input: an operation, and a distance of numbers.
func (c *comparison) step(t testing.TB, number *uint32, epoch *uint16, b []byte) {
	distance := uint32(int32(int16(binary.LittleEndian.Uint16(b[2:]))))
	switch b[0] % 8 {
	case 0:
		*epoch += uint16(b[1])
		c.restart(t, *epoch)
		return
	case 1:
		distance <<= b[1] % 32
	case 2:
		distance = uint32(b[1]) * window.Size
	}
	*number += distance
	judged := *epoch
	if b[0]&128 != 0 && b[1]&7 == 0 {
		judged -= uint16(b[1] >> 3)
	}
	c.add(t, b[0]>>6&1, judged, *number)
}

// FuzzWindow compares the window of the program with the model.
func FuzzWindow(f *testing.F) {
	f.Add([]byte{3, 0, 1, 0, 3, 0, 0, 0, 2, 1, 0, 0, 2, 255, 0, 0, 1, 31, 1, 0, 0, 1, 0, 0, 67, 0, 1, 0})
	c := newComparison(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		c.clear(t)
		number, epoch := uint32(0), uint16(testEpoch)
		for b = b[:min(len(b), 4*256)]; len(b) >= 4; b = b[4:] {
			c.step(t, &number, &epoch, b)
		}
	})
}

// TestWindowAsModel compares the window of the program with the model on random input.
func TestWindowAsModel(t *testing.T) {
	c := newComparison(t)
	random := rand.New(rand.NewPCG(7, 8))
	number, epoch := uint32(0), uint16(testEpoch)
	for range 20_000 {
		var b [4]byte
		binary.LittleEndian.PutUint32(b[:], random.Uint32())
		if random.IntN(50) > 0 {
			b[0] |= 4 // rarely an epoch or a jump, so that the windows fill
			b[3] = byte(int8(b[3]) >> 6)
		}
		c.step(t, &number, &epoch, b[:])
	}
}

// TestWindowConcurrent gives the copies of the same packets to the program on several threads at once: each packet is
// first once.
func TestWindowConcurrent(t *testing.T) {
	r := newReceiver(t, ReceiverConfig{Epoch: testEpoch, Port: testPort})
	const threads, count = 4, 4000
	inner := packet{from: innerFrom4, to: innerTo4, protocol: protoUDP}.bytes()
	var passed [count]atomic.Int32
	var group sync.WaitGroup
	for range threads {
		group.Go(func() {
			for number := range uint32(count) {
				h := wire.Header{Epoch: testEpoch, Base: number}
				copied := frame(encapsulate(outerFrom4, outerTo4, 0, h, inner))
				verdict, err := r.ReceiveXdp.Run(&ebpf.RunOptions{Data: copied})
				if err != nil {
					t.Error(err)
					return
				}
				if verdict == xdpPass {
					passed[number].Add(1)
				}
			}
		})
	}
	group.Wait()
	for number := range passed {
		if n := passed[number].Load(); n != 1 {
			t.Fatalf("packet %d passed %d times", number, n)
		}
	}
	if got := receivedOn(t, r, 0); got.First != count || got.Repeated != (threads-1)*count {
		t.Errorf("counted %+v, want %d first", got, count)
	}
}

// FuzzReceive gives any bytes to the programs. They neither fail nor pass a packet without encapsulation that comes
// from another prefix than the accepted ones.
func FuzzReceive(f *testing.F) {
	r := newReceiver(f, ReceiverConfig{Epoch: testEpoch, Port: testPort})
	h := wire.Header{Epoch: testEpoch}
	for _, inner := range [][]byte{udpOf(innerFrom4, innerTo4, 1).bytes(), tcpOf(innerFrom6, innerTo6, 1, 2).bytes()} {
		f.Add(frame(encapsulate(outerFrom4, outerTo4, 0, h, inner)))
		h.Kind = wire.KindSequence
		f.Add(frame(encapsulate(outerFrom6, outerTo6, 3, h, inner)))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) < etherSize+40 || len(b) > 3000 {
			return // test runs need the IP header of the EtherType
		}
		for _, p := range receiverPrograms {
			verdict, out := run(t, p.program(r), b)
			if verdict != p.pass && verdict != p.drop {
				t.Fatalf("%s: verdict %d", p.name, verdict)
			}
			if verdict == p.pass && len(out) < len(b) && !accepted(out[etherSize:]) {
				t.Fatalf("%s: passed % x", p.name, out)
			}
		}
	})
}

// accepted reports whether the source of an IP packet is in an accepted prefix of the tests.
func accepted(ip []byte) bool {
	if ip[0]>>4 == 4 {
		return bytes.HasPrefix(ip[12:], []byte{10, 1})
	}
	return bytes.HasPrefix(ip[8:], []byte{0xfd, 0, 0, 1})
}
