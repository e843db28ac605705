package client

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/transport"
	"github.com/volsfu/volsfu/pkg/e2ee"
	"github.com/volsfu/volsfu/pkg/payload"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// encrypted is a sender and a receiver without a server between them.
type encrypted struct {
	t         *testing.T
	sender    *rig
	publisher *Publisher
	wires     []*wire
	receiver  *rig
	slot      *incoming
	number    uint32
}

// newEncrypted returns a sender ada with one set of keys and a receiver with another one, either of which may be nil.
func newEncrypted(t *testing.T, sending, receiving *e2ee.Keys, description volumetric.Publication) *encrypted {
	t.Helper()
	sender, receiver := newRig(t, Config{Keys: sending}), newRig(t, Config{Keys: receiving})
	description, err := sender.session.config.mark(description)
	if err != nil {
		t.Fatal(err)
	}
	if sending != nil {
		sender.session.publishers.sealer = e2ee.NewSealer(sending, "ada")
	}
	e := &encrypted{t: t, sender: sender, receiver: receiver}
	e.publisher, e.wires = published(t, sender, description)
	e.slot = newIncoming(t, receiver, "7", description.Kind, 9000)
	e.assign(1, description)
	return e
}

// assign assigns the receiver's slot to the sender's tile 0.
func (e *encrypted) assign(generation uint32, p volumetric.Publication) {
	track := volumetric.TileRef{PublicationRef: volumetric.PublicationRef{Participant: "ada", Publication: p.Name}}
	e.receiver.assign(signal.Assignment{MID: "7", Generation: generation, Track: &track}, &p)
}

// write sends a frame of tile 0, and returns its RTP payloads.
func (e *encrypted) write(data string) [][]byte {
	e.t.Helper()
	e.number++
	f := OutgoingFrame{Number: e.number, Capture: time.Now(), Codec: volumetric.FourCC{'d', 'r', 'c', 'o'},
		Data: []byte(data)}
	if taken, err := e.publisher.WriteFrame(0, 0, f); !taken || err != nil {
		e.t.Fatalf("frame %d: %v, %v", e.number, taken, err)
	}
	return e.sent()
}

// sent returns the RTP payloads of tile 0 that have not been returned before.
func (e *encrypted) sent() (bodies [][]byte) {
	flush(e.sender, time.Now().Add(time.Second))
	for _, packet := range e.wires[0].sent {
		bodies = append(bodies, packet.Payload)
	}
	e.wires[0].sent = nil
	return bodies
}

// deliver hands RTP payloads to the receiver.
func (e *encrypted) deliver(bodies [][]byte) {
	for _, body := range bodies {
		e.slot.deliver(e.slot.next, 3000*e.number, body, time.Now())
		e.slot.next++
	}
}

// refusal returns the error of the next event Refused, nil if there is none.
func (e *encrypted) refusal() error {
	for {
		select {
		case event := <-e.receiver.session.events:
			if refused, ok := event.(Refused); ok {
				return refused.Err
			}
		default:
			return nil
		}
	}
}

func keysWith(t *testing.T, epoch e2ee.Epoch, fill byte) *e2ee.Keys {
	t.Helper()
	keys := new(e2ee.Keys)
	if err := keys.SetSecret(epoch, bytes.Repeat([]byte{fill}, 32)); err != nil {
		t.Fatal(err)
	}
	return keys
}

// plaintext is longer than a packet.
var plaintext = string(bytes.Repeat([]byte("points of alice "), 200))

