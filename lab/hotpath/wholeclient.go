package hotpath

import (
	"context"
	"fmt"
	"net/netip"
	"sync"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/payload"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// wholeClient is a client of the SDK on an impaired path. The client counts missed packets and the repaired packets
// among them.
type wholeClient struct {
	session *client.Session
	path    *impairment
	running sync.WaitGroup

	mu     sync.Mutex
	timing bool
	frames uint64
	frame  lab.Distribution
}

// attachWhole joins with a client of the SDK over an impaired path.
func (v *volsfu) attachWhole(ctx context.Context, part part) (*member, error) {
	if v.program == nil {
		return nil, fmt.Errorf("%w: loss and round-trip time require a server that this command starts", ErrLoad)
	}
	v.seed++
	path, err := impair(part.load, v.seed, netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}),
		v.program.MediaPort))
	if err != nil {
		return nil, err
	}
	session, err := client.Join(ctx, client.Config{URL: v.url, Room: room, Identity: part.identity(), Receive: true,
		PacketConn: path.client})
	if err != nil {
		_ = path.close()
		return nil, fmt.Errorf("join as %s: %w", part.identity(), err)
	}
	w := &wholeClient{session: session, path: path}
	if err := w.begin(ctx, part.load); err != nil {
		_ = w.close()
		return nil, fmt.Errorf("join as %s: %w", part.identity(), err)
	}
	return &member{receiver: w, end: w.close}, nil
}

// begin waits until the client is connected, and reads frames from then on.
func (w *wholeClient) begin(ctx context.Context, load Load) error {
	connected := make(chan struct{})
	w.running.Go(func() { w.receive(connected) })
	if load.UnwatchedTracks > 0 {
		var off []signal.Choice
		for i := range load.Publishers {
			ref := volumetric.PublicationRef{Participant: publisherName(i), Publication: unwatchedName}
			off = append(off, signal.Choice{PublicationRef: ref, Quality: signal.Only(volumetric.QualityOff)})
		}
		if err := w.session.SetQuality(ctx, off...); err != nil {
			return err
		}
	}
	select {
	case <-connected:
		return nil
	case <-w.session.Done():
		return w.session.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// receive reads frames and events until the session ends.
func (w *wholeClient) receive(connected chan struct{}) {
	frames, events := w.session.Frames(), w.session.Events()
	for frames != nil || events != nil {
		select {
		case f, open := <-frames:
			if !open {
				frames = nil
				continue
			}
			w.take(f)
		case e, open := <-events:
			if !open {
				events = nil
				continue
			}
			if _, is := e.(client.Connected); is && connected != nil {
				close(connected)
				connected = nil
			}
		}
	}
}

// take counts a complete frame, and reads its time from the stamp of its first fragment.
func (w *wholeClient) take(f client.Frame) {
	_, begun, ok := readStamp(append(make([]byte, payload.DescriptorSize), f.Data[:min(stampBytes, len(f.Data))]...))
	w.mu.Lock()
	defer w.mu.Unlock()
	w.frames++
	if ok && w.timing {
		w.frame.Add(f.Complete.Sub(begun))
	}
}

// sum returns the counters of the client so far.
func (w *wholeClient) sum() received {
	stats := w.session.Stats()
	sum := received{streams: len(stats)}
	for _, t := range stats {
		sum.packets += t.Packets
		sum.missed += t.Lost
		sum.recovered += t.Recovered
	}
	sum.missing = int64(sum.missed - sum.recovered)
	w.mu.Lock()
	defer w.mu.Unlock()
	sum.frames = w.frames
	return sum
}

// time starts or stops the recording of times.
func (w *wholeClient) time(on bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timing = on
}

func (w *wholeClient) times() (packet, frame lab.Distribution) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return packet, w.frame
}

// close leaves the room and closes the path.
func (w *wholeClient) close() error {
	_ = w.session.Close()
	w.running.Wait()
	return w.path.close()
}
