package udp

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/volsfu/volsfu/internal/ecn"
)

// TestStamps: the kernel reports departure and arrival times of datagrams, in that order, for both address families,
// and for the first datagram of a run.
func TestStamps(t *testing.T) {
	for _, address := range []netip.AddrPort{loopback4, loopback6} {
		t.Run(address.Addr().String(), func(t *testing.T) {
			from, to := opened(t)(Listen(Config{Address: address})), opened(t)(Listen(Config{Address: address}))
			sender, receiver := from.Sockets()[0], to.Sockets()[0]
			if !sender.TakeStamps(true) || !receiver.TakeStamps(true) {
				t.Skip("the kernel gives no stamps")
			}
			warm(t, receiver, to.Address())
			begin := time.Now().UnixNano()
			asked := run(to.Address(), 7, 4, 1000, 900)
			asked.Stamped = true
			if err := sender.Send([]Message{run(to.Address(), 0, 2, 500, 500), asked,
				run(to.Address(), 20, 1, 300, 300)}); err != nil {
				t.Fatal(err)
			}
			in := NewInbox()
			var departures []Departure
			for len(departures) == 0 {
				if err := sender.Receive(in); err != nil {
					t.Fatal(err)
				}
				if len(in.Messages()) != 0 {
					t.Fatal("the sender received datagrams, expected stamps alone")
				}
				departures = append(departures, in.Departures()...)
			}
			left := departures[0]
			if len(departures) != 1 || left.Peer != to.Address() || !bytes.Equal(left.Head[:], asked.Data[:headSize]) {
				t.Fatalf("got %+v, expected the first of the run that was asked for", departures)
			}
			arrived := int64(0)
			for received := 0; received < 7; {
				if err := receiver.Receive(in); err != nil {
					t.Fatal(err)
				}
				for _, m := range in.Messages() {
					if m.Arrived.Kernel == 0 || m.Arrived.Hardware != 0 {
						t.Errorf("stamped %+v, expected the kernel's alone", m.Arrived)
					}
					if bytes.Equal(m.Data[:headSize], left.Head[:]) {
						arrived = m.Arrived.Kernel
					}
					received += m.Count()
				}
			}
			if end := time.Now().UnixNano(); left.Kernel < begin || arrived != 0 && arrived < left.Kernel ||
				arrived > end {
				t.Errorf("sent after %v, stamped at %v and %v, read by %v", begin, left.Kernel, arrived, end)
			}
			if waits := sender.kernel.awaited.Load(); waits != 0 {
				t.Errorf("%d stamps are awaited, expected none", waits)
			}
		})
	}
}

// warm sends datagrams to a socket until one has a timestamp: the kernel enables timestamps some time after the
// request.
func warm(t *testing.T, s *Socket, address netip.AddrPort) {
	t.Helper()
	in := NewInbox()
	for end := time.Now().Add(patience); ; {
		if err := s.Send([]Message{run(address, 0, 1, 20, 20)}); err != nil {
			t.Fatal(err)
		}
		if err := s.Receive(in); err != nil {
			t.Fatal(err)
		}
		if in.Messages()[0].Arrived.Kernel != 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatal("no datagram was stamped")
		}
	}
}

// TestStampsOff: without a request there are no timestamps.
func TestStampsOff(t *testing.T) {
	port := opened(t)(Listen(Config{Address: loopback4}))
	s := port.Sockets()[0]
	message := run(port.Address(), 0, 1, 100, 100)
	message.Stamped = true
	in := NewInbox()
	for _, on := range []bool{false, true, false} {
		if s.TakeStamps(on) != on && on {
			t.Skip("the kernel gives no stamps")
		}
		if on {
			warm(t, s, port.Address())
		}
		if err := s.Send([]Message{message}); err != nil {
			t.Fatal(err)
		}
		messages, departures := 0, 0
		for messages == 0 || on && departures == 0 {
			if err := s.Receive(in); err != nil {
				t.Fatal(err)
			}
			departures += len(in.Departures())
			for _, m := range in.Messages() {
				messages++
				if (m.Arrived.Kernel != 0) != on {
					t.Errorf("stamps %v: the datagram has %+v", on, m.Arrived)
				}
			}
		}
		if !on && departures != 0 {
			t.Errorf("%d stamps of sent datagrams, expected none", departures)
		}
	}
	plain := opened(t)(Listen(Config{Address: loopback4, PlainReceiving: true, PlainSending: true}))
	if plain.Sockets()[0].TakeStamps(true) {
		t.Error("a socket of plain calls takes stamps")
	}
}

