package egress

import (
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/congestion"
	"github.com/volsfu/volsfu/internal/congestion/pacing"
	"github.com/volsfu/volsfu/internal/congestion/sender/sendertest"
	"github.com/volsfu/volsfu/internal/feedback"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/transcript"
)

// storyPlayer is a story's player: a server with one publisher and one receiver.
type storyPlayer struct {
	*rig
	publisher *publisher
	receiver  *subscriber
}

func (p *storyPlayer) Frame(packets int, now time.Time) {
	p.now = now
	p.publisher.Next()
	p.publisher.Send(now, p.publisher.Packets(packets*1144)...)
}

func (p *storyPlayer) Report(packet []byte, now time.Time) { p.receiver.receiver.RTCP(packet, now) }

func (p *storyPlayer) Run(now time.Time) {
	p.now = now
	for p.run(); idleOf(p.engine.writers[0]) <= 0; p.run() {
	}
}

func (p *storyPlayer) Departed() (packets []sendertest.Packet) {
	peer := p.receiver.peer
	peer.mu.Lock()
	defer peer.mu.Unlock()
	for _, packet := range peer.flushed {
		raw, err := packet.Marshal()
		if err != nil {
			p.t.Fatal(err)
		}
		number, ok := feedback.TransportSequence(raw, testExtension)
		if !ok {
			p.t.Fatal("a packet has no number")
		}
		packets = append(packets,
			sendertest.Packet{Number: number, Size: congestion.PacketOverhead + len(packet.Payload)})
	}
	peer.flushed = nil
	return packets
}

// TestStories checks that the server steps the same sender as vollab control, which plays the same stories.
func TestStories(t *testing.T) {
	transcript.Play(t, "../../congestion/sender/testdata/*.txt", func(t *testing.T, text string) string {
		story, line, err := sendertest.Read(text)
		if err != nil {
			t.Fatal(err)
		}
		r := newPacedRig(t, pacing.Default, nil)
		p := r.publish(r.ingress(&fakePeer{}), 10, volumetric.MIMEVolumetric)
		s := r.subscribe(1000, volumetric.KindVideo)
		s.peer.agree(testExtension)
		s.slot.Select(p.track, 1, r.now)
		r.run()
		// Numbers are negotiated with the first packet. The estimate begins with the story.
		s.receiver.agree()
		recorder := sendertest.NewRecorder(r.now)
		s.receiver.path.sender.Start(s.receiver.path.departures.history, recorder, r.now)
		story.Play(&storyPlayer{rig: r, publisher: p, receiver: s}, r.now)
		return recorder.Transcript(line)
	})
}
