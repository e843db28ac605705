package router

import (
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"github.com/volsfu/volsfu/internal/netem"
)

const (
	// packetBytes is the buffer of a packet or frame: the devices' MTU is 1,500.
	packetBytes = 2048
	// batch is the number of packets read from one device before other devices and due packets are processed: about 100
	// µs.
	batch = 16
	// vigil bounds the sleep while packets pass. If the processor of a virtual machine is taken away, the intended
	// wake-up time for a packet is unknown, but the latest wake-up is known, and any delay beyond it counts as
	// lateness. A delay of up to vigil may therefore be missed, which is less than LateP95. The cost is 3,000
	// iterations per second, about 2 % of a core.
	vigil = 300 * time.Microsecond
	// passing is the time after the last packet for which vigil applies; longestSleep bounds the sleep after that. The
	// kernel may delay a poll by a thousandth of its time: 20 µs.
	passing      = time.Second
	longestSleep = 20 * time.Millisecond
	// nap is the longest sleep for which the scheduler's counters are not read, because reading takes longer than the
	// rest of an iteration: a tenth of LateP95. A missed wait is then counted with the next sleep.
	nap = 50 * time.Microsecond
)

// loop is the state of the thread, which owns it.
type loop struct {
	router  *Router
	mesh    *Mesh
	devices []*device
	exits   []*device     // at the end of each route
	routes  map[pair]int  // between two addresses
	frames  map[hop]int   // likewise with Ethernet, where routes is empty
	prefix  int           // bytes before the IP header: the Ethernet header
	polled  []unix.PollFd // the devices, and the alarm at the end
	pool    netem.PacketPool
	queue   *runQueue // nil if the system has no such counters

	busy      busyClock
	empty     []time.Duration // last time, by the busy clock, at which each device was known to have nothing to read
	queued    time.Duration   // time on the run queue, at the latest reading
	passed    time.Time       // time of the last packet read or written
	began     time.Time       // of the statistics
	cpuBefore time.Duration   // processor time at that time
	stats     Statistics      // Late, ReadLate, WriteLate and the counters beside them
}

// hop is the first step of a frame: the index of the device that the frame was read from, and its destination.
type hop struct {
	device      int
	destination linkAddress
}

// busyClock does not advance while the thread sleeps because there is nothing to do. The difference of two times is the
// time for which the thread did not look at its devices.
type busyClock struct {
	began  time.Time
	asleep time.Duration
}

func (c *busyClock) at(now time.Time) time.Duration { return now.Sub(c.began) - c.asleep }

// newLoop returns the loop of a router. The error names an address of a route that no interface has.
func newLoop(r *Router, mesh *Mesh) (*loop, error) {
	l := &loop{router: r, mesh: mesh, routes: make(map[pair]int), frames: make(map[hop]int)}
	at := make(map[netip.Addr]int)
	var links []linkAddress
	for i, n := range r.namespaces {
		for j, d := range n.devices {
			plan := &r.plan.Namespaces[i].Interfaces[j]
			at[plan.Address.Addr()] = len(l.devices)
			if plan.Address6.IsValid() {
				at[plan.Address6.Addr()] = len(l.devices)
			}
			if plan.Outer.IsValid() {
				at[plan.Outer] = len(l.devices)
			}
			l.devices, links = append(l.devices, d), append(links, linkAddressOf(i, j))
			l.polled = append(l.polled, unix.PollFd{Fd: int32(d.fd), Events: unix.POLLIN})
		}
	}
	l.polled = append(l.polled, unix.PollFd{Fd: int32(r.alarm), Events: unix.POLLIN})
	l.empty = make([]time.Duration, len(l.devices))
	if r.plan.Ethernet {
		l.prefix = frameBytes
	}
	for i, route := range r.plan.Routes {
		for _, end := range []netip.Addr{route.From, route.To} {
			if _, ok := at[end]; !ok {
				return nil, fmt.Errorf("route from %s to %s: no interface has the address %s", route.From, route.To,
					end)
			}
		}
		l.exits = append(l.exits, l.devices[at[route.To]])
		if r.plan.Ethernet {
			l.frames[hop{at[route.From], links[at[route.To]]}] = i
		} else {
			l.routes[pair{route.From.As16(), route.To.As16()}] = i
		}
	}
	return l, nil
}

// run moves packets until the router is closed.
func (l *loop) run() {
	runtime.LockOSThread()
	defer close(l.router.stopped)
	becomePunctual()
	defer becomeOrdinary()
	var err error
	if l.queue, err = newRunQueue(); err == nil {
		defer l.queue.close()
	}
	l.waitedToRun()
	now := time.Now()
	l.busy.began = now
	l.mesh.Restart(now)
	l.reset(now)
	for {
		l.mesh.Step(time.Now())
		l.write()
		l.poll()
		if l.polled[len(l.devices)].Revents != 0 && !l.serve() {
			return
		}
		for i := range l.devices {
			if l.polled[i].Revents != 0 {
				l.read(i)
			}
		}
	}
}

// reset restarts the statistics.
func (l *loop) reset(now time.Time) {
	l.stats = Statistics{Blind: l.queue == nil}
	for _, d := range l.devices {
		d.counters = InterfaceStatistics{Namespace: d.counters.Namespace, Name: d.counters.Name}
	}
	l.began, l.cpuBefore = now, processorTime()
}

