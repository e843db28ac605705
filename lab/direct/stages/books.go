package stages

import "sync"

// Books is a ledger that several goroutines may write, with an optional log of the closed records.
type Books struct {
	mu     sync.Mutex
	ledger *Ledger
	log    *Log // nil without a log
}

// NewBooks returns empty books. log may be nil.
func NewBooks(log *Log) *Books { return &Books{ledger: NewLedger(), log: log} }

// Sent adds the producer's record of a frame.
func (b *Books) Sent(s *Sent) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.write(b.ledger.Sent(s))
}

// Received adds the consumer's record of a frame.
func (b *Books) Received(r *Received) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.write(b.ledger.Received(r))
}

// Waiting reports whether sent frames may still arrive.
func (b *Books) Waiting() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ledger.Waiting()
}

// Report returns the statistics so far.
func (b *Books) Report() Report {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ledger.Report()
}

// End closes all open records at an instant, and the log.
func (b *Books) End(now Instant) (Report, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.write(b.ledger.End(now))
	var err error
	if b.log != nil {
		err = b.log.Close()
	}
	return b.ledger.Report(), err
}

func (b *Books) write(records []Record) {
	for i := range records {
		if b.log != nil {
			b.log.Write(&records[i])
		}
	}
}
