package fidelity

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/volsfu/volsfu/internal/ecn"
	"github.com/volsfu/volsfu/internal/netem"
	"github.com/volsfu/volsfu/lab/topology"
	"github.com/volsfu/volsfu/test/claim"
)

const (
	near, far   = "near", "far" // the hosts
	packetBytes = 1200          // of UDP packets, with headers
	pingBytes   = 84            // the size of ping's packets, with headers

	pings        = 100
	pingInterval = 11 * time.Millisecond // not a multiple of any other interval here
	sweepTime    = time.Second
	// settling is the length of an overload before the rate is measured.
	settling = 300 * time.Millisecond
	// lossPackets are sent at 5,000 a second.
	lossPackets  = 10_000
	lossInterval = 200 * time.Microsecond
)

// trial is a network with two hosts and a socket on each.
type trial struct {
	network          *topology.Network
	sender, receiver *probe
	stamping         int // socket that keeps the kernel's time stamping enabled
}

// openTrial starts a network whose link is the same in both directions. The random marks of a queue are the same in
// every run.
func openTrial(ctx context.Context, c netem.Config, kind, protocol int) (*trial, error) {
	return openRandomTrial(ctx, c, kind, protocol, 1)
}

// openRandomTrial is openTrial with the given seed.
func openRandomTrial(ctx context.Context, c netem.Config, kind, protocol int, seed uint64) (*trial, error) {
	layout := topology.Pair(near, far, topology.Duplex(c))
	layout.Seed = seed
	n, err := topology.Start(ctx, layout)
	if err != nil {
		return nil, err
	}
	t := &trial{network: n}
	if t.stamping, err = keepStamping(ctx); err != nil {
		return nil, errors.Join(err, n.Close())
	}
	if t.sender, err = openProbe(n, near, kind, protocol); err != nil {
		return nil, errors.Join(err, t.close())
	}
	if t.receiver, err = openProbe(n, far, kind, protocol); err != nil {
		return nil, errors.Join(err, t.close())
	}
	return t, nil
}

func (t *trial) close() error {
	for _, p := range []*probe{t.sender, t.receiver} {
		if p != nil {
			p.close()
		}
	}
	_ = unix.Close(t.stamping)
	return t.network.Close()
}

// valid returns an invalidError if the machine was disturbed. Lateness caused by the network itself is a result of the
// measurement.
func (t *trial) valid() error {
	if v := t.network.Validity(); v.Disturbance != "" {
		return invalidError(v.Disturbance)
	}
	return nil
}

// exchange sends count packets to the far host and returns their departures and arrivals, and an invalidError if the
// machine was disturbed.
func (t *trial) exchange(count, size int, interval time.Duration) ([]departure, []arrival, error) {
	type outcome struct {
		arrivals []arrival
		err      error
	}
	received := make(chan outcome)
	go func() {
		arrivals, err := t.receiver.receive(count, 0)
		received <- outcome{arrivals, err}
	}()
	departures, err := t.sender.send(address(t.network, far), make([]byte, size-udpHeaders), 0, count, interval, nil)
	o := <-received
	if err := errors.Join(err, o.err); err != nil {
		return nil, nil, err
	}
	return departures, o.arrivals, t.valid()
}

// config returns the link of a cell.
func (c cell) config() netem.Config {
	return netem.Config{Delay: c.delay, RateBPS: c.mbps * 1e6, QueueDelay: 100 * time.Millisecond}
}