// poll sleeps until there is something to read or to write.
func (l *loop) poll() {
	before := time.Now()
	limit := longestSleep
	if before.Sub(l.passed) < passing {
		limit = vigil
	}
	if next := l.mesh.Next(); !next.IsZero() {
		limit = min(max(next.Sub(before), 0), limit)
	}
	timeout := unix.NsecToTimespec(int64(limit))
	for i := range l.polled {
		l.polled[i].Revents = 0
	}
	// After an interrupted poll the next poll finds the ready devices.
	if limit <= vigil {
		pollBriefly(l.polled, &timeout)
	} else {
		_, _ = unix.Ppoll(l.polled, &timeout, nil)
	}
	// Devices without an event had nothing to read at some time between before and now. The clock is read before the
	// sleep is subtracted: the part of the time that was not sleep may have been after the check by the kernel.
	seen := l.busy.at(before)
	switch slept := time.Since(before); {
	case slept > nap:
		l.busy.asleep += max(min(slept-l.waitedToRun(), limit), 0)
	default:
		l.busy.asleep += min(slept, limit)
	}
	for i := range l.devices {
		if l.polled[i].Revents == 0 {
			l.empty[i] = seen
		}
	}
}

// waitedToRun returns the time for which the thread has been ready without running since the last call.
func (l *loop) waitedToRun() time.Duration {
	if l.queue == nil {
		return 0
	}
	queued, err := l.queue.waited()
	if err != nil {
		return 0
	}
	difference := queued - l.queued
	l.queued = queued
	return difference
}

// read reads packets from a device and sends them on their route.
func (l *loop) read(index int) {
	d := l.devices[index]
	for range batch {
		p := l.pool.Get()
		if cap(p.Payload) < packetBytes {
			p.Payload = make([]byte, packetBytes)
		}
		count, err := transfer(unix.SYS_READ, d.fd, p.Payload[:packetBytes])
		now := time.Now()
		if err != nil {
			l.pool.Put(p)
			if errors.Is(err, unix.EAGAIN) {
				l.empty[index] = l.busy.at(now)
			}
			return
		}
		p.Payload = p.Payload[:count]
		l.send(p, index, now, l.busy.at(now)-l.empty[index])
	}
}

// send offers a packet that was read at now from a device, given by its index, and may have been in the device for the
// time late.
func (l *loop) send(p *netem.Packet, index int, now time.Time, late time.Duration) {
	l.passed = now
	size := max(len(p.Payload)-l.prefix, 0)
	counters := &l.devices[index].counters
	counters.Sent++
	counters.SentBytes += uint64(size)
	if box := l.devices[index].box; box != nil && !box.Outbound(p.Payload) {
		counters.Boxed++
		l.pool.Put(p)
		return
	}
	h, route, ok := l.route(p.Payload, index)
	if !ok {
		l.pool.Put(p)
		return
	}
	p.Size, p.Flow, p.ECN, p.Late = size, h.flow, h.ecn, late
	l.mesh.Send(p, route, now)
}

// route returns the header and the route of a packet or frame that was read from a device, given by its index. It
// returns false, and counts the packet, if there is none.
func (l *loop) route(payload []byte, index int) (h header, route int, ok bool) {
	if l.prefix == 0 {
		h, ok = parse(payload)
	} else {
		h, ok = parseFrame(payload)
	}
	if !ok {
		l.stats.Malformed++
		return h, 0, false
	}
	if l.prefix == 0 {
		route, ok = l.routes[h.pair]
	} else {
		route, ok = l.frames[hop{index, destination(payload)}]
	}
	if !ok {
		l.stats.Unroutable++
	}
	return h, route, ok
}

// write writes the packets that have reached the end of their route.
func (l *loop) write() {
	for _, p := range l.mesh.Arrived() {
		if packet := p.Payload[l.prefix:]; codepoint(packet) != p.ECN {
			setECN(packet, p.ECN)
		}
		d := l.exits[p.Route]
		if d.box != nil && !d.box.Inbound(p.Payload) {
			d.counters.Boxed++
			l.pool.Put(p)
			continue
		}
		if _, err := transfer(unix.SYS_WRITE, d.fd, p.Payload); err != nil {
			l.stats.Refused++
			l.pool.Put(p)
			continue
		}
		d.counters.Received++
		d.counters.ReceivedBytes += uint64(len(p.Payload) - l.prefix)
		l.passed = time.Now()
		readLate, writeLate := p.Late, l.passed.Sub(p.Arrival)
		l.stats.ReadLate.Add(readLate)
		l.stats.WriteLate.Add(writeLate)
		l.stats.Late.Add(readLate + writeLate)
		l.pool.Put(p)
	}
}

// serve processes the requests to the router. It returns false if the router is to stop.
func (l *loop) serve() bool {
	var counter [8]byte
	// The counter has a value, or was already read.
	_, _ = unix.Read(l.router.alarm, counter[:])
	requests, stop := l.router.taken()
	now := time.Now()
	for _, q := range requests {
		var a answer
		switch q.kind {
		case requestStatistics:
			a.statistics = l.statistics(now)
		case requestRestart:
			l.mesh.Restart(now)
			l.reset(now)
		case requestConfigure:
			a.err = l.mesh.Configure(q.wire, q.config, now)
		}
		q.answer <- a
	}
	return !stop
}

// statistics returns all counters except those of the kernel.
func (l *loop) statistics(now time.Time) Statistics {
	s := l.stats
	s.Duration, s.CPU, s.Wires = now.Sub(l.began), processorTime()-l.cpuBefore, l.mesh.Statistics()
	for _, d := range l.devices {
		s.Interfaces = append(s.Interfaces, d.counters)
	}
	return s
}