func TestFramesAreEncrypted(t *testing.T) {
	keys := keysWith(t, 0, 1)
	body := described("body", volumetric.MIMEVolumetric, 1, 1)
	e := newEncrypted(t, keys, keys, body)
	if got := e.publisher.Publication().Encryption; got != e2ee.Scheme {
		t.Errorf("the publication's encryption is %q, expected %q", got, e2ee.Scheme)
	}
	bodies := e.write(plaintext)
	whole := bytes.Join(bodies, nil)
	if bytes.Contains(whole, []byte("points of")) || bytes.Contains(whole, []byte("alice")) {
		t.Error("the packets have parts of the plaintext")
	}
	var d payload.Descriptor
	var prefix payload.Prefix
	if data, err := d.Unmarshal(bodies[0]); err != nil || d.Frame != 1 || !d.Prefixed {
		t.Errorf("descriptor %+v, %v", d, err)
	} else if _, err := prefix.Unmarshal(data); err != nil || prefix.FourCC != [4]byte{'d', 'r', 'c', 'o'} {
		t.Errorf("prefix %+v, %v", prefix, err)
	}
	e.deliver(bodies)
	frame := <-e.receiver.frames
	if string(frame.Data) != plaintext || frame.Number != 1 || frame.Codec.String() != "drco" ||
		frame.Track.Participant != "ada" {
		t.Errorf("got %d bytes, number %d, codec %v of %v", len(frame.Data), frame.Number, frame.Codec, frame.Track)
	}
	e.deliver(e.write(""))
	if frame := <-e.receiver.frames; len(frame.Data) != 0 || frame.Number != 2 {
		t.Errorf("a tile without points: got %d bytes, number %d", len(frame.Data), frame.Number)
	}
	if got := e.receiver.session.Encryption(); got != (EncryptionStats{Opened: 2}) {
		t.Errorf("counts are %+v", got)
	}
}

func TestAudioIsEncrypted(t *testing.T) {
	keys := keysWith(t, 0, 1)
	e := newEncrypted(t, keys, keys, described("voice", volumetric.MIMEOpus, 1, 1))
	speech := []byte("twenty milliseconds of speech")
	given := bytes.Clone(speech)
	if _, err := e.publisher.WritePackets(0, 0, time.Now(), [][]byte{given}); err != nil {
		t.Fatal(err)
	}
	bodies := e.sent()
	if len(bodies) != 1 || bytes.Contains(bodies[0], speech[:8]) || !bytes.Equal(given, speech) {
		t.Fatalf("sent %q of %q", bodies, given)
	}
	e.deliver(bodies)
	if packet := <-e.receiver.packets; !bytes.Equal(packet.Payload, speech) {
		t.Errorf("got %q", packet.Payload)
	}
	bodies[0][len(bodies[0])-1] ^= 1
	e.deliver(bodies)
	if err := e.refusal(); !errors.Is(err, e2ee.ErrReplay) {
		t.Errorf("the packet again: %v, expected ErrReplay", err)
	}
	if n := len(e.receiver.packets); n != 0 {
		t.Errorf("%d packets were delivered", n)
	}
}

// TestRefusedFrames delivers frames that a receiver must refuse. Each is counted once and reported once.
func TestRefusedFrames(t *testing.T) {
	body := described("body", volumetric.MIMEVolumetric, 1, 1)
	alter := func(bodies [][]byte) [][]byte {
		last := bodies[len(bodies)-1]
		last[len(last)-1] ^= 1
		return bodies
	}
	same := func(bodies [][]byte) [][]byte { return bodies }
	for _, test := range []struct {
		name               string
		sending, receiving *e2ee.Keys
		change             func([][]byte) [][]byte
		want               error
		refused            e2ee.Refusals
	}{
		{"wrong key", keysWith(t, 0, 1), keysWith(t, 0, 2), same, e2ee.ErrWrongKey, e2ee.Refusals{WrongKey: 2}},
		{"unknown epoch", keysWith(t, 1, 1), keysWith(t, 0, 1), same, e2ee.ErrUnknownEpoch,
			e2ee.Refusals{UnknownEpoch: 2}},
		{"no keys", keysWith(t, 0, 1), nil, same, e2ee.ErrNoKey, e2ee.Refusals{NoKey: 2}},
		{"no secret", keysWith(t, 0, 1), new(e2ee.Keys), same, e2ee.ErrNoKey, e2ee.Refusals{NoKey: 2}},
		{"not encrypted", nil, keysWith(t, 0, 1), same, e2ee.ErrNotEncrypted, e2ee.Refusals{NotEncrypted: 2}},
		{"altered", keysWith(t, 0, 1), keysWith(t, 0, 1), alter, e2ee.ErrAltered, e2ee.Refusals{Altered: 2}},
	} {
		t.Run(test.name, func(t *testing.T) {
			e := newEncrypted(t, test.sending, test.receiving, body)
			if errors.Is(test.want, e2ee.ErrAltered) {
				e.deliver(e.write(plaintext)) // An authentic frame, so that the key is known to be right.
				<-e.receiver.frames
			}
			for range 2 {
				e.deliver(test.change(e.write(plaintext)))
			}
			if err := e.refusal(); !errors.Is(err, test.want) {
				t.Errorf("error is %v, expected %v", err, test.want)
			}
			if err := e.refusal(); err != nil {
				t.Errorf("a second event: %v", err)
			}
			if got := e.receiver.session.Encryption().Refused; got != test.refused {
				t.Errorf("counts are %+v, expected %+v", got, test.refused)
			}
			counts := statsOf(t, e.receiver, "ada", 0).FrameCounts
			if counts.Refused != 2 || counts.Expected != counts.Complete+counts.Refused {
				t.Errorf("frames are counted as %+v", counts)
			}
			if n := len(e.receiver.frames); n != 0 {
				t.Errorf("%d frames were delivered", n)
			}
		})
	}
}

