package peer

import (
	"testing"
	"time"

	"golang.org/x/time/rate"

	"github.com/volsfu/volsfu/pkg/signal"
)

// receiver is an owner that keeps data messages.
type receiver struct {
	*listener
	messages []*signal.Data
}

func (r *receiver) DataCopied(m *signal.Data) { r.messages = append(r.messages, m) }

// FuzzMessageChannel passes texts of a message channel. Only valid, numbered data messages may reach the owner.
func FuzzMessageChannel(f *testing.F) {
	f.Add([]byte(`{"type":"data","seq":1,"text":"hello","to":["ada"]}`))
	f.Add([]byte(`{"type":"data","seq":2,"lossy":true,"topic":"hand","binary":"AAEC"}`))
	f.Add([]byte(`{"type":"data","seq":-1,"text":1}`))
	f.Add([]byte(`{"type":"leave"}`))
	f.Add([]byte(`{"type":"data","text":"without a number"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		owner := &receiver{listener: newListener()}
		c := &messages{owner, rate.NewLimiter(copyRate, copyBurst)}
		c.take(text, time.Unix(0, 0))
		for _, m := range owner.messages {
			if m.Seq <= 0 || m.Validate() != nil {
				t.Errorf("%s passed as %+v", text, m)
			}
		}
	})
}

// TestTheMessageChannelHasARate floods a message channel.
func TestTheMessageChannelHasARate(t *testing.T) {
	owner := &receiver{listener: newListener()}
	c := newMessages(owner)
	start := time.Unix(1000, 0)
	for i := range 10 * copyBurst {
		c.take([]byte(`{"type":"data","seq":1}`), start.Add(time.Duration(i)*time.Microsecond))
	}
	if n := len(owner.messages); n < copyBurst || n > copyBurst+10 {
		t.Errorf("%d messages passed at once, expected %d", n, copyBurst)
	}
	long := append([]byte(`{"type":"data","seq":1,"text":"`), make([]byte, maxCopy)...)
	c.take(long, start.Add(time.Minute))
	if n := len(owner.messages); n > copyBurst+10 {
		t.Error("a message over the limit passed")
	}
}
