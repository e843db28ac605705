package datachannels

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/transport/ratelimit"
)

// noSink is a Sink that ignores everything.
type noSink struct{}

func (noSink) Data(string, []byte, time.Time) {}
func (noSink) Acknowledged(time.Time)         {}

// chunk makes an SCTP chunk with the given number of body bytes.
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
		// Browsers begin a message in the free part of a packet.
		{"the end of a message and a tiny fragment", packet(data(ending, 700), data(begin, 10)), chunkCount{2, 0},
			false},
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

// sentPackets is a connection from an address. Reading returns the given packets.
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

// TestControlChunksAreBounded: of packets of HEARTBEATs, each of which SCTP would answer, few pass, while DATA chunks
// pass. A remote peer that continues ends the association.
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
		c := newDataConn(from, noSink{}, func(f func()) bool { f(); return true }, shared)
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
		// The bucket has tokens for one packet. The test may take a second, in which another one passes.
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

// TestChunksOfOneAddressAreBounded: the peers of one address share a limit, and other addresses have their own.
func TestChunksOfOneAddressAreBounded(t *testing.T) {
	data := append(make([]byte, sctpHeader), chunk(chunkData, 3, dataHeader+4)...)
	shared := ratelimit.NewSharedSources(1, 5)
	passed := map[string]int{}
	for _, address := range []net.Addr{
		&net.UDPAddr{IP: net.IPv4(203, 0, 113, 1), Port: 1}, &net.TCPAddr{IP: net.IPv4(203, 0, 113, 1), Port: 2},
		&net.UDPAddr{IP: net.IPv4(203, 0, 113, 2), Port: 1},
	} {
		from := &sentPackets{remote: address, packets: slices.Repeat([][]byte{data}, 4)}
		c := newDataConn(from, noSink{}, func(f func()) bool { f(); return true }, shared)
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
