package udp

import (
	"fmt"
	"net"
	"runtime"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/volsfu/volsfu/internal/ecn"
)

// BenchmarkECN compares datagrams of 1,200 bytes without and with a codepoint, in turn, so that both find the same
// conditions. The metrics are the processor time per datagram without, and the ratio of the times with and without,
// each a median over rounds of about 100 datagrams.
func BenchmarkECN(b *testing.B) {
	for _, datagrams := range []int{1, 5, 43} {
		b.Run(fmt.Sprintf("send/%d", datagrams), func(b *testing.B) { benchmarkSendECN(b, datagrams) })
		b.Run(fmt.Sprintf("receive/%d", datagrams), func(b *testing.B) { benchmarkReceiveECN(b, datagrams) })
	}
}

// roundRuns returns the number of runs of a round.
func roundRuns(datagrams int) int { return max(1, 100/datagrams) }

// benchmarkSendECN sends as BenchmarkSend.
func benchmarkSendECN(b *testing.B, datagrams int) {
	drain, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(loopback4))
	if err != nil {
		b.Fatal(err)
	}
	defer drain.Close()
	s := opened(b)(Listen(Config{Address: loopback4})).Sockets()[0]
	without := []Message{run(unmap(drain.LocalAddr().(*net.UDPAddr).AddrPort()), 0, datagrams, 1200, 1200)}
	with := []Message{marked(without[0], ecn.ECT1)}
	runs := roundRuns(datagrams)
	compare(b, runs*datagrams, func(i int) time.Duration {
		messages := [][]Message{without, with}[i]
		start := threadTime(b)
		for range runs {
			if err := s.Send(messages); err != nil {
				b.Fatal(err)
			}
		}
		return threadTime(b) - start
	})
}

// benchmarkReceiveECN receives runs on a socket that reports codepoints and on one that does not. Sending is not
// measured.
func benchmarkReceiveECN(b *testing.B, datagrams int) {
	runs := roundRuns(datagrams)
	from := opened(b)(Listen(Config{Address: loopback4}))
	var ports [2]*Port
	var sent [2][]Message
	for i, v := range []variant{
		able("without codepoints", func(use *abilities) { use.reportingECN = false }),
		listening("with codepoints", func(*Config) {}),
	} {
		ports[i] = v.open(b, Config{Address: loopback4, ReceiveBuffer: 4 << 20})
		for j := range runs {
			sent[i] = append(sent[i], marked(run(ports[i].Address(), j*datagrams, datagrams, 1200, 1200), ecn.ECT1))
		}
	}
	in := NewInbox()
	compare(b, runs*datagrams, func(i int) time.Duration {
		if err := from.Sockets()[0].Send(sent[i]); err != nil {
			b.Fatal(err)
		}
		start := threadTime(b)
		for left := runs * datagrams; left > 0; {
			if err := ports[i].Sockets()[0].Receive(in); err != nil {
				b.Fatal(err)
			}
			for _, m := range in.Messages() {
				left -= m.Count()
			}
		}
		return threadTime(b) - start
	})
}

// compare measures rounds of a number of datagrams, without a codepoint (0) and with (1).
func compare(b *testing.B, datagrams int, round func(i int) time.Duration) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	took := [2][]time.Duration{}
	for n := 0; b.Loop(); n++ {
		for i := range took {
			// The first of two may be at an advantage.
			i ^= n & 1
			took[i] = append(took[i], round(i))
		}
	}
	var medians [2]float64
	for i := range took {
		slices.Sort(took[i])
		medians[i] = float64(took[i][len(took[i])/2].Nanoseconds())
	}
	b.ReportMetric(medians[0]/float64(datagrams), "ns/datagram")
	b.ReportMetric(medians[1]/medians[0], "ratio")
}

// threadTime returns the processor time of this thread.
func threadTime(b *testing.B) time.Duration {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &now); err != nil {
		b.Fatal(err)
	}
	return time.Duration(now.Nano())
}
