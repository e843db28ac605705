package fanout

import (
	"fmt"
	"time"

	"github.com/pion/webrtc/v4"
)

// publish forwards the tracks of a peer connection.
func (s *Server) publish(pc *webrtc.PeerConnection) error {
	pc.OnTrack(func(remote *webrtc.TrackRemote, receiver *webrtc.RTPReceiver) {
		local, err := webrtc.NewTrackLocalStaticRTP(remote.Codec().RTPCodecCapability,
			fmt.Sprintf("track-%d", remote.SSRC()), "fanout")
		if err != nil {
			return
		}
		t := &track{TrackLocalStaticRTP: local}
		s.begin(t, func() { s.forward(remote, t) }, func() { drain(receiver.Read) })
	})
	return nil
}

// begin adds a track and runs the functions that serve it, unless the server is closed.
func (s *Server) begin(t *track, serve ...func()) {
	if s.run(serve...) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.tracks = append(s.tracks, t)
	}
}

// run runs functions on goroutines that Close waits for, unless the server is closed.
func (s *Server) run(functions ...func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	for _, f := range functions {
		s.forwarding.Go(f)
	}
	return true
}

// packetBytes is more than the size of a packet on any path that carries WebRTC.
const packetBytes = 1500

// forward copies packets from a track to all its receivers, until the track ends.
func (s *Server) forward(remote *webrtc.TrackRemote, local *track) {
	packet := make([]byte, packetBytes)
	for {
		n, _, err := remote.Read(packet)
		if err != nil {
			return
		}
		at := time.Now()
		s.in.Add(1)
		if _, err := local.Write(packet[:n]); err == nil {
			s.out.Add(uint64(local.bound.Load()))
		}
		s.residence.Observe(time.Since(at).Seconds())
	}
}

// receive adds all present tracks to a peer connection.
func (s *Server) receive(pc *webrtc.PeerConnection) error {
	for _, t := range s.begun() {
		sender, err := pc.AddTrack(t)
		if err != nil {
			return err
		}
		s.run(func() { drain(sender.Read) })
	}
	return nil
}

// drain reads RTCP, because interceptors see only packets that are read.
func drain[A any](read func([]byte) (int, A, error)) {
	packet := make([]byte, packetBytes)
	for {
		if _, _, err := read(packet); err != nil {
			return
		}
	}
}
