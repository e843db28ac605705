package netem_test

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/netem"
)

// BenchmarkLink sends a packet every 100 µs through the pure core and delivers whenever a packet is due. At 50 Mbit/s a
// packet of 625 bytes takes as long.
func BenchmarkLink(b *testing.B) {
	benchmarks := []struct {
		name   string
		config netem.Config
	}{
		{"perfect", netem.Config{}},
		{"delay and loss", netem.Config{Delay: 10 * time.Millisecond, Loss: 0.01}},
		{"rate", with(func(c *netem.Config) { c.Delay, c.RateBPS = 10*time.Millisecond, 50_000_000 })},
		{"everything", with(func(c *netem.Config) {
			*c = everything(b)
			c.RateBPS = 50_000_000
		})},
		{"codel", with(func(c *netem.Config) {
			c.Delay, c.RateBPS, c.Queue = 10*time.Millisecond, 50_000_000,
				netem.QueueCoDel
		})},
		{"fq", with(func(c *netem.Config) {
			c.Delay, c.RateBPS, c.Queue = 10*time.Millisecond, 50_000_000,
				netem.QueueFQ
		})},
	}
	for _, bench := range benchmarks {
		b.Run(bench.name, func(b *testing.B) {
			link := newLink(b, bench.config, 1)
			free := make([]*netem.Packet, 0, 1024)
			now := epoch
			b.ReportAllocs()
			for b.Loop() {
				var p *netem.Packet
				if last := len(free) - 1; last >= 0 {
					p, free = free[last], free[:last]
				} else {
					p = new(netem.Packet)
				}
				p.Size = 600
				link.Send(p, now)
				if next := link.Next(); !next.IsZero() && !next.After(now) {
					for _, p := range link.Deliver(now) {
						if len(free) < cap(free) {
							free = append(free, p)
						}
					}
				}
				now = now.Add(100 * time.Microsecond)
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "packets/s")
		})
	}
}

// BenchmarkCubic is a second of a flow that fills 200 Mbit/s.
func BenchmarkCubic(b *testing.B) {
	for _, discipline := range []string{netem.QueueFIFO, netem.QueueFQCoDel} {
		b.Run(discipline, func(b *testing.B) {
			bottleneck := newBottleneck(b, dumbbell(200_000_000, discipline, 1))
			flow := bottleneck.add(10*time.Millisecond, 0)
			end := 5 * second
			bottleneck.run(end)
			b.ReportAllocs()
			before := flow.Stats().Sent
			for b.Loop() {
				end += second
				bottleneck.run(end)
			}
			b.ReportMetric(float64(flow.Stats().Sent-before)/b.Elapsed().Seconds(), "segments/s")
		})
	}
}

// BenchmarkNetwork passes packets of 1,200 bytes from a writer to a reader through the shell, without delay and through
// two links that never idle.
func BenchmarkNetwork(b *testing.B) {
	for name, cfg := range map[string]netem.Config{
		"at once":         {},
		"delay and loss":  {Delay: time.Millisecond, Loss: 0.01},
		"1 Gbit/s shaped": {Delay: time.Millisecond, RateBPS: 1_000_000_000, QueueBytes: 1 << 22},
	} {
		b.Run(name, func(b *testing.B) {
			n := newNetwork(b, 1)
			if name != "at once" {
				setAccess(b, n, clientAddr, cfg, cfg)
				setAccess(b, n, serverAddr, cfg, cfg)
			}
			server, client := listen(b, n, "10.0.0.1:1"), listen(b, n, "10.0.0.2:1")
			done := make(chan int)
			go func() {
				buffer, received := make([]byte, 1500), 0
				for {
					if _, _, err := server.ReadFromAddrPort(buffer); err != nil {
						done <- received
						return
					}
					received++
				}
			}()
			payload, to := make([]byte, 1200), netip.MustParseAddrPort("10.0.0.1:1")
			b.ReportAllocs()
			for b.Loop() {
				if _, err := client.WriteToAddrPort(payload, to); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "packets/s")
			if err := server.Close(); err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(<-done)/float64(b.N), "received/packet")
		})
	}
}

// BenchmarkNetworkLateness reports the lateness of packets in real time, on an otherwise idle network.
func BenchmarkNetworkLateness(b *testing.B) {
	const delay = 3300 * time.Microsecond
	n := newNetwork(b, 1)
	setAccess(b, n, clientAddr, netem.Config{Delay: delay}, netem.Config{})
	server, client := listen(b, n, "10.0.0.1:1"), listen(b, n, "10.0.0.2:1")
	var lateness []time.Duration
	buffer, to := make([]byte, 1500), netip.MustParseAddrPort("10.0.0.1:1")
	for b.Loop() {
		start := time.Now()
		if _, err := client.WriteToAddrPort(buffer[:1200], to); err != nil {
			b.Fatal(err)
		}
		if _, _, err := server.ReadFromAddrPort(buffer); err != nil {
			b.Fatal(err)
		}
		lateness = append(lateness, time.Since(start)-delay)
	}
	slices.Sort(lateness)
	b.ReportMetric(float64(lateness[len(lateness)/2].Microseconds()), "p50-µs-late")
	b.ReportMetric(float64(lateness[len(lateness)*99/100].Microseconds()), "p99-µs-late")
}