// TestStampsRefused: if a kernel refuses a datagram with a timestamp request, the datagram is sent without the request.
func TestStampsRefused(t *testing.T) {
	port := opened(t)(Listen(Config{Address: loopback4}))
	s := port.Sockets()[0]
	if !s.TakeStamps(true) {
		t.Skip("the kernel gives no stamps")
	}
	s.kernel.sendmmsg = refusingWhere(has(t, stampKind), unix.EINVAL)(s.kernel.sendmmsg)
	asked := run(port.Address(), 0, 3, 900, 900)
	asked.Stamped = true
	if err := s.Send([]Message{asked}); err != nil {
		t.Fatal(err)
	}
	in := NewInbox()
	for received := 0; received < 3; {
		if err := s.Receive(in); err != nil {
			t.Fatal(err)
		}
		for _, m := range in.Messages() {
			received += m.Count()
		}
	}
	if s.kernel.stamping.Load() {
		t.Error("stamps are still asked for")
	}
}

// packetTo returns a UDP packet as it is passed to a device.
func packetTo(peer netip.AddrPort, ether bool, payload []byte) []byte {
	var packet []byte
	kind := uint16(typeIPv4)
	if peer.Addr().Is6() {
		kind = typeIPv6
	}
	if ether {
		packet = binary.BigEndian.AppendUint16(make([]byte, 12), kind)
	}
	if peer.Addr().Is4() {
		ip := make([]byte, 20)
		ip[0], ip[9] = 0x45, protocolUDP
		copy(ip[16:], peer.Addr().AsSlice())
		packet = append(packet, ip...)
	} else {
		ip := make([]byte, 40)
		ip[0], ip[6] = 0x60, protocolUDP
		copy(ip[24:], peer.Addr().AsSlice())
		packet = append(packet, ip...)
	}
	packet = binary.BigEndian.AppendUint16(append(packet, 1, 2), peer.Port())
	return append(append(packet, 0, 0, 0, 0), payload...)
}

func TestParseSent(t *testing.T) {
	payload := []byte("a datagram")
	for _, peer := range []netip.AddrPort{netip.MustParseAddrPort("192.0.2.7:4321"),
		netip.MustParseAddrPort("[2001:db8::7]:4321")} {
		for _, ether := range []bool{false, true} {
			packet := packetTo(peer, ether, payload)
			got, data, ok := parseSent(packet)
			if !ok || got != peer || !bytes.Equal(data, payload) {
				t.Errorf("%v, Ethernet %v: got %v, %q, %v", peer, ether, got, data, ok)
			}
			for n := range len(packet) - len(payload) {
				if _, _, ok := parseSent(packet[:n]); ok {
					t.Errorf("%v, Ethernet %v: %d bytes are a packet", peer, ether, n)
				}
			}
		}
	}
}

// FuzzControls: any content of the control memory is read within its bounds.
func FuzzControls(f *testing.F) {
	f.Add(make([]byte, controlSpace), packetTo(netip.MustParseAddrPort("192.0.2.7:4321"), true, []byte("x")))
	f.Add([]byte{24, 0, 0, 0, 0, 0, 0, 0, 17, 0, 0, 0, 104, 0, 0, 0, 176, 4, 0, 0, 0, 0, 0, 0}, []byte{0x4f})
	f.Add([]byte{17, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0}, []byte{0x4f})
	f.Add([]byte{20, 0, 0, 0, 0, 0, 0, 0, 41, 0, 0, 0, 67, 0, 0, 0, 255, 255, 255, 255, 0, 0, 0, 0}, []byte{0x4f})
	f.Fuzz(func(t *testing.T, controls, packet []byte) {
		room := make([]byte, min(len(controls), controlSpace))
		copy(room, controls)
		if facts := parseControls(room); facts.ecn > ecn.CE {
			t.Errorf("the codepoint is %d, expected at most %d", facts.ecn, ecn.CE)
		}
		if peer, data, ok := parseSent(packet); ok && (!peer.IsValid() || len(data) > len(packet)) {
			t.Errorf("%v with %d bytes of %d", peer, len(data), len(packet))
		}
	})
}
