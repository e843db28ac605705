package transport

import (
	"fmt"
	"strings"
	"time"

	"github.com/pion/ice/v4"

	"github.com/volsfu/volsfu/internal/description"
)

// localTransport describes this side.
func (p *Peer) localTransport() (description.Transport, error) {
	ufrag, password, err := p.agent.GetLocalUserCredentials()
	if err != nil {
		return description.Transport{}, fmt.Errorf("ICE credentials: %w", err)
	}
	return description.Transport{
		Ufrag: ufrag, Password: password, Fingerprint: p.endpoint.fingerprint, Candidates: p.localCandidates.all(),
	}, nil
}

// gather has ICE look for its candidates, once until it begins anew.
func (p *Peer) gather() error {
	if p.gathering {
		return nil
	}
	p.gathering = true
	if p.endpoint.mux != nil {
		ufrag, _, err := p.agent.GetLocalUserCredentials()
		if err != nil {
			return fmt.Errorf("ICE credentials: %w", err)
		}
		p.endpoint.mux.register(ufrag, p)
	}
	if err := p.agent.GatherCandidates(); err != nil {
		return fmt.Errorf("gather ICE candidates: %w", err)
	}
	return nil
}

// restartICE makes ICE begin anew: new credentials, new candidates.
func (p *Peer) restartICE() error {
	p.awaitGathering()
	if err := p.agent.Restart("", ""); err != nil {
		return fmt.Errorf("restart ICE: %w", err)
	}
	p.localCandidates.clear()
	p.gathered.Store(false)
	p.gathering = false
	clear(p.named)
	return nil
}

// setRemote takes the remote peer's transport: it begins ICE, or goes on with what has changed.
func (p *Peer) setRemote(remote description.Transport, controlling bool) error {
	switch {
	case !p.begun:
		if err := p.start(remote, controlling); err != nil {
			return fmt.Errorf("start ICE: %w", err)
		}
		p.begun = true
	case remote.Ufrag != p.remote.Ufrag || remote.Password != p.remote.Password:
		if err := p.agent.SetRemoteCredentials(remote.Ufrag, remote.Password); err != nil {
			return fmt.Errorf("remote ICE credentials: %w", err)
		}
	}
	if !controlling && remote.Ufrag != p.remote.Ufrag {
		clear(p.named)
	}
	p.remote = remote
	// A candidate that cannot be used is one way less to reach the remote peer.
	for _, candidate := range remote.Candidates {
		_ = p.name(candidate)
	}
	for _, candidate := range p.early {
		_ = p.addRemote(candidate)
	}
	p.early = nil
	return nil
}

// Host candidates are gathered in milliseconds; gatherPatience bounds the wait where they are not.
const (
	gatherPatience = time.Second
	gatherInterval = time.Millisecond
)

// awaitGathering waits until ICE has gathered its candidates. Before that ICE must not begin anew: what gathers reads the credentials that a restart
// writes, without a lock (pion/ice v4.4).
func (p *Peer) awaitGathering() {
	deadline := time.Now().Add(gatherPatience)
	for p.gathering && !p.gathered.Load() && time.Now().Before(deadline) {
		time.Sleep(gatherInterval)
	}
}

// AddCandidate takes a remote candidate. One that comes before the description waits for it. Descriptions and this method
// may name description.MaxCandidates candidates in all until ICE restarts; the error of another one wraps ErrCandidate.
func (p *Peer) AddCandidate(c Candidate) error { return p.name(c.Candidate) }

// name counts a remote candidate and hands it to ICE. One that was named before changes nothing.
func (p *Peer) name(candidate string) error {
	if _, known := p.named[candidate]; known {
		return nil
	}
	if len(p.named) == description.MaxCandidates {
		return fmt.Errorf("%w: more than %d candidates until ICE restarts", ErrCandidate, description.MaxCandidates)
	}
	p.named[strings.Clone(candidate)] = struct{}{}
	if !p.begun {
		p.early = append(p.early, candidate)
		return nil
	}
	return p.addRemote(candidate)
}

// addRemote hands a candidate to ICE. An empty one says that there are no more.
func (p *Peer) addRemote(text string) error {
	text = strings.TrimPrefix(text, "candidate:")
	if text == "" {
		return nil
	}
	candidate, err := ice.UnmarshalCandidate(text)
	if err != nil {
		return fmt.Errorf("%w %q: %w", ErrCandidate, text, err)
	}
	if a := p.agentOnPort.Load(); a != nil && a.name(candidate, p.remote.Ufrag, p.remote.Password, time.Now()) {
		return nil
	}
	if err := p.agent.AddRemoteCandidate(candidate); err != nil {
		return fmt.Errorf("%w %q: %w", ErrCandidate, text, err)
	}
	return nil
}
