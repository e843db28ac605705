package udp

import (
	"errors"
	"sync"
	"time"
)

// ErrNoSender is returned by Port.OpenSender if the port cannot have send-only sockets.
var ErrNoSender = errors.New("no socket that only sends can share the port")

// SenderConfig is the configuration of a send-only socket.
type SenderConfig struct {
	// Buffer is the requested send buffer in bytes; 0 keeps the system's default.
	Buffer int
	// Patience is as Config.Patience.
	Patience time.Duration
}

// senders are the send-only sockets of a port. They share the port's number, so peers see one address, and have send
// buffers of their own: the kernel charges a packet to its socket's buffer until the packet has left the host, which
// takes up to 3 s for a neighbour that does not answer (ARP, RFC 4861).
type senders struct {
	mu     sync.Mutex
	config Config
	use    abilities
	// able is set on ports opened by Listen.
	able, closed bool
	open         map[*Socket]struct{}
	// before is the sum of the counters of closed senders.
	before Stats
}

// OpenSender opens another socket on the port that receives nothing. CloseSender closes it, or Close of the port.
// Errors wrap ErrNoSender.
func (p *Port) OpenSender(c SenderConfig) (*Socket, error) {
	p.senders.mu.Lock()
	defer p.senders.mu.Unlock()
	if !p.senders.able || p.senders.closed {
		return nil, ErrNoSender
	}
	s, err := p.openSender(c)
	if err != nil {
		return nil, errors.Join(ErrNoSender, err)
	}
	if p.senders.open == nil {
		p.senders.open = make(map[*Socket]struct{})
	}
	p.senders.open[s] = struct{}{}
	return s, nil
}

// CloseSender closes a socket opened by OpenSender. Closing again has no effect.
func (p *Port) CloseSender(s *Socket) error {
	p.senders.mu.Lock()
	defer p.senders.mu.Unlock()
	if _, open := p.senders.open[s]; !open {
		return nil
	}
	delete(p.senders.open, s)
	err := s.close()
	s.addStats(&p.senders.before)
	return err
}

// closeSenders closes all senders, and refuses to open more.
func (p *Port) closeSenders() (failure error) {
	p.senders.mu.Lock()
	defer p.senders.mu.Unlock()
	p.senders.closed = true
	for s := range p.senders.open {
		failure = errors.Join(failure, s.close())
		s.addStats(&p.senders.before)
	}
	clear(p.senders.open)
	return failure
}

// addSenderStats adds the counters of all senders, open and closed.
func (p *Port) addSenderStats(sum *Stats) {
	p.senders.mu.Lock()
	defer p.senders.mu.Unlock()
	sum.Add(p.senders.before)
	for s := range p.senders.open {
		s.addStats(sum)
	}
}
