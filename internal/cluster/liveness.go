package cluster

import (
	"slices"
	"time"
)

// TrunkReceived notes a packet on the trunk to an incarnation of a node, which is authenticated by the trunk. A dead
// node returns.
func (r *Replica) TrunkReceived(now time.Time, node string, incarnation uint64) {
	p := r.peers[node]
	if p == nil || p.home.Incarnation != incarnation || p.state == stopped {
		return
	}
	p.trunk, p.received = true, now
	if p.state == Dead {
		p.state = Suspected
		r.returned(p)
		r.check(now, p)
	}
}

// lateIntervals is the lateness of a Step, in intervals of beats, above which the node was not running.
const lateIntervals = 2

// checkBeats changes the states of nodes whose beats are missing.
func (r *Replica) checkBeats(now time.Time) {
	beating, candidates := 0, 0
	for _, p := range r.ordered {
		if !p.beats() {
			continue
		}
		candidates++
		if p.state == Alive && now.Sub(p.beat) >= r.config.Suspect {
			p.state = Suspected
			r.emit(NodeSuspected{p.home})
		}
		if now.Sub(p.beat) < r.config.Suspect {
			beating++
		}
	}
	if candidates > 0 && beating == 0 && !r.lost {
		r.lost = true
		r.emit(FabricLost{})
	}
	for _, p := range r.ordered {
		if p.state == Suspected && r.expired(now, p) {
			r.markDead(now, p, Dead)
			r.emit(NodeDead{p.home})
			r.detach(now, p)
		}
	}
}

// markDead changes the state of a node that is dead or has stopped.
func (r *Replica) markDead(now time.Time, p *peer, state State) {
	p.state, p.deadSince, p.trunk = state, now, false
	p.askDigest, p.serveDigest, p.ask = false, false, nil
	clear(p.serve)
	r.regroup()
	r.tombstones.adopt(p.home.Node)
}

// detach detaches the participants of a node that is dead.
func (r *Replica) detach(now time.Time, p *peer) {
	for _, name := range sortedRooms(p) {
		m := p.mirrors[name]
		m.detached = true
		p.dropParts(m)
		if m.state != nil {
			r.emit(RoomChanged{name, p.home, RoomState{}})
		}
		for _, identity := range m.content.identities() {
			r.refresh(now, r.rooms[name], identity, LeftLost)
		}
	}
}

// returned reports that a dead node is alive. Its participants return when their mirrors have been checked.
func (r *Replica) returned(p *peer) {
	r.emit(NodeReturned{p.home})
	r.regroup()
	p.asked = time.Time{}
	for name, m := range p.mirrors {
		p.unchecked[r.rooms[name].key] = true
		m.asked = time.Time{}
	}
}

// forget removes what remains of nodes that have been dead for long.
func (r *Replica) forget(now time.Time) {
	for _, p := range r.ordered {
		if p.beats() {
			continue
		}
		if now.Sub(p.deadSince) >= r.config.ResumeGrace {
			r.drop(now, p, LeftLost)
		}
		if now.Sub(p.deadSince) >= r.config.Tombstone {
			delete(r.peers, p.home.Node)
			r.reorder()
			if p.state == Dead {
				r.emit(NodeLeft{p.home})
			}
		}
	}
	r.former = slices.DeleteFunc(r.former, func(p *peer) bool {
		if now.Sub(p.deadSince) < r.config.ResumeGrace {
			return false
		}
		r.drop(now, p, LeftLost)
		return true
	})
}

// drop removes the mirrors of a node.
func (r *Replica) drop(now time.Time, p *peer, reason LeftReason) {
	for _, name := range sortedRooms(p) {
		identities := p.mirrors[name].content.identities()
		p.forget(name)
		for _, identity := range identities {
			r.refresh(now, r.rooms[name], identity, reason)
		}
	}
	// A node that returns is asked for everything.
	p.digest, p.sum, p.sequence, p.agreed = map[string]uint64{}, 0, 0, false
	clear(p.unchecked)
}
