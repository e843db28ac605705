package netem_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/ecn"
	"github.com/volsfu/volsfu/internal/netem"
)

// epoch is the start of simulated time.
var epoch = time.Unix(1_000_000_000, 0)

func at(d time.Duration) time.Time { return epoch.Add(d) }

func newLink(t testing.TB, cfg netem.Config, seed uint64) *netem.Link {
	t.Helper()
	link, err := netem.NewLink(cfg, seed, nil)
	if err != nil {
		t.Fatal(err)
	}
	return link
}

// arrival is one line of a transcript. Number is Packet.Flow, which the tests use to number packets.
type arrival struct {
	number uint64
	at     time.Duration
}

// drain delivers at the times of Next until no packet is in transit.
func drain(link *netem.Link) []arrival {
	var arrivals []arrival
	for next := link.Next(); !next.IsZero(); next = link.Next() {
		arrivals = appendArrivals(arrivals, link.Deliver(next))
	}
	return arrivals
}

func appendArrivals(arrivals []arrival, packets []*netem.Packet) []arrival {
	for _, p := range packets {
		arrivals = append(arrivals, arrival{p.Flow, p.Arrival.Sub(epoch)})
	}
	return arrivals
}

// run sends count packets of size bytes, numbered from 0, one every interval, and returns the arrivals.
func run(link *netem.Link, count, size int, interval time.Duration) []arrival {
	var arrivals []arrival
	for i := range count {
		now := at(time.Duration(i) * interval)
		link.Send(&netem.Packet{Flow: uint64(i), Size: size}, now)
		arrivals = appendArrivals(arrivals, link.Deliver(now))
	}
	return append(arrivals, drain(link)...)
}

func with(change func(c *netem.Config)) netem.Config {
	cfg := netem.DefaultConfig()
	change(&cfg)
	return cfg
}

func burstLoss(t testing.TB, loss, length float64) netem.BurstConfig {
	t.Helper()
	b, err := netem.BurstLoss(loss, length)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// everything is a link with all effects enabled.
func everything(t testing.TB) netem.Config {
	return with(func(c *netem.Config) {
		c.Delay, c.Jitter = 10*time.Millisecond, 2*time.Millisecond
		c.Loss, c.Burst = 0.02, burstLoss(t, 0.01, 4)
		c.RateBPS, c.QueueDelay = 9_000_000, 4*time.Millisecond
		c.Reorder, c.ReorderDelay = 0.03, 5*time.Millisecond
		c.Duplicate = 0.04
	})
}

func TestPerfectLinkDeliversAtOnce(t *testing.T) {
	link := newLink(t, netem.Config{}, 1)
	if next := link.Next(); !next.IsZero() {
		t.Fatalf("Next of an idle link is %v, expected zero", next)
	}
	link.Send(&netem.Packet{Flow: 7, Size: 100, ECN: ecn.ECT1, Payload: []byte("x")}, epoch)
	got := link.Deliver(epoch)
	if len(got) != 1 || got[0].Flow != 7 || got[0].ECN != ecn.ECT1 || string(got[0].Payload) != "x" ||
		!got[0].Arrival.Equal(epoch) {
		t.Fatalf("delivered %+v, expected the packet as it was sent", got)
	}
}

// TestRate is a bottleneck computed by hand.
func TestRate(t *testing.T) {
	// 1,250 bytes at 10 Mbit/s take 1 ms.
	const size, rate = 1250, 10_000_000
	ms := func(values ...float64) []time.Duration {
		var d []time.Duration
		for _, v := range values {
			d = append(d, time.Duration(v*float64(time.Millisecond)))
		}
		return d
	}
	tests := []struct {
		name     string
		config   netem.Config
		send     []time.Duration
		expected []time.Duration
		dropped  uint64
	}{
		{"back to back, with delay", with(func(c *netem.Config) { c.Delay = 5 * time.Millisecond }), ms(0, 0, 0, 0),
			ms(6, 7, 8, 9), 0},
		{"idle between", with(func(*netem.Config) {}), ms(0, 3, 3.5, 10), ms(1, 4, 5, 11), 0},
		{"queue of three packets in bytes", with(func(c *netem.Config) { c.QueueBytes, c.QueueDelay = 3*size, 0 }),
			ms(0, 0, 0, 0, 0, 0, 1, 1), ms(1, 2, 3, 4, 5), 3},
		{"the same in time", with(func(c *netem.Config) { c.QueueDelay = 3 * time.Millisecond }),
			ms(0, 0, 0, 0, 0, 0, 1, 1), ms(1, 2, 3, 4, 5), 3},
		{"the smaller limit holds", with(func(c *netem.Config) { c.QueueBytes = 2 * size }), ms(0, 0, 0, 0, 0),
			ms(1, 2, 3), 2},
		{"an empty queue takes any packet", with(func(c *netem.Config) { c.QueueBytes = 1 }), ms(0, 0, 0), ms(1, 2), 1},
		{"half a packet too many", with(func(c *netem.Config) { c.QueueBytes = 2*size + size/2 }), ms(0, 0, 0, 0),
			ms(1, 2, 3), 1},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			test.config.RateBPS = rate
			link := newLink(t, test.config, 1)
			for i, d := range test.send {
				link.Send(&netem.Packet{Flow: uint64(i), Size: size}, at(d))
			}
			var got []time.Duration
			for _, a := range drain(link) {
				got = append(got, a.at)
			}
			if !slices.Equal(got, test.expected) {
				t.Errorf("arrivals %v, expected %v", got, test.expected)
			}
			if s := link.Stats(); s.DroppedQueue != test.dropped {
				t.Errorf("%d dropped by the queue, expected %d", s.DroppedQueue, test.dropped)
			}
		})
	}
}