// TestReplayedFrames lets the server send a recorded frame again in another assignment, so late that its number is not
// known.
func TestReplayedFrames(t *testing.T) {
	keys := keysWith(t, 0, 1)
	body := described("body", volumetric.MIMEVolumetric, 1, 1)
	e := newEncrypted(t, keys, keys, body)
	recorded := e.write(plaintext)
	e.deliver(recorded)
	<-e.receiver.frames
	e.number += 100
	e.deliver(e.write("tile"))
	<-e.receiver.frames
	e.assign(2, e.publisher.Publication())
	e.deliver(recorded)
	if err := e.refusal(); !errors.Is(err, e2ee.ErrReplay) {
		t.Errorf("error is %v, expected ErrReplay", err)
	}
	if n := len(e.receiver.frames); n != 0 {
		t.Errorf("%d frames were delivered", n)
	}
}

// TestTheNewestFrameInAnotherAssignment is no attack: a slot begins with that frame. If the frame was refused, and the
// key has arrived since, the frame is delivered.
func TestTheNewestFrameInAnotherAssignment(t *testing.T) {
	body := described("body", volumetric.MIMEVolumetric, 1, 1)
	receiving := new(e2ee.Keys)
	e := newEncrypted(t, keysWith(t, 0, 1), receiving, body)
	recorded := e.write(plaintext)
	e.deliver(recorded)
	if err := e.refusal(); !errors.Is(err, e2ee.ErrNoKey) {
		t.Fatalf("error is %v, expected ErrNoKey", err)
	}
	if err := receiving.SetSecret(0, bytes.Repeat([]byte{1}, 32)); err != nil {
		t.Fatal(err)
	}
	for generation := range uint32(2) {
		e.assign(generation+2, e.publisher.Publication())
		e.deliver(recorded)
		if err := e.refusal(); err != nil {
			t.Errorf("assignment %d: the frame is refused: %v", generation+2, err)
		}
	}
	if frames := taken(e.receiver); len(frames) != 1 || string(frames[0].Data) != plaintext {
		t.Errorf("%d frames were delivered, expected one", len(frames))
	}
}

// TestOtherFramesInPlace lets the server pass off a frame as one of another publication.
func TestOtherFramesInPlace(t *testing.T) {
	keys := keysWith(t, 0, 1)
	e := newEncrypted(t, keys, keys, described("body", volumetric.MIMEVolumetric, 1, 1))
	e.deliver(e.write(plaintext))
	<-e.receiver.frames
	head := e.publisher.Publication()
	head.Name = "head"
	e.assign(2, head)
	e.deliver(e.write(plaintext))
	if err := e.refusal(); !errors.Is(err, e2ee.ErrAltered) {
		t.Errorf("error is %v, expected ErrAltered", err)
	}
}

