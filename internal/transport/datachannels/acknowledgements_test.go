package datachannels

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// packetOf returns a packet of chunks with a valid checksum.
func packetOf(chunks ...[]byte) []byte {
	packet := make([]byte, sctpHeader)
	for _, c := range chunks {
		packet = append(packet, c...)
		packet = append(packet, make([]byte, -len(c)&3)...)
	}
	binary.LittleEndian.PutUint32(packet[checksumOffset:], crc32.Checksum(packet, castagnoli))
	return packet
}

// chunkOf returns a chunk of a type with a number of bytes behind its header.
func chunkOf(kind byte, size int) []byte {
	c := make([]byte, chunkHeader+size)
	c[0] = kind
	binary.BigEndian.PutUint16(c[2:], uint16(len(c)))
	return c
}

func TestAcknowledgeAtOnce(t *testing.T) {
	data, sack := chunkOf(chunkData, 17), chunkOf(chunkSACK, 12)
	flagged := bytes.Clone(data)
	flagged[1] |= immediately
	packet := packetOf(sack, data, data)
	acknowledgeAtOnce(packet)
	if want := packetOf(sack, flagged, flagged); !bytes.Equal(packet, want) {
		t.Errorf("got % x, expected % x", packet, want)
	}
	packet = packetOf(data)
	clear(packet[checksumOffset:sctpHeader])
	acknowledgeAtOnce(packet)
	if packet[sctpHeader+1] != immediately || binary.LittleEndian.Uint32(packet[checksumOffset:]) != 0 {
		t.Errorf("without a checksum: % x", packet)
	}
	for _, packet := range [][]byte{nil, packetOf(), packetOf(sack), packetOf(data)[:sctpHeader+3],
		packetOf(chunkOf(chunkData, 60))[:30]} {
		before := bytes.Clone(packet)
		acknowledgeAtOnce(packet)
		if !bytes.Equal(packet, before) {
			t.Errorf("% x became % x", before, packet)
		}
	}
}

// FuzzAcknowledgements checks that only flags and the checksum of a packet change.
func FuzzAcknowledgements(f *testing.F) {
	f.Add(packetOf(chunkOf(chunkData, 17), chunkOf(chunkSACK, 12)))
	f.Fuzz(func(t *testing.T, packet []byte) {
		changed := bytes.Clone(packet)
		acknowledgeAtOnce(changed)
		acknowledges(changed)
		for i := range packet {
			if i >= sctpHeader && changed[i]|immediately != packet[i]|immediately {
				t.Fatalf("byte %d became %x, expected %x", i, changed[i], packet[i])
			}
		}
	})
}

// writtenConn passes written packets to a channel.
type writtenConn struct {
	net.Conn
	written chan []byte
}

func (c writtenConn) Write(b []byte) (int, error) {
	c.written <- bytes.Clone(b)
	return len(b), nil
}

// TestRepeatedAcknowledgements checks that the last acknowledgement is sent three times in all, and nothing else.
func TestRepeatedAcknowledgements(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := writtenConn{written: make(chan []byte, 10)}
		c := newDataConn(conn, nil, func(f func()) bool { f(); return true }, nil)
		first, second := packetOf(chunkOf(chunkSACK, 12)), packetOf(chunkOf(chunkSACK, 16))
		other := packetOf(chunkOf(chunkSACK, 12), chunkOf(chunkData, 17))
		for _, packet := range [][]byte{first, second, other} {
			if _, err := c.Write(packet); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		var got [][]byte
		for len(conn.written) > 0 {
			got = append(got, <-conn.written)
		}
		if want := [][]byte{first, second, other, second, second}; !slices.EqualFunc(got, want, bytes.Equal) {
			t.Errorf("the packets are % x, expected % x", got, want)
		}
	})
}
