package netem_test

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/volsfu/volsfu/internal/netem"
)

// TestSameSeedSameTranscript also shows that the frequency of steps does not matter.
func TestSameSeedSameTranscript(t *testing.T) {
	const count, size, interval = 5000, 1200, time.Millisecond
	cfg := everything(t)
	eager := newLink(t, cfg, 42)
	expected := run(eager, count, size, interval)
	s := eager.Stats()
	for name, n := range map[string]uint64{
		"queue": s.DroppedQueue, "random": s.LostRandom, "burst": s.LostBurst, "duplicated": s.Duplicated,
		"reordered": s.Reordered,
	} {
		if n == 0 {
			t.Errorf("no packet was subject to %q: the test shows nothing about it", name)
		}
	}
	checkConservation(t, s)
	if beginning := fmt.Sprint(expected[:8]); beginning !=
		"[{0 10476706} {1 10476706} {2 12842991} {3 13739886} {4 13739886} {5 14875712} {6 17646196} {6 18905151}]" {
		t.Errorf("the transcript begins with %s: the same seed means something else than it used to", beginning)
	}

	lazy := newLink(t, cfg, 42)
	for i := range count {
		lazy.Send(&netem.Packet{Flow: uint64(i), Size: size}, at(time.Duration(i)*interval))
	}
	if got := appendArrivals(nil, lazy.Deliver(at(time.Hour))); !slices.Equal(got, expected) {
		t.Error("a link that delivers once at the end has another transcript than one that delivers all the time")
	}
	if lazy.Stats() != s {
		t.Errorf("counters %+v, expected %+v", lazy.Stats(), s)
	}

	stepped := newLink(t, cfg, 42)
	var got []arrival
	for i, now := 0, epoch; i < count || !stepped.Next().IsZero(); now = now.Add(100 * time.Microsecond) {
		for ; i < count && !at(time.Duration(i)*interval).After(now); i++ {
			stepped.Send(&netem.Packet{Flow: uint64(i), Size: size}, now)
		}
		got = appendArrivals(got, stepped.Deliver(now))
	}
	if !slices.Equal(got, expected) {
		t.Error("a link stepped every 100 µs has another transcript")
	}
	if other := run(newLink(t, cfg, 43), count, size, interval); slices.Equal(other, expected) {
		t.Error("another seed has the same transcript")
	}
}

// TestNextIsNeverLate steps a link only at the times of Next.
func TestNextIsNeverLate(t *testing.T) {
	for _, distribution := range []string{netem.JitterNormal, netem.JitterUniform} {
		cfg := everything(t)
		cfg.JitterDistribution, cfg.JitterReorders = distribution, true
		link := newLink(t, cfg, 6)
		for i := range 50 {
			link.Send(&netem.Packet{Flow: uint64(i), Size: 100}, epoch)
		}
		for next := link.Next(); !next.IsZero(); next = link.Next() {
			for _, p := range link.Deliver(next) {
				if !p.Arrival.Equal(next) {
					t.Fatalf("%s: packet %d arrived at %v, but Next was %v", distribution, p.Flow, p.Arrival.Sub(epoch),
						next.Sub(epoch))
				}
			}
		}
	}
}

// lostNumbers lists the packets that are missing from a transcript.
func lostNumbers(count uint64, arrivals []arrival) []uint64 {
	arrived := make(map[uint64]bool)
	for _, a := range arrivals {
		arrived[a.number] = true
	}
	var lost []uint64
	for n := range count {
		if !arrived[n] {
			lost = append(lost, n)
		}
	}
	return lost
}

// copiedNumbers lists the packets that are in a transcript twice.
func copiedNumbers(arrivals []arrival) []uint64 {
	arrived := make(map[uint64]bool)
	var copied []uint64
	for _, a := range arrivals {
		if arrived[a.number] {
			copied = append(copied, a.number)
		}
		arrived[a.number] = true
	}
	slices.Sort(copied)
	return copied
}

