package control

import (
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/congestion/pacing"
	"github.com/volsfu/volsfu/internal/congestion/sender/sendertest"
	"github.com/volsfu/volsfu/internal/netem"
	"github.com/volsfu/volsfu/test/transcript"
)

// storyPlayer plays a story on the server of a simulation.
type storyPlayer struct {
	*server
	frames int64
	now    time.Time
}

func (p *storyPlayer) Frame(packets int, now time.Time) {
	at := now.Sub(epoch)
	captured := time.Duration(p.frames) * frameInterval
	p.frames++
	p.frame(&outgoing{
		number: p.frames, captured: captured, bytes: packets * fragmentSize, source: packets, planned: packets,
	}, at)
}

func (p *storyPlayer) Report(packet []byte, now time.Time) { p.report(packet, now.Sub(epoch)) }

func (p *storyPlayer) Run(now time.Time) {
	p.now = now
	for at := now.Sub(epoch); p.next() <= at; {
		p.run(at)
	}
}

func (p *storyPlayer) Departed() (packets []sendertest.Packet) {
	for _, packet := range p.link.Deliver(p.now) {
		h := unmarshalHeader(packet.Payload)
		packets = append(packets, sendertest.Packet{Number: h.number, Size: packet.Size})
	}
	return packets
}

// TestStories: the simulated server steps the same sender as the real server, which plays the same stories.
func TestStories(t *testing.T) {
	transcript.Play(t, "../../internal/congestion/sender/testdata/*.txt", func(t *testing.T, text string) string {
		story, line, err := sendertest.Read(text)
		if err != nil {
			t.Fatal(err)
		}
		plan, err := pacing.Default.Plan()
		if err != nil {
			t.Fatal(err)
		}
		link, err := netem.NewLink(netem.Config{}, 1, nil)
		if err != nil {
			t.Fatal(err)
		}
		o := DefaultOptions()
		recorder := sendertest.NewRecorder(epoch)
		story.Play(&storyPlayer{server: newServer(1, &o, recorder, plan, link, newLedger(), 0)}, epoch)
		return recorder.Transcript(line)
	})
}
