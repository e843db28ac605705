package stages

import "sync"

// Books are a ledger that several goroutines write, and the log of what it closes.
type Books struct {
	mu     sync.Mutex
	ledger *Ledger
	log    *Log // nil for none
}

// NewBooks opens the books; log may be nil.
func NewBooks(log *Log) *Books { return &Books{ledger: NewLedger(), log: log} }

// Sent takes the producer's word of a frame.
func (b *Books) Sent(s *Sent) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.write(b.ledger.Sent(s))
}

// Received takes the consumer's word of a frame.
func (b *Books) Received(r *Received) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.write(b.ledger.Received(r))
}

// Waiting tells whether frames that were sent still may come.
func (b *Books) Waiting() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ledger.Waiting()
}

// Report sums up so far.
func (b *Books) Report() Report {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ledger.Report()
}

// End closes the books at an instant, and the log.
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