// ping compares round trips with two delays and two transmissions.
func (c cell) ping(ctx context.Context) (lines []claim.Line, err error) {
	t, err := openTrial(ctx, c.config(), unix.SOCK_RAW, unix.IPPROTO_ICMP)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, t.close()) }()
	type outcome struct {
		arrivals []arrival
		err      error
	}
	received := make(chan outcome)
	go func() {
		arrivals, err := t.sender.receive(pings, 20+8)
		received <- outcome{arrivals, err}
	}()
	departures, err := t.sender.send(address(t.network, far), make([]byte, pingBytes-20), 8, pings, pingInterval,
		echoRequest)
	o := <-received
	if err := errors.Join(err, o.err, t.valid()); err != nil {
		return nil, err
	}
	expected := 2*c.delay + 2*time.Duration(pingBytes*8*int64(time.Second)/int64(c.mbps*1e6))
	var errs []time.Duration
	for _, a := range o.arrivals {
		if a.number >= pings {
			continue
		}
		d := departures[a.number]
		errs = append(errs, deviation(a.at, d.before+int64(expected), d.after+int64(expected)))
	}
	if len(errs) < pings {
		return []claim.Line{claim.Exactly(c.String()+": echo replies", int64(len(errs)), "", pings)}, nil
	}
	return []claim.Line{claim.AtMost(c.String()+": error of a ping's round trip, p95",
		milliseconds(quantile(errs, 0.95)), "ms", delayErrorP95)}, nil
}

// sweep compares the arrivals of packets with the model.
func (c cell) sweep(ctx context.Context) (lines []claim.Line, err error) {
	t, err := openTrial(ctx, c.config(), unix.SOCK_DGRAM, 0)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, t.close()) }()
	interval := c.interval(0.8)
	count := int(sweepTime / interval)
	departures, arrivals, err := t.exchange(count, packetBytes, interval)
	if err != nil {
		return nil, err
	}
	if err := evenly(departures); err != nil {
		return nil, err
	}
	if len(arrivals) != count {
		return []claim.Line{claim.Exactly(c.String()+": UDP packets received", int64(len(arrivals)), "packets",
			int64(count))}, nil
	}
	errs, err := c.deviations(departures, arrivals)
	if err != nil {
		return nil, err
	}
	return []claim.Line{claim.AtMost(c.String()+": error of a UDP packet's delay, p95",
		milliseconds(quantile(errs, 0.95)), "ms", delayErrorP95)}, nil
}

// deviations returns the differences between the arrivals and the model's arrivals. All packets must have arrived.
func (c cell) deviations(departures []departure, arrivals []arrival) (errs []time.Duration, err error) {
	m := model{rate: c.mbps * 1e6, delay: c.delay}
	for i, d := range departures {
		early, late := m.arrival(packetBytes, d.before, d.after)
		if arrivals[i].number != uint64(i) {
			return nil, fmt.Errorf("packet %d arrived in place of packet %d", arrivals[i].number, i)
		}
		errs = append(errs, deviation(arrivals[i].at, early, late))
	}
	return errs, nil
}

// interval returns the interval of packets at a share of the rate.
func (c cell) interval(share float64) time.Duration {
	return time.Duration(packetBytes * 8 / (share * float64(c.mbps) * 1e6) * float64(time.Second))
}

// overload compares the rate of arrivals with the link's.
func (c cell) overload(ctx context.Context) (lines []claim.Line, err error) {
	t, err := openTrial(ctx, c.config(), unix.SOCK_DGRAM, 0)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, t.close()) }()
	interval := c.interval(1.3)
	departures, arrivals, err := t.exchange(int((sweepTime+settling)/interval), packetBytes, interval)
	if err != nil {
		return nil, err
	}
	first, last := departures[0], departures[len(departures)-1]
	offered := float64(len(departures)*packetBytes*8) / float64(last.after-first.before) * 1e3
	if offered < 1.1*float64(c.mbps) {
		return nil, invalidError(fmt.Sprintf("the sender reached only %.0f Mbit/s", offered))
	}
	begin := slices.IndexFunc(arrivals, func(a arrival) bool { return a.at > first.after+int64(settling) })
	if begin < 0 || begin > len(arrivals)-100 {
		return nil, invalidError("too few packets arrived")
	}
	measured := arrivals[begin:]
	mbps := float64((len(measured)-1)*packetBytes*8) / float64(measured[len(measured)-1].at-measured[0].at) * 1e3
	return []claim.Line{claim.AtMost(c.String()+": error of the rate", 100*math.Abs(mbps/float64(c.mbps)-1), "%",
		rateError)}, nil
}

