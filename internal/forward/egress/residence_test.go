package egress

import (
	"testing"
	"time"

	"github.com/pion/rtp"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// timedPeer and timedOutlet advance the clock by the times of sealing and sending.
type timedPeer struct {
	*fakePeer
	rig *rig
	// oldest is the time at which the first of the queued packets was queued. waited is the longest time of a packet
	// from queueing until it had been sent.
	oldest time.Time
	waited time.Duration
	count  int
	// spoke is set while audio is queued. spokenAt is the time at which the audio had been sent.
	spoke    bool
	spokenAt time.Time
}

func (p *timedPeer) Post(batch Batch) {
	p.rig.now = p.rig.now.Add(time.Duration(p.count) * sendTime(p.count))
	if p.count > 0 {
		p.waited = max(p.waited, p.rig.now.Sub(p.oldest))
	}
	if p.spoke {
		p.spokenAt = p.rig.now
	}
	p.count, p.spoke = 0, false
	p.fakePeer.Post(batch)
}

// sendTime returns the time per packet in a run of that length, by the table at runPackets.
func sendTime(packets int) time.Duration {
	switch {
	case packets < 5:
		return 4500 * time.Nanosecond
	case packets < 10:
		return 1600 * time.Nanosecond
	case packets < 16:
		return time.Microsecond
	case packets < runPackets:
		return 750 * time.Nanosecond
	}
	return 550 * time.Nanosecond
}

type timedOutlet struct {
	*fakeOutlet
	peer *timedPeer
	// queued is called after each packet.
	queued func()
}

func (o *timedOutlet) Queue(h *rtp.Header, payload []byte) error {
	if o.peer.count == 0 {
		o.peer.oldest = o.peer.rig.now
	}
	o.peer.count++
	o.peer.spoke = o.peer.spoke || h.PayloadType == fakeTypes[volumetric.MIMEOpus][0]
	o.peer.rig.now = o.peer.rig.now.Add(350 * time.Nanosecond)
	err := o.fakeOutlet.Queue(h, payload)
	o.queued()
	return err
}

// timed adds timed receivers, each with a slot for video and one for audio.
func (r *rig) timed(n int, video, audio *publisher, queued func()) []*timedPeer {
	var peers []*timedPeer
	for k := range n {
		p := &timedPeer{fakePeer: &fakePeer{}, rig: r}
		receiver := r.engine.NewReceiver(p, time.Hour)
		for track, kind := range map[*publisher]volumetric.Kind{video: volumetric.KindVideo,
			audio: volumetric.KindAudio} {
			outlet := newFakeOutlet(p.fakePeer, uint32(1000*(k+1))+track.SSRC)
			receiver.AddSlot(&timedOutlet{outlet, p, queued}, kind).Select(track.track, uint64(track.SSRC), r.now)
		}
		peers = append(peers, p)
	}
	r.run()
	return peers
}

// TestNothingWaitsForLong gives a writer with 50 receivers more work than it can do at once, and audio meanwhile.
func TestNothingWaitsForLong(t *testing.T) {
	r := newRig(t, nil)
	i := r.ingress(&fakePeer{})
	video, audio := r.publish(i, 10, volumetric.MIMEVolumetric), r.publish(i, 20, volumetric.MIMEOpus)
	queued := 0
	var spoken time.Time
	peers := r.timed(50, video, audio, func() {
		if queued++; queued == 1000 {
			spoken = r.now
			audio.Send(r.now, audio.Packet([]byte("opus"), false))
		}
	})
	video.Next()
	begun := r.now
	video.Send(r.now, video.Packets(200*1144)...)
	r.run()
	if took := r.now.Sub(begun); queued != 50*201 || took > 50*201*(350+1600)*time.Nanosecond {
		t.Errorf("%d packets took %v: they left in short runs", queued, took)
	}
	for n, p := range peers {
		// A receiver gets its part of a burst at once: at most 43 packets, sealed and sent.
		if p.waited > runPackets*(350+750)*time.Nanosecond {
			t.Errorf("a packet waited %v to be sent to receiver %d, expected no longer than its run takes", p.waited, n)
		}
		if len(p.queued) > 0 {
			t.Errorf("%d packets for receiver %d are not sent", len(p.queued), n)
		}
	}
	if sent := r.engine.Stats().Sent.Audio.Packets; sent != 50 {
		t.Fatalf("%d packets of audio were sent, expected 50", sent)
	}
	for n, p := range peers {
		if waited := p.spokenAt.Sub(spoken); waited > time.Millisecond {
			t.Errorf("audio left to receiver %d after %v, expected at most 1 ms", n, waited)
		}
	}
}

// TestResidence simulates the load of the targets, 10 receivers of 50 Mbit/s in ticks of 16 packets, at the measured
// costs of sealing and sending. The median residence is at most 200 µs, and the 99th percentile at most 1 ms. Receivers
// are served one after the other, so the mean is half of the time for all receivers.
func TestResidence(t *testing.T) {
	r := newRig(t, nil)
	i := r.ingress(&fakePeer{})
	video, audio := r.publish(i, 10, volumetric.MIMEVolumetric), r.publish(i, 20, volumetric.MIMEOpus)
	r.timed(10, video, audio, func() {})
	start := r.now
	for tick := range 300 {
		// 16 packets of 1,188 bytes every 3.04 ms are 50 Mbit/s.
		r.now = start.Add(time.Duration(tick+1) * 3040 * time.Microsecond)
		video.Next()
		video.Send(r.now, video.Packets(16*1144)...)
		r.run()
	}
	h := r.engine.Stats().Residence
	below := func(limit time.Duration) (n uint64) {
		for k, bound := range h.Bounds() {
			if bound <= limit {
				n += h.Counts[k]
			}
		}
		return n
	}
	mean := h.Sum / time.Duration(h.Count())
	if h.Count() != 48000 || mean > 110*time.Microsecond || below(time.Millisecond) < 47520 {
		t.Errorf("%d packets stayed for %v on average, %d for at most 1 ms, expected 48,000, 110 µs, 47,520", h.Count(),
			mean, below(time.Millisecond))
	}
}