// TestParityCoversTheCiphertext loses a packet of an encrypted frame with parity.
func TestParityCoversTheCiphertext(t *testing.T) {
	keys := keysWith(t, 0, 1)
	e := newEncrypted(t, keys, keys, described("body", volumetric.MIMEVolumetric, 1, 1))
	e.publisher.present.sent.SetParity(0.25)
	e.deliver(e.write(plaintext)[1:])
	if frame := <-e.receiver.frames; string(frame.Data) != plaintext {
		t.Errorf("got %d bytes", len(frame.Data))
	}
}

func TestFramesOfOtherSchemesPassUnchanged(t *testing.T) {
	body := described("body", volumetric.MIMEVolumetric, 1, 1)
	body.Encryption = e2ee.Scheme
	e := newEncrypted(t, nil, nil, body)
	bodies := e.write("encrypted before")
	if !bytes.Contains(bodies[0], []byte("encrypted before")) {
		t.Error("the data was changed")
	}
}

func TestConfigurationsOfEncryption(t *testing.T) {
	foreign := described("body", volumetric.MIMEVolumetric, 1, 1)
	foreign.Encryption = "mls"
	vr2gather := described("body", volumetric.MIMEVolumetric, 1, 1)
	vr2gather.VR2Gather = true
	for name, publication := range map[string]volumetric.Publication{
		"another scheme": foreign, "VR2Gather": vr2gather, "H264": described("film", volumetric.MIMEH264, 1, 1),
	} {
		config := Config{URL: "ws://sfu.example.org", Keys: new(e2ee.Keys),
			Publications: []volumetric.Publication{publication}}
		if _, err := config.withDefaults(); !errors.Is(err, ErrConfig) {
			t.Errorf("%s: error is %v, expected ErrConfig", name, err)
		}
	}
	config, err := Config{URL: "ws://sfu.example.org", Passphrase: "correct horse"}.withDefaults()
	if err != nil || config.Keys == nil {
		t.Errorf("a passphrase: keys %v, %v", config.Keys, err)
	}
}

func TestNoKeyToSendWith(t *testing.T) {
	e := newEncrypted(t, new(e2ee.Keys), nil, described("body", volumetric.MIMEVolumetric, 1, 1))
	taken, err := e.publisher.WriteFrame(0, 0, OutgoingFrame{Number: 1, Capture: time.Now(), Data: []byte("tile")})
	if taken || !errors.Is(err, ErrKey) {
		t.Errorf("got %v, %v; expected ErrKey", taken, err)
	}
	if bodies := e.sent(); len(bodies) != 0 {
		t.Errorf("%d packets were sent", len(bodies))
	}
}

// FuzzEncryptedFrame delivers packets with arbitrary data of an encrypted publication. None results in a frame.
func FuzzEncryptedFrame(f *testing.F) {
	f.Add([]byte("tile!"), uint32(1))
	f.Add(bytes.Repeat([]byte{0xff}, 40), uint32(2))
	keys := new(e2ee.Keys)
	if err := keys.SetSecret(0, bytes.Repeat([]byte{1}, 32)); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte, number uint32) {
		m := newRig(t, Config{Keys: keys})
		body := described("body", volumetric.MIMEVolumetric, 1, 1)
		body.Encryption = e2ee.Scheme
		slot := newIncoming(t, m, "7", volumetric.KindVideo, 9000)
		track := volumetric.TileRef{PublicationRef: volumetric.PublicationRef{Participant: "ada", Publication: "body"}}
		m.assign(signal.Assignment{MID: "7", Generation: 1, Track: &track}, &body)
		var fragmenter payload.Fragmenter
		prefixed := append(payload.Prefix{}.AppendTo(nil), data...)
		if err := fragmenter.Begin(payload.Descriptor{Prefixed: true, Frame: number}, prefixed); err != nil {
			return
		}
		for i := range fragmenter.Packets() {
			packet, err := fragmenter.AppendPacket(nil, i)
			if err != nil {
				t.Fatal(err)
			}
			m.RTP(9000, marshal(t, 9000, slot.next+uint16(i), 1, packet), &transport.PacketInfo{At: time.Now()})
		}
		if n := len(m.frames); n != 0 {
			t.Fatalf("%d frames were delivered", n)
		}
		if got := m.session.Encryption().Refused; got.Total() != 1 {
			t.Errorf("counts are %+v", got)
		}
	})
}
