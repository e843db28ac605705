package oldpeer

import (
	"errors"
	"fmt"
)

// maxFaults is the number of faults kept; further faults are only counted.
const maxFaults = 20

// faults has the faults of a server's messages and packets.
type faults struct {
	kept []error
	more int
}

// note records a fault that the original survives.
func (p *Peer) note(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.faults.kept) < maxFaults {
		p.faults.kept = append(p.faults.kept, err)
	} else {
		p.faults.more++
	}
}

// fail records a fault that ends the original, and ends the peer. A dead peer records no more of these.
func (p *Peer) fail(err error) {
	select {
	case <-p.dead:
		return
	default:
	}
	p.note(err)
	p.Kill()
}

// Fault joins the faults so far, or returns nil. errors.Is finds the errors of this package in a Fault.
func (p *Peer) Fault() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	err := errors.Join(p.faults.kept...)
	if p.faults.more > 0 {
		err = fmt.Errorf("%w\nand %d more", err, p.faults.more)
	}
	return err
}
