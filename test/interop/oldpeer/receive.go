package oldpeer

import (
	"errors"
	"fmt"
	"io"

	"github.com/pion/rtp"
	"github.com/pion/webrtc/v4"
)

// How the original reads packets.
const (
	// bufferSize is that of the buffer into which every packet of a track is read. The buffer is never cleared.
	bufferSize = 1220
	// rtpHeader is the number of bytes skipped in every packet, regardless of the header.
	rtpHeader = 20
	// maxPayload is the largest payload of a publisher.
	maxPayload = videoHeader + videoData
)

// receive passes the packets of a track to the library until the track ends. receive runs on a separate goroutine.
func (p *Peer) receive(remote *webrtc.TrackRemote) {
	w := &inspector{video: remote.Kind() == webrtc.RTPCodecTypeVideo}
	if err := w.name(remote.ID(), remote.StreamID()); err != nil {
		p.note(err)
	}
	buffer := make([]byte, bufferSize)
	for {
		n, _, err := remote.Read(buffer)
		if errors.Is(err, io.ErrShortBuffer) {
			p.note(fmt.Errorf("%w: packet exceeds %d bytes", ErrPacket, bufferSize))
			continue
		}
		if err != nil {
			return
		}
		err = w.inspect(buffer, n)
		p.count(func(counts *Counts) { counts.SequenceGaps += w.takeGaps() })
		if err != nil {
			p.note(fmt.Errorf("track %s: %w", remote.ID(), err))
		}
		// The code below does not use the packet's length.
		if err := p.library.packet(w.video, buffer[rtpHeader:]); err != nil {
			p.note(err)
		}
	}
}

// inspector finds the reasons, not checked by the original, for which the original would read other data than was sent.
type inspector struct {
	video        bool
	client, tile uint32
	began        bool
	sequence     uint16
	gaps         int
}

// name checks the names of a track, video_CLIENT_TILE in stream TILE or audio_CLIENT in stream 99.
func (w *inspector) name(id, stream string) error {
	var want string
	if w.video {
		if _, err := fmt.Sscanf(id, "video_%d_%d", &w.client, &w.tile); err != nil {
			return fmt.Errorf("%w: %q, expected video_CLIENT_TILE", ErrTrackName, id)
		}
		id, want = id+" "+stream, fmt.Sprintf("video_%d_%d %d", w.client, w.tile, w.tile)
	} else {
		if _, err := fmt.Sscanf(id, "audio_%d", &w.client); err != nil {
			return fmt.Errorf("%w: %q, expected audio_CLIENT", ErrTrackName, id)
		}
		id, want = id+" "+stream, fmt.Sprintf("audio_%d %s", w.client, audioStream)
	}
	if id != want {
		return fmt.Errorf("%w: track and stream are %q, expected %q", ErrTrackName, id, want)
	}
	return nil
}

// inspect checks the packet of n bytes at the start of a buffer.
func (w *inspector) inspect(buffer []byte, n int) error {
	var header rtp.Header
	size, err := header.Unmarshal(buffer[:n])
	if err != nil {
		return fmt.Errorf("%w: %w", ErrHeader, err)
	}
	w.follow(header.SequenceNumber)
	own := audioHeader
	if w.video {
		own = videoHeader
	}
	payload := n - rtpHeader
	switch {
	case size != rtpHeader:
		return fmt.Errorf("%w: %d, with %d extensions and %d contributing sources", ErrHeader, size,
			len(header.Extensions), len(header.CSRC))
	case header.Padding || payload == 0:
		return fmt.Errorf("%w: %d bytes of payload and padding", ErrPadding, payload)
	case payload < own || payload > maxPayload:
		return fmt.Errorf("%w: %d bytes, expected %d to %d", ErrPacket, payload, own, maxPayload)
	}
	f := readFragment(w.video, buffer[rtpHeader:])
	switch {
	case int(f.length) != payload-own:
		return fmt.Errorf("%w: length is %d bytes, %d follow", ErrPacket, f.length, payload-own)
	case f.client != w.client || w.video && f.tile != w.tile:
		return fmt.Errorf("%w: packet from client %d, tile %d", ErrTrackName, f.client, f.tile)
	}
	return nil
}

// follow counts the sequence numbers missing before the given number. Late packets do not reduce the count.
func (w *inspector) follow(sequence uint16) {
	if step := sequence - w.sequence; w.began && step > 0 && step < 1<<15 {
		w.gaps += int(step) - 1
	} else if w.began {
		return
	}
	w.began, w.sequence = true, sequence
}

func (w *inspector) takeGaps() int {
	gaps := w.gaps
	w.gaps = 0
	return gaps
}
