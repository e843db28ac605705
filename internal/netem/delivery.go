package netem

import "time"

// send sends a packet. On links without delay it has arrived when send returns.
func (n *Network) send(p *Packet) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return
	}
	now := time.Now()
	n.step(now)
	source := n.hosts[p.Source.Addr()]
	if source.up == nil || p.Source.Addr() == p.Destination.Addr() {
		n.enterDownlink(p, now)
	} else {
		source.up.link.Send(p, now)
		n.schedule(source.up)
	}
	n.step(now)
	n.setAlarm(now)
}

// step processes all events up to now, in order of time. A packet enters its next link at the time at which it left the
// previous one, however late that is processed.
func (n *Network) step(now time.Time) {
	for h, due := n.pending.First(now); due; h, due = n.pending.First(now) {
		for _, p := range h.link.Deliver(h.Due()) {
			n.leave(h, p)
		}
		for _, f := range h.flows {
			f.Step(h.link, h.Due())
		}
		n.schedule(h)
	}
}

// leave moves a packet from the far end of an access link to its next link or socket.
func (n *Network) leave(h *hop, p *Packet) {
	if !p.Source.IsValid() {
		h.waitedCubic.Add(p.Waited)
		h.flows[p.Flow-1].Receive(p)
		return
	}
	h.waited.Add(p.Waited)
	if h.direction == Up {
		n.enterDownlink(p, p.Arrival)
	} else {
		n.receive(p)
	}
}

// enterDownlink moves a packet to the access link of its destination.
func (n *Network) enterDownlink(p *Packet, at time.Time) {
	destination := n.hosts[p.Destination.Addr()]
	if destination == nil || destination.down == nil || p.Source.Addr() == p.Destination.Addr() {
		n.receive(p)
		return
	}
	destination.down.link.Send(p, at)
	n.schedule(destination.down)
}

// receive passes a packet to its destination socket.
func (n *Network) receive(p *Packet) {
	if destination := n.hosts[p.Destination.Addr()]; destination != nil {
		if c := destination.conns[p.Destination.Port()]; c != nil {
			c.receive(p)
			return
		}
	}
	n.stats.Unreachable++
	recycle(p)
}

// setAlarm sets the timer of the goroutine to the next event.
func (n *Network) setAlarm(now time.Time) {
	next := n.pending.Next()
	switch {
	case next.IsZero():
		if !n.alarm.IsZero() {
			n.timer.Stop()
			n.alarm = time.Time{}
		}
	case !next.Equal(n.alarm):
		n.alarm = next
		n.timer.Reset(n.alarm.Sub(now))
	}
}

// deliver processes events as long as the network is open.
func (n *Network) deliver() {
	defer close(n.stopped)
	for {
		select {
		case <-n.closing:
			return
		case <-n.timer.C:
		}
		n.mu.Lock()
		if !n.closed {
			now := time.Now()
			n.alarm = time.Time{}
			n.step(now)
			n.setAlarm(now)
		}
		n.mu.Unlock()
	}
}
