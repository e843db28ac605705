package transport

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"slices"
	"testing"

	"github.com/volsfu/volsfu/internal/transport/icemux"
	"github.com/volsfu/volsfu/internal/transport/ratelimit"
	"github.com/volsfu/volsfu/internal/udp"
)

// record makes a DTLS 1.2 record.
func record(content byte, epoch uint16, body ...byte) []byte {
	r := []byte{content, 0xfe, 0xfd}
	r = binary.BigEndian.AppendUint16(r, epoch)
	r = append(r, 0, 0, 0, 0, 0, 1)
	r = binary.BigEndian.AppendUint16(r, uint16(len(body)))
	return append(r, body...)
}

// fragment makes a handshake fragment with as many bytes of body as it says.
func fragment(total, number, offset, length int) []byte {
	f := []byte{1, byte(total >> 16), byte(total >> 8), byte(total), byte(number >> 8), byte(number)}
	f = append(f, byte(offset>>16), byte(offset>>8), byte(offset), byte(length>>16), byte(length>>8), byte(length))
	return append(f, make([]byte, length)...)
}

func TestRecordsThatAreTaken(t *testing.T) {
	hello := record(contentHandshake, 0, fragment(100, 0, 0, 100)...)
	for _, test := range []struct {
		name     string
		datagram []byte
		finished bool
		kept     int
	}{
		{"a hello", hello, false, len(hello)},
		{"a hello after the handshake", hello, true, 0},
		{"an empty message", record(contentHandshake, 0, fragment(0, 1, 0, 0)...), false, 25},
		{"two messages in a record", record(contentHandshake, 0, append(fragment(8, 1, 0, 8), fragment(8, 2, 0, 8)...)...), false, 53},
		{"the middle of a message", record(contentHandshake, 0, fragment(100, 1, 20, 30)...), false, 55},
		// An empty fragment behind the message's beginning ends dtls 3.1.8.
		{"an empty fragment at an offset", record(contentHandshake, 0, fragment(0, 0, 5, 0)...), false, 0},
		{"an empty fragment of a message", record(contentHandshake, 0, fragment(100, 0, 0, 0)...), false, 0},
		{"a fragment beyond its message", record(contentHandshake, 0, fragment(100, 1, 90, 11)...), false, 0},
		{"a fragment longer than its record", record(contentHandshake, 0, fragment(100, 1, 0, 100)[:50]...), false, 0},
		{"half a fragment's header", record(contentHandshake, 0, fragment(0, 1, 0, 0)[:6]...), false, 0},
		{"a record without a message", record(contentHandshake, 0), false, 0},
		{"a message that is too long", record(contentHandshake, 0, fragment(maxHandshake+1, 1, 0, 10)...), false, 0},
		{"a message of a far number", record(contentHandshake, 0, fragment(10, maxHandshakeNumber, 0, 10)...), false, 0},
		{"a change of keys", record(contentChangeCipherSpec, 0, 1), false, 14},
		{"an alert", record(contentAlert, 0, 2, 40), false, 15},
		{"an alert after the handshake", record(contentAlert, 0, 1, 0), true, 0},
		{"a long alert", record(contentAlert, 0, 2, 40, 0), false, 0},
		{"data without protection", record(contentApplicationData, 0, 1, 2, 3), false, 0},
		{"a heartbeat", record(24, 0, 1), false, 0},
		{"protected data", record(contentApplicationData, 1, 1, 2, 3), true, 16},
		{"an unknown record of a later epoch", record(26, 1, 1, 2, 3), true, 0},
		{"half a record", hello[:20], false, 0},
		// The peer's last flight, repeated since the answer was lost: what is protected asks for the answer.
		{"a repeated last flight", append(bytes.Clone(hello), record(contentHandshake, 1, make([]byte, 40)...)...), true, 53},
	} {
		f := recordFilter{finished: test.finished}
		if kept := f.filter(bytes.Clone(test.datagram)); len(kept) != test.kept {
			t.Errorf("%s: %d of %d bytes are kept, expected %d", test.name, len(kept), len(test.datagram), test.kept)
		}
	}
}

