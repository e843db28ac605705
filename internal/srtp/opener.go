package srtp

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/pion/rtcp"
	pion "github.com/pion/srtp/v3"
)

// Errors of opening. ErrReplayed, ErrAuthentication and ErrTooManyStreams are returned without wrapping, so that a
// flood of bad packets costs no memory.
var (
	// ErrReplayed is the error of a packet that was opened before, or that is older than the replay window.
	ErrReplayed = errors.New("packet was replayed")
	// ErrAuthentication is the error of a packet that the holder of the keys did not send, or that was modified.
	ErrAuthentication = errors.New("packet is not authentic")
	// ErrMalformed is the sentinel of data that is not an RTP or RTCP packet.
	ErrMalformed = errors.New("malformed packet")
	// ErrWindow is the sentinel of a replay window outside of MinWindow and MaxWindow.
	ErrWindow = errors.New("replay window out of range")
)

// The possible sizes of a replay window, in packets.
const (
	// MinWindow is the minimum of RFC 3711 section 3.3.2.
	MinWindow = 64
	// MaxWindow is half of the range of 16-bit sequence numbers.
	MaxWindow = 1 << 15
)

// srtcpEncrypted is the flag of an encrypted SRTCP packet, in the word with the index (RFC 3711 section 3.4).
const srtcpEncrypted = 1 << 31

// Opener opens the packets of the remote peer. An Opener is not safe for concurrent use, except that one goroutine may
// open RTP while another opens RTCP.
type Opener struct {
	profile Profile
	tagSize int

	transform transform
	opened    streams

	rtcp       *pion.Context
	openedRTCP streams
	rtcpHeader rtcp.Header // scratch memory for parsing
}

// NewOpener returns the opener of one side of a DTLS connection, client or server: it opens the packets of the other
// side. Replays are detected up to window packets behind the highest of the stream, inclusive; older packets are
// refused. Errors wrap ErrProfile, ErrKeys or ErrWindow.
func NewOpener(k Keys, client bool, window int) (*Opener, error) {
	if window < MinWindow || window > MaxWindow {
		return nil, fmt.Errorf("%w: %d packets, expected %d to %d", ErrWindow, window, MinWindow, MaxWindow)
	}
	key, salt, err := k.direction(!client)
	if err != nil {
		return nil, err
	}
	o := &Opener{
		profile: k.Profile, tagSize: k.Profile.tagSize(),
		opened: newStreams(window, maxStreams), openedRTCP: newStreams(window, maxStreams),
	}
	if o.transform, err = newTransform(k.Profile, key, salt); err != nil {
		return nil, err
	}
	if o.rtcp, err = newContext(k.Profile, key, salt); err != nil {
		return nil, err
	}
	return o, nil
}

// Open authenticates and decrypts an RTP packet in place, and returns the packet, padding included: the front of the
// same memory. After an error, the content of the packet is undefined. Errors are ErrReplayed, ErrAuthentication,
// ErrTooManyStreams or wrap ErrMalformed.
func (o *Opener) Open(packet []byte) ([]byte, error) {
	size := headerSize(packet)
	if size == 0 || len(packet) < size+o.tagSize {
		return nil, ErrMalformed
	}
	sequence, ssrc := binary.BigEndian.Uint16(packet[2:]), binary.BigEndian.Uint32(packet[8:])
	w, err := o.opened.find(ssrc)
	if err != nil {
		return nil, err
	}
	index := w.estimate(sequence)
	if !w.fresh(index) {
		return nil, ErrReplayed
	}
	out, err := o.transform.open(packet, size, ssrc, index)
	if err != nil {
		return nil, err
	}
	o.opened.accept(ssrc, w, index)
	return out, nil
}

// Repeats reports whether an RTP packet is a copy of a packet that was opened before and that is still in the replay
// window. Repeats authenticates the packet. The content of the packet behind its header is undefined afterwards.
func (o *Opener) Repeats(packet []byte) bool {
	size := headerSize(packet)
	if size == 0 || len(packet) < size+o.tagSize {
		return false
	}
	sequence, ssrc := binary.BigEndian.Uint16(packet[2:]), binary.BigEndian.Uint32(packet[8:])
	w, err := o.opened.find(ssrc)
	if err != nil || w == nil {
		return false
	}
	index := w.estimate(sequence)
	if w.fresh(index) || w.highest-index >= w.limit {
		return false
	}
	_, err = o.transform.open(packet, size, ssrc, index)
	return err == nil
}

// OpenRTCP authenticates and decrypts an RTCP packet, single or compound, in place, and returns the packet: the front
// of the same memory. After an error, the content of the packet is undefined. Errors are ErrReplayed,
// ErrAuthentication, ErrTooManyStreams or wrap ErrMalformed.
func (o *Opener) OpenRTCP(packet []byte) ([]byte, error) {
	if len(packet) < rtcpHeaderSize+srtcpTrailerSize+o.tagSize {
		return nil, ErrMalformed
	}
	// Under AES-GCM the tag belongs to the encrypted part, which the index follows (RFC 7714 section 9); otherwise the
	// tag is last.
	trailer := packet[len(packet)-srtcpTrailerSize:]
	if o.profile == AES128CMHMACSHA180 {
		trailer = packet[len(packet)-srtcpTrailerSize-o.tagSize:]
	}
	index, ssrc := uint64(binary.BigEndian.Uint32(trailer)&^srtcpEncrypted), binary.BigEndian.Uint32(packet[4:])
	w, err := o.openedRTCP.find(ssrc)
	if err != nil {
		return nil, err
	}
	if !w.fresh(index) {
		return nil, ErrReplayed
	}
	out, err := o.rtcp.DecryptRTCP(packet, packet, &o.rtcpHeader)
	if err != nil {
		return nil, openingError(err)
	}
	o.openedRTCP.accept(ssrc, w, index)
	return out, nil
}
