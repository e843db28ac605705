package guest

import (
	"bytes"
	"fmt"
	"sync"
	"time"

	"github.com/volsfu/volsfu/internal/peer/opus"
	"github.com/volsfu/volsfu/internal/voice"
	"github.com/volsfu/volsfu/internal/voice/libopus"
	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// MaxSamples bounds the samples of one call: one second.
const MaxSamples = libopus.Rate

const (
	// defaultSoundRate is the bit rate of sound: fullband speech without audible loss.
	defaultSoundRate = 64_000
	// leastSoundRate and mostSoundRate are the limits of Opus for one channel (RFC 6716 section 2.1.1).
	leastSoundRate, mostSoundRate = 6_000, 510_000
	// maxListeners bounds the publications of sound that a guest decodes.
	maxListeners = 256
)

// speaker encodes the sound of a publication. mu guards it; encoder is nil after the end.
type speaker struct {
	mu      sync.Mutex
	encoder *libopus.Encoder
	framer  voice.Framer
	packet  []byte
}

// PublishSound announces a publication of sound, of a bit rate in bit/s or 0 for the default, and waits until the
// server has accepted the publication.
func (g *Guest) PublishSound(name string, bitrate uint32) (*Publisher, error) {
	if bitrate == 0 {
		bitrate = defaultSoundRate
	}
	if bitrate < leastSoundRate || bitrate > mostSoundRate {
		return nil, fmt.Errorf("%w: bit rate of sound is %d, expected %d to %d", ErrArgument, bitrate, leastSoundRate,
			mostSoundRate)
	}
	encoder, err := libopus.NewEncoder(int(bitrate))
	if err != nil {
		return nil, err
	}
	p, err := g.Publish(opus.Publication(name))
	if err != nil {
		encoder.Close()
		return nil, err
	}
	p.speaker = &speaker{encoder: encoder}
	return p, nil
}

// End frees the encoder of sound. Sound that is written later is not sent.
func (p *Publisher) End() {
	if p.speaker == nil {
		return
	}
	p.speaker.mu.Lock()
	defer p.speaker.mu.Unlock()
	if p.speaker.encoder != nil {
		p.speaker.encoder.Close()
		p.speaker.encoder = nil
	}
}

// WriteSound sends samples, the first of which was captured at a time; the zero time means that the last
// sample was captured now. Packets of 20 ms are sent when they are complete. Samples that are no numbers are silence.
// The error wraps client.ErrNotConnected if a packet was not sent.
func (p *Publisher) WriteSound(samples []float32, capture time.Time) error {
	if p.speaker == nil {
		return fmt.Errorf("%w: %q has frames, expected sound", ErrNotSound, p.publisher.Publication().Name)
	}
	if p.guest.session.Err() != nil {
		return p.guest.ended()
	}
	end := time.Now()
	if !capture.IsZero() {
		end = capture.Add(libopus.Duration(len(samples)))
	}
	s := p.speaker
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.encoder == nil {
		return client.ErrClosed
	}
	s.framer.Add(samples, end)
	var failed error
	for s.framer.Full() {
		frame, begin := s.framer.Frame()
		s.packet = s.encoder.Encode(s.packet[:0], clean(frame))
		s.framer.Pop()
		if _, err := p.publisher.WritePackets(0, 0, begin, [][]byte{bytes.Clone(s.packet)}); err != nil {
			failed = err
		}
	}
	return failed
}

// clean limits samples to the range of Opus, in place.
func clean(samples []float32) []float32 {
	for i, v := range samples {
		if v != v {
			v = 0
		}
		samples[i] = min(max(v, -1), 1)
	}
	return samples
}

// Listener plays the sound of one publication.
type Listener struct {
	guest *Guest
	ref   volumetric.PublicationRef

	// mu guards the fields below. stream is nil after the end.
	mu      sync.Mutex
	stream  *voice.Stream
	playout voice.Playout
}

// Listen decodes the sound of a publication, which may begin later, until Listener.End.
func (g *Guest) Listen(ref volumetric.PublicationRef) (*Listener, error) {
	if ref.Participant == "" || ref.Publication == "" {
		return nil, fmt.Errorf("%w: participant %q and publication %q, expected a name of each", ErrArgument,
			ref.Participant, ref.Publication)
	}
	g.hearing.Lock()
	defer g.hearing.Unlock()
	switch {
	case g.listeners[ref] != nil:
		return nil, fmt.Errorf("%w: %v has a listener, expected one for each publication", ErrArgument, ref)
	case len(g.listeners) >= maxListeners:
		return nil, fmt.Errorf("%w: %d listeners", ErrTooMuchHeld, maxListeners)
	}
	stream, err := voice.NewStream()
	if err != nil {
		return nil, err
	}
	l := &Listener{guest: g, ref: ref, stream: stream}
	g.listeners[ref] = l
	return l, nil
}

// End ends the decoding.
func (l *Listener) End() {
	l.guest.hearing.Lock()
	defer l.guest.hearing.Unlock()
	if l.guest.listeners[l.ref] == l {
		delete(l.guest.listeners, l.ref)
	}
	l.free()
}

// free frees the decoder.
func (l *Listener) free() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stream != nil {
		l.stream.Close()
		l.stream = nil
	}
}

// Read fills dst with the samples to play next, and with silence after the last of them. heard is the number of samples
// before the silence. Read does not wait. The error is the reason for the end of the session.
func (l *Listener) Read(dst []float32) (heard int, err error) {
	heard = l.play(dst, time.Now())
	if l.guest.session.Err() != nil {
		err = l.guest.ended()
	}
	return heard, err
}

// play decodes the packets that are due and reads from the playout.
func (l *Listener) play(dst []float32, now time.Time) (heard int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.decode(now)
	return l.playout.Read(dst)
}

// push adds a packet.
func (l *Listener) push(p *client.Packet, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stream == nil {
		return
	}
	l.stream.Push(voice.Packet{Sequence: p.SequenceNumber, Timestamp: p.Timestamp, Payload: p.Payload,
		Capture: p.Capture, Arrival: now})
	l.decode(now)
}

// decode moves samples to the playout. The caller holds mu.
func (l *Listener) decode(now time.Time) {
	for l.stream != nil {
		sound, ok := l.stream.Next(now)
		if !ok {
			return
		}
		l.playout.Write(sound.Samples)
	}
}

// takePackets passes packets of sound to their listeners.
func (g *Guest) takePackets() {
	for p := range g.session.Packets() {
		g.hearing.Lock()
		l := g.listeners[p.Track.PublicationRef]
		g.hearing.Unlock()
		if l == nil || !p.Codec.Is(volumetric.MIMEOpus) {
			g.ignored.Add(1)
			continue
		}
		l.push(&p, time.Now())
	}
}
