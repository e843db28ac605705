package oldpeer

import (
	"errors"
	"fmt"
)

// maxFaults is how many faults are kept; more are counted.
const maxFaults = 20

// faults is what was wrong with what a server sent.
type faults struct {
	kept []error
	more int
}

// note books a fault that the original survives.
func (p *Peer) note(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.faults.kept) < maxFaults {
		p.faults.kept = append(p.faults.kept, err)
	} else {
		p.faults.more++
	}
}

// fail books a fault that the original dies of, and dies. A peer that is dead has no more of these.
func (p *Peer) fail(err error) {
	select {
	case <-p.dead:
		return
	default:
	}
	p.note(err)
	p.Kill()
}

// Fault joins what was wrong so far, nil where nothing was. errors.Is finds the errors of this package in it.
func (p *Peer) Fault() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	err := errors.Join(p.faults.kept...)
	if p.faults.more > 0 {
		err = fmt.Errorf("%w\nand %d more", err, p.faults.more)
	}
	return err
}