func TestRateIsExactOverManyPackets(t *testing.T) {
	// 1,200 bytes at 7 Mbit/s take 1,371,428.57 ns. 7,000 of them take 9.6 s, if no fraction is lost.
	link := newLink(t, with(func(c *netem.Config) { c.RateBPS, c.QueueBytes, c.QueueDelay = 7_000_000, 10_000_000, 0 }),
		1)
	got := run(link, 7000, 1200, 0)
	if last := got[len(got)-1]; len(got) != 7000 || last.at != 9600*time.Millisecond {
		t.Errorf("%d packets arrived, the last one at %v; expected 7000 and 9.6s", len(got), last.at)
	}
}

func TestQueueDelayUnderOverload(t *testing.T) {
	// 20 Mbit/s offered to 10 Mbit/s with a queue of 50 ms: half is dropped, and at the end a packet waits 50 ms, is
	// transmitted in 1 ms and propagates in 10 ms.
	link := newLink(t, with(func(c *netem.Config) {
		c.RateBPS, c.QueueDelay, c.Delay = 10_000_000, 50*time.Millisecond, 10*time.Millisecond
	}), 1)
	const count, interval = 4000, 500 * time.Microsecond
	got := run(link, count, 1250, interval)
	// In 2 s the transmitter sends 2,000 packets; 50 wait at the end.
	if len(got) != 2050 || link.Stats().DroppedQueue != count-2050 {
		t.Errorf("%d delivered, %d dropped; expected 2050 and %d", len(got), link.Stats().DroppedQueue, count-2050)
	}
	for _, a := range got[len(got)-1000:] {
		if latency := a.at - time.Duration(a.number)*interval; latency < 60*time.Millisecond ||
			latency > 61*time.Millisecond {
			t.Fatalf("packet %d took %v, expected 60 to 61 ms", a.number, latency)
		}
	}
}

func TestCopiesShareNothing(t *testing.T) {
	link := newLink(t, with(func(c *netem.Config) { c.Duplicate = 1 }), 1)
	link.Send(&netem.Packet{Payload: []byte("one"), Size: 3}, epoch)
	got := link.Deliver(epoch)
	if len(got) != 2 {
		t.Fatalf("%d packets delivered, expected 2", len(got))
	}
	got[0].Payload[0] = 'X'
	if string(got[1].Payload) != "one" {
		t.Errorf("the copy is %q after the original was changed, expected %q", got[1].Payload, "one")
	}
	if s := link.Stats(); s.Reordered != 0 || s.Duplicated != 1 || s.Delivered != 2 {
		t.Errorf("counters %+v, expected one copy, nothing reordered", s)
	}
}

