package mediasocket

import (
	"bytes"
	"errors"
	"net"
	"net/netip"
	"testing"
	"time"
)

func addressOf(c *Socket) netip.AddrPort { return c.LocalAddr().(*net.UDPAddr).AddrPort() }

// TestRunsArriveAsPackets writes RTP of several sizes to two addresses: runs arrive packet by packet, in order.
func TestRunsArriveAsPackets(t *testing.T) {
	pass := func([]byte, time.Time) bool { return true }
	sender, err := Open(pass)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sender.Close() }()
	var receivers [2]*Socket
	for i := range receivers {
		if receivers[i], err = Open(pass); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = receivers[i].Close() }()
	}
	var sent [2][][]byte
	write := func(to, size int) {
		packet := bytes.Repeat([]byte{byte(len(sent[to]))}, size)
		packet[0], packet[1] = 2<<6, 96
		sent[to] = append(sent[to], packet)
		if _, err := sender.WriteToAddrPort(packet, addressOf(receivers[to])); err != nil {
			t.Fatal(err)
		}
	}
	for range 2*MaxRun + 5 {
		write(0, 1216)
	}
	write(0, 700)
	write(0, 1216)
	write(0, 1300)
	write(1, 1300)
	write(1, 100)
	write(0, 100)
	if err := sender.Flush(); err != nil {
		t.Fatal(err)
	}
	// Packets other than RTP are not queued.
	if _, err := sender.WriteTo([]byte{20, 1, 2, 3}, net.UDPAddrFromAddrPort(addressOf(receivers[1]))); err != nil {
		t.Fatal(err)
	}
	sent[1] = append(sent[1], []byte{20, 1, 2, 3})
	buffer := make([]byte, MaxRunBytes)
	for i, r := range receivers {
		_ = r.SetReadDeadline(time.Now().Add(10 * time.Second))
		for n, want := range sent[i] {
			got, from, err := r.ReadFrom(buffer)
			if err != nil || !bytes.Equal(buffer[:got], want) || from.(*net.UDPAddr).AddrPort() != addressOf(sender) {
				t.Fatalf("receiver %d, packet %d: %d bytes from %v, %v; want %d", i, n, got, from, err, len(want))
			}
		}
	}
}

// TestObserverFiltersMedia: the peer connection gets the media that the observer requests, and all other packets.
func TestObserverFiltersMedia(t *testing.T) {
	var seen int
	s, err := Open(func(packet []byte, _ time.Time) bool {
		seen++
		return packet[2] == 1
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	media := func(needed byte) []byte { return append([]byte{2 << 6, 96, needed}, make([]byte, 20)...) }
	for _, packet := range [][]byte{media(0), {0, 1, 2}, media(0), media(1), {2 << 6, 96}} {
		if _, err := s.WriteToUDPAddrPort(packet, addressOf(s)); err != nil {
			t.Fatal(err)
		}
	}
	buffer := make([]byte, 1500)
	_ = s.SetReadDeadline(time.Now().Add(10 * time.Second))
	for _, want := range []int{3, 23, 2} {
		if n, _, err := s.ReadFromAddrPort(buffer); err != nil || n != want {
			t.Fatalf("got %d bytes, %v; want %d", n, err, want)
		}
	}
	if seen != 3 {
		t.Errorf("the observer got %d packets of media, want 3", seen)
	}
	if _, err := s.WriteTo(media(0), &net.TCPAddr{}); err == nil {
		t.Error("wrote to a TCP address")
	}
}

// TestCountedMedia: a socket that only counts media drops media and all datagrams of the same length, and passes all
// other datagrams.
func TestCountedMedia(t *testing.T) {
	s, err := Open(func([]byte, time.Time) bool { return true })
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	if err := CountMedia(s); errors.Is(err, errors.ErrUnsupported) {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
	rest := make([]byte, 20)
	for _, head := range [][]byte{{128, 96}, {191, 224}, {128, 200}, {0, 1}, {128, 191}, {22, 254}, {192, 96}} {
		if _, err := s.WriteToUDPAddrPort(append(head, rest...), addressOf(s)); err != nil {
			t.Fatal(err)
		}
	}
	for _, size := range []int{surelyMedia - 1, surelyMedia} {
		if _, err := s.WriteToUDPAddrPort(append([]byte{22, 253}, make([]byte, size-2)...), addressOf(s)); err != nil {
			t.Fatal(err)
		}
	}
	buffer := make([]byte, 1500)
	_ = s.SetReadDeadline(time.Now().Add(10 * time.Second))
	for _, want := range [][]byte{{128, 200}, {0, 1}, {22, 254}, {192, 96}, {22, 253}} {
		if n, _, err := s.ReadFromAddrPort(buffer); err != nil || !bytes.Equal(buffer[:2], want) {
			t.Fatalf("got %d bytes that begin with %v, %v; want %v", n, buffer[:2], err, want)
		}
	}
	if got := Dropped(s.UDPConn); got != 4 {
		t.Errorf("%d packets of media were counted, want 4", got)
	}
}

// TestSampledMedia: a socket that samples media receives one of SampleInterval numbers, and everything but RTP.
func TestSampledMedia(t *testing.T) {
	s, err := Open(func([]byte, time.Time) bool { return true })
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	if err := s.Sample(); errors.Is(err, errors.ErrUnsupported) {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
	send := func(head ...byte) {
		if _, err := s.WriteToUDPAddrPort(append(head, make([]byte, 1200)...), addressOf(s)); err != nil {
			t.Fatal(err)
		}
	}
	for number := range byte(3*SampleInterval + 1) {
		send(128, 96, 1, number)
	}
	send(128, 96|0x80, 1, SampleInterval+1)
	for _, head := range [][]byte{{128, 200, 1, 1}, {191, 223, 1, 1}, {0, 1, 1, 1}, {22, 254, 1, 1}} {
		send(head...)
	}
	buffer := make([]byte, 1500)
	_ = s.SetReadDeadline(time.Now().Add(10 * time.Second))
	for _, want := range [][]byte{{128, 96, 1, 0}, {128, 96, 1, 32}, {128, 96, 1, 64}, {128, 96, 1, 96},
		{128, 200, 1, 1}, {191, 223, 1, 1}, {0, 1, 1, 1}, {22, 254, 1, 1}} {
		if n, _, err := s.ReadFromAddrPort(buffer); err != nil || !bytes.Equal(buffer[:4], want) {
			t.Fatalf("got %d bytes that begin with %v, %v; want %v", n, buffer[:4], err, want)
		}
	}
	if got, want := Dropped(s.UDPConn), 3*(SampleInterval-1)+1; got != want || !s.Counting() {
		t.Errorf("%d packets of media were counted, want %d", got, want)
	}
}
