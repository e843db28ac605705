package bpf

import (
	"fmt"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/volsfu/volsfu/internal/netfn/wire"
	"github.com/volsfu/volsfu/test/traffic"
)

// BenchmarkFilter measures the receiver's programs by test runs on one processor, for frames that leave the program as
// they came: the kernel gives the same frame again. BenchmarkPair measures first copies.
func BenchmarkFilter(b *testing.B) {
	r := newReceiver(b, ReceiverConfig{Epoch: testEpoch, Port: testPort})
	inner := packet{from: innerFrom4, to: innerTo4, protocol: protoUDP, payload: 1200}.bytes()
	f := frame(encapsulate(outerFrom4, outerTo4, 0, wire.Header{Epoch: testEpoch, Base: 1}, inner))
	run(b, r.ReceiveXdp, f)
	// The verifier adds barriers against speculation for users without CAP_PERFMON.
	user := &ReceiverObjects{}
	if err := restricted(func() error { return loadWithout(LoadReceiver, user) }); err != nil {
		b.Fatal(err)
	}
	defer func() { _ = user.Close() }()
	configure(b, user, ReceiverConfig{Epoch: testEpoch, Port: testPort})
	run(b, user.ReceiveXdp, f)
	foreign := frame(encapsulate(outerTo4, outerFrom4, 0, wire.Header{Epoch: testEpoch}, inner))
	other := frame(inner)
	p := packet{from: innerFrom4, to: innerTo4, protocol: protoUDP, id: 1, payload: 1200, tos: (1+testEpoch%7)<<5 | 1}
	for _, test := range []struct {
		name    string
		program *ebpf.Program
		frame   []byte
	}{
		{"repeat", r.ReceiveXdp, f}, {"repeat-user", user.ReceiveXdp, f},
		{"foreign", r.ReceiveXdp, foreign}, {"other", r.ReceiveXdp, other},
		{"repeat-tc", r.ReceiveEther, f}, {"stamped", r.StampedXdp, frame(p.bytes())},
		{"paper", r.PaperXdp, frame(p.bytes())},
	} {
		b.Run(test.name, func(b *testing.B) { measure(b, test.program, test.frame) })
	}
}

// measure reports the time of one run of a program, as the kernel measures it.
func measure(b *testing.B, p *ebpf.Program, frame []byte) {
	_, each, err := p.Benchmark(frame, b.N, nil)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(each.Nanoseconds()), "ns/packet")
	b.ReportMetric(1e3/float64(each.Nanoseconds()), "Mpps")
}

// BenchmarkPair measures datagrams over veth: the time of the programs as the kernel measures it, which includes the
// sending of clones, and the rate. Without paths there are no programs. Segments over IPv6 pass the segmenter.
func BenchmarkPair(b *testing.B) {
	for _, kind := range []struct {
		name     string
		ipv6     bool
		segments int
		user     bool
	}{{"single", false, 1, false}, {"single-user", false, 1, true}, {"segments", false, 16, false},
		{"segments6", true, 16, false}} {
		for _, paths := range []int{0, 1, 3} {
			b.Run(fmt.Sprintf("%s/paths=%d", kind.name, paths), func(b *testing.B) {
				how := pairing{outer: []uint8{4, 4, 4}[:max(paths, 1)], format: FormatEncapsulated, plain: paths == 0,
					user: kind.user}
				p := newPair(b, how)
				if paths > 0 {
					p.addSegmenter()
				}
				count := (b.N + kind.segments - 1) / kind.segments * kind.segments
				p.benchmark(b, p.newFlow(kind.ipv6, kind.segments, -1), count, paths)
			})
		}
	}
}

func (p *pair) benchmark(b *testing.B, f *traffic.Flow, count, paths int) {
	stats, err := ebpf.EnableStats(uint32(unix.BPF_STATS_RUN_TIME))
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = stats.Close() }()
	before := [3]*ebpf.ProgramStats{statistics(b, p.sender.SendEther), statistics(b, p.sender.SendSegment),
		statistics(b, p.receiver.ReceiveXdp)}
	b.ResetTimer()
	if err := transfer(f, count); err != nil {
		b.Fatal(err)
	}
	b.StopTimer()
	send := statistics(b, p.sender.SendEther).Runtime - before[0].Runtime +
		statistics(b, p.sender.SendSegment).Runtime - before[1].Runtime
	receive := statistics(b, p.receiver.ReceiveXdp)
	if paths > 0 {
		b.ReportMetric(float64(send)/float64(count*paths), "send-ns/copy")
		b.ReportMetric(float64(receive.Runtime-before[2].Runtime)/float64(receive.RunCount-before[2].RunCount),
			"receive-ns/copy")
	}
	b.ReportMetric(float64(time.Second)/float64(b.Elapsed())*float64(count), "packets/s")
}

func statistics(b *testing.B, p *ebpf.Program) *ebpf.ProgramStats {
	b.Helper()
	s, err := p.Stats()
	if err != nil {
		b.Fatal(err)
	}
	return s
}

// BenchmarkStream measures TCP with BBR: plain, on one path and on three.
func BenchmarkStream(b *testing.B) {
	for _, paths := range []int{0, 1, 3} {
		b.Run(fmt.Sprintf("paths=%d", paths), func(b *testing.B) {
			p := newPair(b, pairing{outer: []uint8{4, 4, 4}[:max(paths, 1)], format: FormatEncapsulated,
				plain: paths == 0})
			const size = 256 << 20
			var elapsed time.Duration
			var retransmitted uint32
			for b.Loop() {
				result := p.stream(false, size)
				elapsed += result.Elapsed
				retransmitted += result.Retransmitted
			}
			b.ReportMetric(float64(b.N)*size*8/elapsed.Seconds()/1e9, "Gbit/s")
			b.ReportMetric(float64(retransmitted)/float64(b.N), "retransmitted")
		})
	}
}
