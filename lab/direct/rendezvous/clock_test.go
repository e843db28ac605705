package rendezvous

import (
	"testing"
	"time"
)

// TestClock: a producer whose clock is 5 s ahead, 10 ms away.
func TestClock(t *testing.T) {
	c, same := NewClock(false), NewClock(true)
	begin := time.Unix(1000, 0)
	if c.Producer(begin) != begin || c.RTT() != 0 {
		t.Error("expected no offset before the first answer")
	}
	for i := range 20 {
		asked := begin.Add(time.Duration(i) * time.Second)
		question := c.Ask(asked)
		received := asked.Add(5*time.Second + 10*time.Millisecond)
		answer := question.Time.Answer(received, received.Add(3*time.Millisecond))
		c.Answered(answer.Time, asked.Add(23*time.Millisecond))
	}
	now := begin.Add(time.Minute)
	if got := c.Producer(now).Sub(now); got < 4999*time.Millisecond || got > 5001*time.Millisecond {
		t.Errorf("the producer's clock is %v ahead, expected 5 s", got)
	}
	if got := c.RTT(); got != 20*time.Millisecond {
		t.Errorf("the round trip takes %v, expected 20 ms", got)
	}
	// An answer before the request.
	c.Answered(&Time{Asked: now.UnixMicro(), Received: 5, Answered: 1}, now.Add(-time.Second))
	if got := c.RTT(); got != 20*time.Millisecond {
		t.Errorf("an inconsistent answer changed the offset to %v", got)
	}
	if same.Producer(now) != now {
		t.Error("expected no offset on the same host")
	}
}