// TestUnprotectedRecordsAreBounded sends hellos without end.
func TestUnprotectedRecordsAreBounded(t *testing.T) {
	var f recordFilter
	taken := 0
	for range 10_000 {
		taken += len(f.filter(record(contentHandshake, 0, fragment(1000, 0, 0, 1000)...)))
	}
	if taken == 0 || taken > maxPlaintext {
		t.Errorf("%d bytes are taken, expected some and %d at most", taken, maxPlaintext)
	}
	if protected := record(contentApplicationData, 1, 1); len(f.filter(protected)) != len(protected) {
		t.Error("a protected record is not taken")
	}
}

// FuzzRecords holds that what the filter keeps is records, which it would keep again, and that it never keeps more than
// there was.
func FuzzRecords(f *testing.F) {
	f.Add(record(contentHandshake, 0, fragment(100, 0, 0, 100)...), false)
	f.Add(append(record(contentAlert, 0, 2, 40), record(contentHandshake, 1, 1, 2, 3)...), true)
	f.Fuzz(func(t *testing.T, datagram []byte, finished bool) {
		before := len(datagram)
		first := recordFilter{finished: finished}
		kept := first.filter(bytes.Clone(datagram))
		if len(kept) > before {
			t.Fatalf("%d of %d bytes are kept", len(kept), before)
		}
		again := recordFilter{finished: finished}
		if twice := again.filter(bytes.Clone(kept)); !bytes.Equal(twice, kept) {
			t.Fatalf("of %x a second filter keeps %x", kept, twice)
		}
	})
}

// chunk makes an SCTP chunk with as many bytes of body.
func chunk(kind, flags byte, body int) []byte {
	c := binary.BigEndian.AppendUint16([]byte{kind, flags}, uint16(chunkHeader+body))
	return append(c, make([]byte, (body+3)&^3)...)
}

func TestCountChunks(t *testing.T) {
	packet := func(chunks ...[]byte) []byte { return append(make([]byte, sctpHeader), bytes.Join(chunks, nil)...) }
	const whole, middle, begin, ending = 3, 0, 2, 1
	const heartbeat, reconfigure = 4, 130
	data := func(flags byte, bytes int) []byte { return chunk(chunkData, flags, dataHeader-chunkHeader+bytes) }
	for _, test := range []struct {
		name   string
		packet []byte
		count  chunkCount
		fails  bool
	}{
		{"no chunk", packet(), chunkCount{}, false},
		{"an acknowledgement", packet(chunk(chunkSACK, 0, 12)), chunkCount{1, 0}, false},
		{"two messages and an acknowledgement",
			packet(data(whole, 1), chunk(chunkSACK, 0, 12), data(whole, 7)), chunkCount{3, 0}, false},
		{"a message that is given up", packet(chunk(chunkForwardTSN, 0, 8)), chunkCount{1, 0}, false},
		{"heartbeats", packet(bytes.Repeat(chunk(heartbeat, 0, 4), 148)), chunkCount{0, 148}, false},
		{"a message and a reset", packet(data(whole, 1), chunk(reconfigure, 0, 16)), chunkCount{1, 1}, false},
		{"a large fragment", packet(data(begin, 1150)), chunkCount{1, 0}, false},
		{"the end of a message", packet(data(ending, 1)), chunkCount{1, 0}, false},
		{"an empty message", packet(data(whole, 0)), chunkCount{}, true},
		{"an empty fragment", packet(data(middle, 0)), chunkCount{}, true},
		// Browsers begin a message in what is left of a packet.
		{"the end of a message and a tiny fragment", packet(data(ending, 700), data(begin, 10)), chunkCount{2, 0}, false},
		{"a chunk that is cut off", packet(data(whole, 100)[:40]), chunkCount{}, false},
		{"a chunk without length", packet([]byte{0, 3, 0, 0}), chunkCount{}, false},
		{"half a header", make([]byte, 5), chunkCount{}, false},
	} {
		count, err := countChunks(test.packet)
		if count != test.count || (err != nil) != test.fails {
			t.Errorf("%s: counted %+v, %v; expected %+v, an error %t", test.name, count, err, test.count, test.fails)
		}
	}
}

// sentPackets is a connection to an address, from which packets are read.
type sentPackets struct {
	net.Conn
	remote  net.Addr
	packets [][]byte
}

func (s *sentPackets) RemoteAddr() net.Addr { return s.remote }