// loss compares the number of packets lost with the binomial distribution, and with the network's own count. The seed
// determines the lost packets.
func loss(ctx context.Context, share float64, seed uint64) (lines []claim.Line, err error) {
	t, err := openRandomTrial(ctx, netem.Config{Delay: time.Millisecond, Loss: share}, unix.SOCK_DGRAM, 0, seed)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, t.close()) }()
	_, arrivals, err := t.exchange(lossPackets, packetBytes, lossInterval)
	if err != nil {
		return nil, err
	}
	statistics := t.network.Statistics()
	low, high := binomialInterval(lossPackets, share)
	lost := lossPackets - len(arrivals)
	name := fmt.Sprintf("loss of %g %% of %d packets", 100*share, lossPackets)
	return []claim.Line{
		claim.AtLeast(name+", at least", float64(lost), "packets", float64(low)),
		claim.AtMost(name+", at most", float64(lost), "packets", float64(high)),
		claim.Exactly(name+", as the network counts", int64(lost), "packets",
			int64(statistics.Wire("link", topology.Forth).LostRandom)),
	}, nil
}

// marks overloads a marking queue, and compares the number of received marks with the network's count. Packets with a
// wrong checksum do not reach a socket.
func marks(ctx context.Context) (lines []claim.Line, err error) {
	for _, kind := range []struct {
		ecn    ecn.Codepoint
		name   string
		marked bool
	}{{ecn.ECT1, "ECT(1)", true}, {ecn.ECT0, "ECT(0)", true}, {ecn.NotECT, "not ECT", false}} {
		got, err := marksOf(ctx, kind.ecn, kind.name, kind.marked)
		if err != nil {
			return nil, err
		}
		lines = append(lines, got...)
	}
	return lines, nil
}

func marksOf(ctx context.Context, codepoint ecn.Codepoint, name string, marked bool) (lines []claim.Line, err error) {
	t, err := openTrial(ctx, netem.Config{Delay: time.Millisecond, RateBPS: 50e6, Queue: netem.QueueDualPI2,
		QueueDelay: 250 * time.Millisecond}, unix.SOCK_DGRAM, 0)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, t.close()) }()
	if err := t.sender.setECN(codepoint); err != nil {
		return nil, err
	}
	interval := cell{mbps: 50}.interval(1.1)
	departures, arrivals, err := t.exchange(int(sweepTime/interval), packetBytes, interval)
	if err != nil {
		return nil, err
	}
	came := 0
	for _, a := range arrivals {
		if a.ecn == ecn.CE {
			came++
		} else if a.ecn != codepoint {
			return nil, fmt.Errorf("a packet sent as %s arrived with the codepoint %d", name, a.ecn)
		}
	}
	statistics := t.network.Statistics()
	wire := statistics.Wire("link", topology.Forth)
	lines = []claim.Line{
		claim.Exactly(name+": packets received or dropped", int64(len(arrivals))+int64(wire.DroppedQueue),
			"packets", int64(len(departures))),
		claim.Exactly(name+": marks received, of the marks set", int64(came), "packets", int64(wire.Marked)),
	}
	if marked {
		return append(lines, claim.AtLeast(name+": packets marked", float64(came), "packets", 1)), nil
	}
	return append(lines, claim.Exactly(name+": packets marked", int64(came), "packets", 0)), nil
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// quantile sorts durations, of which there must be at least one, and returns the duration that the given share does not
// exceed.
func quantile(list []time.Duration, share float64) time.Duration {
	slices.Sort(list)
	return list[max(int(math.Ceil(share*float64(len(list))))-1, 0)]
}