func TestEffectsDoNotDisturbEachOther(t *testing.T) {
	const count, size, interval = 5000, 1200, time.Millisecond
	transcript := func(cfg netem.Config) []arrival { return run(newLink(t, cfg, 7), count, size, interval) }
	lossy := with(func(c *netem.Config) { c.Loss = 0.05 })
	lost := lostNumbers(count, transcript(lossy))
	copying := with(func(c *netem.Config) { c.Duplicate = 0.05 })
	copied := copiedNumbers(transcript(copying))

	additions := map[string]func(c *netem.Config){
		"delay":   func(c *netem.Config) { c.Delay = 30 * time.Millisecond },
		"jitter":  func(c *netem.Config) { c.Jitter, c.JitterReorders = 3*time.Millisecond, true },
		"rate":    func(c *netem.Config) { c.RateBPS = 20_000_000 },
		"reorder": func(c *netem.Config) { c.Reorder = 0.1 },
		"ordered": func(c *netem.Config) { c.Jitter = 3 * time.Millisecond },
	}
	for name, add := range additions {
		cfg := lossy
		add(&cfg)
		if got := lostNumbers(count, transcript(cfg)); !slices.Equal(got, lost) {
			t.Errorf("with %s other packets are lost", name)
		}
		cfg = copying
		add(&cfg)
		if got := copiedNumbers(transcript(cfg)); !slices.Equal(got, copied) {
			t.Errorf("with %s other packets are duplicated", name)
		}
	}

	// If jitter may reorder, no packet delays another, so that every arrival is the same.
	jittery := with(func(c *netem.Config) {
		c.Delay, c.Jitter, c.JitterReorders = 9*time.Millisecond, 2*time.Millisecond, true
	})
	expected := transcript(jittery)
	slices.SortFunc(expected, func(a, b arrival) int { return int(a.number) - int(b.number) })
	all := jittery
	all.Loss, all.Burst, all.Duplicate = 0.05, burstLoss(t, 0.05, 3), 0.05
	arrivals := transcript(all)
	same := 0
	for _, a := range arrivals {
		if expected[a.number] == a {
			same++
		}
	}
	if copies := len(copiedNumbers(arrivals)); same != len(arrivals)-copies {
		t.Errorf("%d of %d arrivals are as without loss and duplication, expected all but %d copies", same,
			len(arrivals), copies)
	}
}

// networkTranscript sends 2,000 packets up, 1 ms apart, and returns the arrivals.
func networkTranscript(t *testing.T, seed uint64, prepare func(n *netem.Network)) (lines []string) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t, seed)
		prepare(n)
		server, client := listen(t, n, "10.0.0.1:1"), listen(t, n, "10.0.0.2:1")
		start := time.Now()
		go func() {
			for i := range 2000 {
				if _, err := client.WriteTo([]byte(fmt.Sprint(i)), server.LocalAddr()); err != nil {
					t.Error(err)
				}
				time.Sleep(time.Millisecond)
			}
		}()
		if err := server.SetReadDeadline(start.Add(3 * time.Second)); err != nil {
			t.Fatal(err)
		}
		b := make([]byte, 100)
		for {
			count, _, err := server.ReadFrom(b)
			if err != nil {
				return
			}
			lines = append(lines, fmt.Sprintf("%v %s", time.Since(start), b[:count]))
		}
	})
	return lines
}

func TestNetworkIsDeterministic(t *testing.T) {
	cfg := everything(t)
	cfg.RateBPS = 250_000 // a packet of 30 bytes every millisecond is 240 kbit/s
	access := func(addrs ...netip.Addr) func(n *netem.Network) {
		return func(n *netem.Network) {
			for _, a := range addrs {
				setAccess(t, n, a, cfg, cfg)
			}
		}
	}
	other := netip.MustParseAddr("10.0.0.7")
	first := networkTranscript(t, 5, access(clientAddr, other))
	if len(first) < 1500 {
		t.Fatalf("%d packets arrived of 2000", len(first))
	}
	if again := networkTranscript(t, 5, access(other, clientAddr)); !slices.Equal(again, first) {
		t.Error("the transcript depends on the order in which hosts appear")
	}
	if again := networkTranscript(t, 6, access(clientAddr)); slices.Equal(again, first) {
		t.Error("another seed has the same transcript")
	}
}