func (s *sentPackets) Read(b []byte) (int, error) {
	if len(s.packets) == 0 {
		return 0, io.EOF
	}
	n := copy(b, s.packets[0])
	s.packets = s.packets[1:]
	return n, nil
}

// TestControlChunksAreBounded: of packets of heartbeats, which SCTP would answer by a packet each, few pass. Data do. A
// remote peer that sends on ends the association.
func TestControlChunksAreBounded(t *testing.T) {
	const each = 148
	heartbeats := append(make([]byte, sctpHeader), bytes.Repeat(chunk(4, 0, 4), each)...)
	data := append(make([]byte, sctpHeader), chunk(chunkData, 3, dataHeader)...)
	shared := ratelimit.NewSharedSources(sourceChunkRate, sourceChunkBurst)
	for _, test := range []struct {
		packets int
		end     error
	}{{maxLostControl / each, io.EOF}, {50, errSCTP}} {
		from := &sentPackets{packets: append(slices.Repeat([][]byte{heartbeats}, test.packets), data)}
		c := newDataConn(from, NoOpSink{}, func(f func()) bool { f(); return true }, shared)
		passed, last := 0, 0
		var end error
		for b := make([]byte, 2000); ; passed++ {
			var n int
			if n, end = c.Read(b); end != nil {
				break
			}
			last = n
		}
		if !errors.Is(end, test.end) {
			t.Errorf("%d packets of heartbeats: the association ends with %v, expected %v", test.packets, end, test.end)
		}
		// One packet fits into the bucket, and the test may take a second in which another one does.
		least, most := 1, 3
		if test.end == io.EOF {
			least, most = 2, 4
		}
		if passed < least || passed > most || test.end == io.EOF && last != len(data) {
			t.Errorf("%d packets of heartbeats: %d packets passed, the last of %d bytes; expected %d to %d",
				test.packets, passed, last, least, most)
		}
	}
}

// TestChunksOfOneAddressAreBounded: the peers of one address share its bound, those of another have their own.
func TestChunksOfOneAddressAreBounded(t *testing.T) {
	data := append(make([]byte, sctpHeader), chunk(chunkData, 3, dataHeader+4)...)
	shared := ratelimit.NewSharedSources(1, 5)
	passed := map[string]int{}
	for _, address := range []net.Addr{
		&net.UDPAddr{IP: net.IPv4(203, 0, 113, 1), Port: 1}, &net.TCPAddr{IP: net.IPv4(203, 0, 113, 1), Port: 2},
		&net.UDPAddr{IP: net.IPv4(203, 0, 113, 2), Port: 1},
	} {
		from := &sentPackets{remote: address, packets: slices.Repeat([][]byte{data}, 4)}
		c := newDataConn(from, NoOpSink{}, func(f func()) bool { f(); return true }, shared)
		for b := make([]byte, 2000); ; passed[addressOf(address).String()]++ {
			if _, err := c.Read(b); err != nil {
				break
			}
		}
	}
	// The test may take a second in which one more passes.
	if one, two := passed["203.0.113.1"], passed["203.0.113.2"]; one < 5 || one > 6 || two != 4 {
		t.Errorf("%d of 8 and %d of 4 packets passed, expected 5 and 4", one, two)
	}
}

// TestRecordsOfOneAddressAreBounded brings records of two peers from one address.
func TestRecordsOfOneAddressAreBounded(t *testing.T) {
	port, err := udp.Listen(udp.Config{Address: netip.MustParseAddrPort("127.0.0.1:0"), Sockets: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = port.Close() }()
	mux := icemux.New(port, &routes{}, icemux.Config{Unbounded: true, Records: ratelimit.Rate{PerSecond: 1, Burst: 3}})
	record := []byte{contentApplicationData, 0xfe, 0xfd, 0, 1, 0, 0, 0, 0, 0, 1, 0, 1, 7}
	for n := range 2 {
		p := &Peer{endpoint: &Endpoint{mux: mux}}
		p.records.Store(newRecordConn(nil))
		from := netip.AddrPortFrom(netip.MustParseAddr("203.0.113.1"), uint16(1+n))
		for range 2 {
			p.receiveControl(slices.Clone(record), from, start)
		}
	}
	if limited := mux.Counts().Limited; limited != 1 {
		t.Errorf("%d of 4 datagrams with records are refused, expected 1", limited)
	}
}
