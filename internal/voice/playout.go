package voice

import "github.com/volsfu/volsfu/internal/voice/libopus"

const (
	// leastHeld and mostHeld are the limits of the samples that wait before playing begins: two packets of 20 ms, and
	// the delay of arrival that a Playout adapts to.
	leastHeld, mostHeld = 2 * libopus.FrameSamples, 10 * libopus.FrameSamples
	// heldStep is the change of these samples after a gap, and after calm samples without one.
	heldStep, calm = libopus.FrameSamples, 10 * libopus.Rate
	// room is the number of samples that a Playout holds. Beyond it, the oldest samples are dropped.
	room = libopus.Rate / 2
	// slack is the surplus over the waiting samples that is played before samples are dropped: the clocks of publisher
	// and sound card differ, and packets arrive in bursts.
	slack = 4 * libopus.FrameSamples
)

// Playout holds decoded samples between the arrival of packets and a sound card that reads at a constant rate. Playing
// begins with leastHeld samples. After each gap, the Playout waits for more samples, so that the next late packet
// causes no gap.
type Playout struct {
	samples []float32
	// held is the number of samples with which playing begins, playing is set since then.
	held    int
	playing bool
	// smooth is the number of samples read since the last gap or change of held. surplus is the lowest number of
	// samples that remained after a read since then.
	smooth, surplus int
}

// Write adds samples.
func (p *Playout) Write(samples []float32) {
	if over := len(p.samples) + len(samples) - room; over > 0 {
		p.drop(min(over, len(p.samples)))
		samples = samples[max(0, len(samples)-room):]
	}
	p.samples = append(p.samples, samples...)
}

// drop removes the oldest samples.
func (p *Playout) drop(n int) { p.samples = append(p.samples[:0], p.samples[n:]...) }

// Read fills dst with the next samples, and with silence after the last of them. Read returns the number of samples
// before the silence.
func (p *Playout) Read(dst []float32) int {
	p.held = max(p.held, leastHeld)
	if !p.playing && len(p.samples) >= p.held {
		p.playing, p.smooth, p.surplus = true, 0, room
	}
	n := 0
	if p.playing {
		n = copy(dst, p.samples)
		p.drop(n)
		p.adapt(n, n < len(dst))
	}
	clear(dst[n:])
	return n
}

// adapt changes the number of held samples after a read.
func (p *Playout) adapt(read int, gap bool) {
	p.smooth += read
	p.surplus = min(p.surplus, len(p.samples))
	switch {
	case gap:
		p.playing, p.held = false, min(p.held+heldStep, mostHeld)
	case p.smooth >= calm:
		p.held = max(p.held-heldStep, leastHeld)
		if p.surplus > p.held+slack {
			p.drop(p.surplus - p.held)
		}
		p.smooth, p.surplus = 0, room
	}
}
