package puppet

import (
	"strings"

	"github.com/volsfu/volsfu/internal/transport"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Track names one track of the puppet.
type Track struct {
	Publication string
	Tile        int
	Quality     volumetric.Quality
}

// Slot is a media line on which the server sends.
type Slot struct {
	MID     string
	Role    signal.Role
	Streams transport.Streams
	// Carries is nil while the slot is idle.
	Carries *volumetric.TileRef
}

// read is the goroutine that reads the websocket.
func (p *Puppet) read(messages chan<- signal.Message) {
	defer p.running.Done()
	defer close(p.ended)
	for {
		p.mu.Lock()
		deaf := p.deaf
		p.mu.Unlock()
		if deaf != nil {
			<-deaf
			return
		}
		_, data, err := p.conn.ReadMessage()
		if err != nil {
			return
		}
		m, err := signal.DecodeFromServer(data)
		if err != nil {
			continue
		}
		p.note(m)
		select {
		case messages <- m:
		case <-p.stop:
			return
		}
	}
}

// note records a message and passes the message to a waiting request.
func (p *Puppet) note(m signal.Message) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.counts[m.Head().Type]++
	if reply := p.pending[m.Head().ID]; reply != nil {
		reply <- m
		delete(p.pending, m.Head().ID)
		return
	}
	switch m := m.(type) {
	case *signal.Error:
		p.errors = append(p.errors, m)
	case *signal.Closing:
		p.farewell = m
	}
}

// act is the goroutine that negotiates. The test notices a failure by the effects.
func (p *Puppet) act(messages <-chan signal.Message) {
	defer p.running.Done()
	for {
		select {
		case m := <-messages:
			p.handle(m)
		case <-p.peer.Notify():
			for _, e := range p.peer.Events() {
				p.event(e)
			}
		case <-p.stop:
			return
		}
	}
}

func (p *Puppet) handle(m signal.Message) {
	switch m := m.(type) {
	case *signal.Offer:
		p.answer(m)
	case *signal.Candidate:
		p.addCandidates(m.Candidate)
		_ = p.peer.AddCandidate(transport.Candidate{Candidate: m.Candidate, MID: m.MID, LineIndex: m.LineIndex})
	case *signal.Assignments:
		known := &signal.Acknowledge{}
		p.mu.Lock()
		for _, a := range m.Assignments {
			slot := p.slots[a.MID]
			slot.MID, slot.Carries = a.MID, a.Track
			p.slots[a.MID] = slot
			known.Slots = append(known.Slots, signal.SlotGeneration{MID: a.MID, Generation: a.Generation})
		}
		p.mu.Unlock()
		_ = p.Send(known)
	}
}

// answer answers an offer in the way that the test specifies.
func (p *Puppet) answer(offer *signal.Offer) {
	p.mu.Lock()
	p.lastOffer = offer
	p.mu.Unlock()
	for _, line := range strings.Split(offer.SDP, "\r\n") {
		if candidate, ok := strings.CutPrefix(line, "a=candidate:"); ok {
			p.addCandidates(candidate)
		}
	}
	streams, err := p.peer.Offered(offer.SDP)
	if err != nil {
		return
	}
	for _, m := range offer.Media {
		if m.Role == signal.RolePublish {
			p.attach(m)
			continue
		}
		p.mu.Lock()
		slot := p.slots[m.MID]
		slot.MID, slot.Role, slot.Streams = m.MID, m.Role, streams[m.MID]
		p.slots[m.MID] = slot
		p.mu.Unlock()
	}
	answer, err := p.peer.Answer()
	if err != nil {
		return
	}
	if p.config.Answer != nil {
		var say bool
		if answer, say = p.config.Answer(offer, answer); !say {
			return
		}
	}
	_ = p.Send(&signal.Answer{Offer: offer.Offer, SDP: answer})
}

// attach creates the line of a track of the puppet.
func (p *Puppet) attach(m signal.Media) {
	if m.Publication == "" || m.Quality == nil {
		return
	}
	outlet, err := p.peer.Sending(m.MID)
	if err != nil {
		return
	}
	track := Track{m.Publication, m.Tile, *m.Quality}
	p.mu.Lock()
	defer p.mu.Unlock()
	if line := p.lines[track]; line == nil || line.Outlet != outlet {
		p.lines[track] = newLine(track, outlet)
	}
}

func (p *Puppet) addCandidates(candidates ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.candidates = append(p.candidates, candidates...)
}

func (p *Puppet) event(e transport.Event) {
	if c := e.Candidate; c != nil {
		_ = p.Send(&signal.Candidate{Candidate: c.Candidate, MID: c.MID, LineIndex: c.LineIndex})
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.isConnected = e.State == transport.StateConnected || p.isConnected && e.State == transport.StateDisconnected
}