func TestReconfigure(t *testing.T) {
	link := newLink(t, with(func(c *netem.Config) { c.RateBPS = 10_000_000 }), 1)
	for i := range 6 {
		link.Send(&netem.Packet{Flow: uint64(i), Size: 1250}, epoch)
	}
	// At 2.5 ms two packets have arrived and the third is in transmission. The others follow at half the rate, 2 ms
	// each.
	if err := link.Reconfigure(with(func(c *netem.Config) { c.RateBPS = 5_000_000 }),
		at(2500*time.Microsecond)); err != nil {
		t.Fatal(err)
	}
	var got []time.Duration
	for _, a := range drain(link) {
		got = append(got, a.at)
	}
	expected := []time.Duration{1e6, 2e6, 3e6, 5e6, 7e6, 9e6}
	if !slices.Equal(got, expected) {
		t.Errorf("arrivals %v, expected %v", got, expected)
	}
	if err := link.Reconfigure(netem.Config{}, at(time.Second)); err != nil {
		t.Fatal(err)
	}
	for range 1000 {
		link.Send(&netem.Packet{Size: 1250}, at(time.Second))
	}
	if n := len(link.Deliver(at(time.Second))); n != 1000 {
		t.Errorf("%d packets at once over a link of unlimited rate, expected 1000", n)
	}
	err := link.Reconfigure(netem.Config{Loss: 2}, at(time.Second))
	if !errors.Is(err, netem.ErrConfig) || !strings.Contains(err.Error(), "loss is 2") {
		t.Errorf("error %v, expected ErrConfig that names loss", err)
	}
}

func TestTimeDoesNotGoBack(t *testing.T) {
	link := newLink(t, with(func(c *netem.Config) { c.Delay = time.Millisecond }), 1)
	link.Send(&netem.Packet{Size: 1}, at(time.Second))
	link.Send(&netem.Packet{Size: 1}, epoch)
	got := drain(link)
	if expected := []arrival{{0, 1001 * time.Millisecond}, {0, 1001 * time.Millisecond}}; !slices.Equal(got, expected) {
		t.Errorf("arrivals %v, expected %v", got, expected)
	}
}

// markingStack is a Queue that serves the newest packet first, marks it, and drops the oldest when it is served: an
// exaggerated active queue management, to show that a Link leaves these decisions to its Queue.
type markingStack struct{ packets []*netem.Packet }

func (q *markingStack) Enqueue(p *netem.Packet, _ time.Time) int {
	q.packets = append(q.packets, p)
	return 0
}

func (q *markingStack) Dequeue(time.Time) (*netem.Packet, int) {
	last := len(q.packets) - 1
	p := q.packets[last]
	p.ECN = ecn.CE
	if last == 0 {
		q.packets = nil
		return p, 0
	}
	q.packets = q.packets[1:last]
	return p, 1
}

func (q *markingStack) Len() int { return len(q.packets) }

func TestLinkObeysItsQueue(t *testing.T) {
	link, err := netem.NewLink(with(func(c *netem.Config) { c.RateBPS, c.QueueBytes = 10_000_000, 1 }), 1,
		&markingStack{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		link.Send(&netem.Packet{Flow: uint64(i), Size: 1250, ECN: ecn.ECT0}, epoch)
	}
	var got []uint64
	for _, p := range link.Deliver(at(time.Second)) {
		if p.ECN != ecn.CE {
			t.Errorf("packet %d has ECN %d, expected the mark of the queue", p.Flow, p.ECN)
		}
		got = append(got, p.Flow)
	}
	// 0 is sent at once. Of 1 to 4, 4 is served and 1 dropped, then 3 is served and 2 dropped.
	if expected := []uint64{0, 4, 3}; !slices.Equal(got, expected) {
		t.Errorf("delivered %v, expected %v", got, expected)
	}
	if s := link.Stats(); s.DroppedQueue != 2 || s.Reordered != 1 {
		t.Errorf("%d dropped, %d reordered; expected 2 and 1", s.DroppedQueue, s.Reordered)
	}
}
