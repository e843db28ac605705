package udp

import (
	"fmt"
	"net"
	"testing"
	"time"
)

// BenchmarkSend sends runs of datagrams of 1,200 bytes to a socket that is not read and does not accept coalesced runs:
// the kernel segments each, and drops the excess. ns/datagram includes that.
func BenchmarkSend(b *testing.B) {
	for _, v := range variants() {
		switch v.name {
		case "as the system can", "without segmenting", "plain":
		default:
			continue
		}
		for _, datagrams := range []int{1, 5, 16, 43} {
			b.Run(fmt.Sprintf("%s/%d", v.name, datagrams), func(b *testing.B) {
				drain, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(loopback4))
				if err != nil {
					b.Fatal(err)
				}
				defer drain.Close()
				from := v.open(b, Config{Address: loopback4})
				messages := []Message{run(unmap(drain.LocalAddr().(*net.UDPAddr).AddrPort()), 0, datagrams, 1200, 1200)}
				s := from.Sockets()[0]
				b.ReportAllocs()
				for b.Loop() {
					if err := s.Send(messages); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*datagrams), "ns/datagram")
			})
		}
	}
}

// BenchmarkSendPeers sends a run each to 20 peers by one call, as a writer does with a packet for all receivers.
func BenchmarkSendPeers(b *testing.B) {
	const peers = 20
	for _, v := range variants() {
		switch v.name {
		case "as the system can", "without segmenting", "plain":
		default:
			continue
		}
		for _, datagrams := range []int{1, 5} {
			b.Run(fmt.Sprintf("%s/%d", v.name, datagrams), func(b *testing.B) {
				var messages []Message
				for range peers {
					drain, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(loopback4))
					if err != nil {
						b.Fatal(err)
					}
					defer drain.Close()
					messages = append(messages,
						run(unmap(drain.LocalAddr().(*net.UDPAddr).AddrPort()), 0, datagrams, 1200, 1200))
				}
				s := v.open(b, Config{Address: loopback4}).Sockets()[0]
				b.ReportAllocs()
				for b.Loop() {
					if err := s.Send(messages); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*datagrams*peers), "ns/datagram")
			})
		}
	}
}

// BenchmarkReceive empties a receive buffer with ten runs of 43 datagrams. Sending is not measured.
func BenchmarkReceive(b *testing.B) {
	const runs, datagrams = 10, 43
	for _, v := range variants() {
		switch v.name {
		case "as the system can", "without coalescing", "plain":
		default:
			continue
		}
		b.Run(v.name, func(b *testing.B) {
			from := opened(b)(Listen(Config{Address: loopback4}))
			to := v.open(b, Config{Address: loopback4, ReceiveBuffer: 4 << 20})
			var messages []Message
			for i := range runs {
				messages = append(messages, run(to.Address(), i*datagrams, datagrams, 1200, 1200))
			}
			s, in, took := to.Sockets()[0], NewInbox(), time.Duration(0)
			b.ReportAllocs()
			for b.Loop() {
				if err := from.Sockets()[0].Send(messages); err != nil {
					b.Fatal(err)
				}
				start := time.Now()
				for left := runs * datagrams; left > 0; {
					if err := s.Receive(in); err != nil {
						b.Fatal(err)
					}
					for _, m := range in.Messages() {
						left -= m.Count()
					}
				}
				took += time.Since(start)
			}
			if drops := to.Stats().ReceiveDrops; drops > 0 {
				b.Fatalf("%d dropped: the system does not grant the buffer", drops)
			}
			b.ReportMetric(float64(took.Nanoseconds())/float64(b.N*runs*datagrams), "ns/datagram")
		})
	}
}
