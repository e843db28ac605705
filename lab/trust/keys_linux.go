package trust

import (
	"bytes"
	"context"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha512"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/volsfu/volsfu/internal/peer/opus"
	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/e2ee"
	"github.com/volsfu/volsfu/pkg/payload"
	"github.com/volsfu/volsfu/pkg/sframe"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/claim"
)

const (
	sealedRoom = "sealed"
	// sealedTime is the time for which alice publishes before, and again after the rotation. memoryScans is the number
	// of scans of the server's memory in that time.
	sealedTime  = 10 * time.Second
	memoryScans = 5
	// sealedRate is the number of frames per second, sealedBytes their size.
	sealedRate  = 30
	sealedBytes = 20_000
	// sealedPatience bounds the time for connections, and for the last frames to arrive.
	sealedPatience = 15 * time.Second
	// wide is a rate above that of the room, in bit/s.
	wide = 1_000_000_000
)

// keys runs a room with end-to-end encryption in which frames are altered and replayed, participants have a wrong key
// or leave, and the memory of the server is searched for keys and plaintext.
func keys(ctx context.Context, b *bench) (lines []claim.Line, err error) {
	p, err := newPlace(b)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.remove()) }()
	running, err := lab.StartServer(ctx, p.server)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, running.Stop()) }()
	r := &sealed{url: running.URL(), secret: random(32), next: random(32), marker: random(48),
		recent: make(chan []byte, recentFrames)}
	file := filepath.Join(p.folder, "room.keys")
	if err := os.WriteFile(file, []byte("0:"+hex.EncodeToString(r.secret)+"\n"), 0o600); err != nil {
		return nil, err
	}
	bob, err := lab.StartProgram("volpeer publish", p.volpeer, nil, "publish", "--server", r.url, "--room", sealedRoom,
		"--identity", "bob", "--points", "2000", "--tiles", "1", "--codec", "raw", "--audio", "tone",
		"--e2ee-key-file", file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = bob.Stop() }()
	defer r.leave()
	if err := r.join(ctx); err != nil {
		return nil, err
	}
	long := sealedTime
	if b.short {
		long = sealedTime / 5
	}
	return r.measure(ctx, b, running.PID(), bob.PID(), long)
}

// sealed is a room with end-to-end encryption.
type sealed struct {
	url string
	// secret and next are the secrets of epochs 0 and 1. marker is in the plaintext of every frame.
	secret, next, marker []byte
	// alice publishes frames that the lab encrypts, so that it can alter and replay them.
	alice     *client.Session
	publisher *client.Publisher
	keys      *e2ee.Keys
	sealer    *e2ee.Sealer
	number    uint32
	// last is the ciphertext of the last authentic frame, written the number of frames of each kind.
	last    []byte
	written [kinds]int64
	// recent has a part of the first packets of the last authentic frames. The goroutine that scans reads it.
	recent chan []byte
	// carol has the secrets, the leaver that of epoch 0 alone, and mallory another one.
	carol, leaver, mallory *listener
}

// Kinds of frames.
const (
	genuine = iota
	altered
	replayed
	kinds
)

// listener is a participant that receives.
type listener struct {
	session *client.Session
	running sync.WaitGroup

	mu sync.Mutex
	// frames are the frames of alice that were delivered, spoilt those of them with other data than alice's.
	frames, spoilt int64
	// reasons are the errors of refused frames of alice.
	reasons []error
}

func random(size int) []byte {
	data := make([]byte, size)
	_, _ = rand.Read(data) // It never fails (crypto/rand).
	return data
}

// join joins all participants, and waits until their media flows.
func (r *sealed) join(ctx context.Context) (err error) {
	r.keys = new(e2ee.Keys)
	if err := r.keys.SetSecret(0, r.secret); err != nil {
		return err
	}
	r.sealer = e2ee.NewSealer(r.keys, "alice")
	body := volumetric.Publication{
		Name: "body", Kind: volumetric.KindVideo, Mode: volumetric.ModeAlternatives, FrameRate: sealedRate,
		Codec:     volumetric.Codec{MIMEType: volumetric.MIMEVolumetric, ClockRate: 90000},
		Tiles:     make([]volumetric.Tile, 1),
		Qualities: make([]volumetric.QualityLevel, 1), Encryption: e2ee.Scheme,
	}
	for _, participant := range []struct {
		name   string
		secret []byte
		to     **listener
	}{{"carol", r.secret, &r.carol}, {"leaver", r.secret, &r.leaver}, {"mallory", random(32), &r.mallory}} {
		if *participant.to, err = r.listen(ctx, participant.name, participant.secret); err != nil {
			return err
		}
	}
	// Without keys, the session sends frames as they are given.
	r.alice, err = client.Join(ctx, client.Config{URL: r.url, Room: sealedRoom, Identity: "alice",
		Publications: []volumetric.Publication{body}, MinUplink: wide, QueueBudget: time.Second})
	if err != nil {
		return err
	}
	r.publisher = r.alice.Publisher("body")
	// The first authentic frame that arrives makes the others begin.
	return within(ctx, "a frame of alice arrives", func() (bool, error) {
		err := r.write(genuine)
		return r.carol.delivered() > 0 && r.leaver.delivered() > 0 && len(r.mallory.refused()) > 0, err
	})
}

func (r *sealed) listen(ctx context.Context, name string, secret []byte) (*listener, error) {
	secrets := new(e2ee.Keys)
	if err := secrets.SetSecret(0, secret); err != nil {
		return nil, err
	}
	session, err := client.Join(ctx, client.Config{URL: r.url, Room: sealedRoom, Identity: name, Receive: true,
		Keys: secrets, Deadline: signal.MaxDeadline})
	if err != nil {
		return nil, err
	}
	// The link is this host: high load must not be mistaken for a narrow link.
	if err := session.SetLimits(ctx, 0, wide); err != nil {
		return nil, errors.Join(err, session.Close())
	}
	l := &listener{session: session}
	l.running.Go(func() {
		for f := range session.Frames() {
			if f.Track.Participant == "alice" {
				l.add(bytes.Equal(f.Data, r.plaintext(uint32(f.Number))))
			}
		}
	})
	l.running.Go(func() {
		for range session.Packets() {
		}
	})
	l.running.Go(func() {
		for event := range session.Events() {
			if e, ok := event.(client.Refused); ok && e.Track.Participant == "alice" {
				l.mu.Lock()
				l.reasons = append(l.reasons, e.Err)
				l.mu.Unlock()
			}
		}
	})
	return l, nil
}

func (l *listener) add(intact bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.frames++
	if !intact {
		l.spoilt++
	}
}

func (l *listener) delivered() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.frames
}

func (l *listener) refused() []error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]error(nil), l.reasons...)
}

// knows reports whether the participant was told of a reason.
func (l *listener) knows(reason error) int64 {
	for _, err := range l.refused() {
		if errors.Is(err, reason) {
			return 1
		}
	}
	return 0
}

// arrived returns the number of alice's frames that arrived, whether they were decrypted or not.
func (l *listener) arrived() int64 {
	for _, tile := range l.session.Stats() {
		if tile.Track.Participant == "alice" {
			return tile.Complete + tile.Refused
		}
	}
	return 0
}

// leave ends all sessions.
func (r *sealed) leave() {
	if r.alice != nil {
		_ = r.alice.Close()
	}
	for _, l := range []*listener{r.carol, r.leaver, r.mallory} {
		if l != nil {
			_ = l.session.Close()
			l.running.Wait()
		}
	}
}

// plaintext returns the data of a frame: the marker, again and again, and the number.
func (r *sealed) plaintext(number uint32) []byte {
	return binary.BigEndian.AppendUint32(bytes.Repeat(r.marker, sealedBytes/len(r.marker)), number)
}

// write writes a frame of a kind, encrypted as docs/encryption.md describes. Frames that no receiver takes yet do not
// count.
func (r *sealed) write(kind int) error {
	codec, capture := volumetric.FourCC{'t', 'e', 's', 't'}, time.Now()
	data := r.last
	if kind != replayed {
		prefix := payload.Prefix{FourCC: codec, Capture: r.alice.ServerTime(capture)}
		var err error
		about := e2ee.Subject{Publication: "body", Number: r.number, Prefix: prefix.AppendTo(nil)}
		data, err = r.sealer.Seal(nil, about, r.plaintext(r.number))
		if err != nil {
			return err
		}
	}
	if kind == altered {
		data[len(data)/2] ^= 1
	}
	taken, err := r.publisher.WriteFrame(0, 0, client.OutgoingFrame{Number: r.number, Capture: capture, Codec: codec,
		Data: data})
	switch {
	case errors.Is(err, client.ErrNotConnected):
		return nil
	case err != nil:
		return err
	case taken:
		r.written[kind]++
		r.number++
		if kind == genuine {
			r.last = data
			r.remember(data[64:128])
		}
	}
	return nil
}

// recentFrames is the number of frames whose ciphertext is searched for: half a second of frames.
const recentFrames = 8

// remember adds a text to the recent ones, in place of the oldest.
func (r *sealed) remember(text []byte) {
	for {
		select {
		case r.recent <- text:
			return
		default:
		}
		select {
		case <-r.recent:
		default:
		}
	}
}

// publish writes frames at their rate for a time: of four, two authentic ones, an altered one and a replayed one, or
// only authentic ones.
func (r *sealed) publish(ctx context.Context, long time.Duration, hostile bool) error {
	ticker := time.NewTicker(time.Second / sealedRate)
	defer ticker.Stop()
	order := [4]int{genuine, altered, genuine, replayed}
	if !hostile {
		order = [4]int{}
	}
	for i := range int(long.Seconds() * sealedRate) {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		if err := r.write(order[i%len(order)]); err != nil {
			return err
		}
	}
	return nil
}

// within repeats a condition every 33 ms until it holds.
func within(ctx context.Context, what string, condition func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, sealedPatience)
	defer cancel()
	for {
		if ok, err := condition(); ok || err != nil {
			return err
		}
		if err := lab.Pause(ctx, time.Second/sealedRate); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
	}
}

// measure publishes, scans and rotates. The counts begin after the frames of join.
func (r *sealed) measure(ctx context.Context, b *bench, server, bob int, long time.Duration) ([]claim.Line, error) {
	texts, err := r.texts()
	if err != nil {
		return nil, err
	}
	scans := make(chan scanned, 1)
	go func() { scans <- texts.scan(ctx, server, bob, long, r.recent) }()
	published := r.publish(ctx, long, true)
	memory := <-scans
	if err := errors.Join(published, memory.err); err != nil {
		return nil, err
	}
	if err := r.settle(ctx); err != nil {
		return nil, err
	}
	b.progress.Say("  %d frames written, %.0f MB of memory searched", r.written[genuine]+r.written[altered]+
		r.written[replayed], float64(memory.bytes)/1e6)
	refused := r.carol.session.Encryption().Refused
	lines := memory.lines()
	lines = append(lines,
		share("authentic frames delivered", r.carol.delivered(), r.written[genuine]),
		claim.Exactly("delivered frames with other data than the publisher's", r.carol.spoilt, "", 0),
		share("altered frames refused", int64(refused.Altered), r.written[altered]),
		share("replayed frames refused", int64(refused.Replay), r.written[replayed]),
		claim.Exactly("frames refused for other reasons", int64(refused.Total()-refused.Altered-refused.Replay), "", 0),
		claim.Exactly("frames delivered with a wrong key", r.mallory.delivered(), "", 0),
		claim.Exactly("errors that name a wrong key", r.mallory.knows(e2ee.ErrWrongKey), "", 1),
	)
	rotated, err := r.rotate(ctx, long)
	return append(lines, rotated...), err
}

// share returns a line with the share of written frames that were received as expected. A busy machine loses some.
func share(name string, received, written int64) claim.Line {
	return claim.AtLeast(name, 100*float64(received)/float64(written), "%", 99)
}

// settle waits until all written frames have arrived, or none for a second.
func (r *sealed) settle(ctx context.Context) error {
	all, last, since := r.written[genuine]+r.written[altered]+r.written[replayed], int64(0), time.Now()
	return within(ctx, "all frames arrive", func() (bool, error) {
		now := r.carol.arrived()
		if now != last {
			last, since = now, time.Now()
		}
		return now >= all || time.Since(since) > time.Second, nil
	})
}

// rotate changes to the next secret, which the leaver does not get, and publishes again.
func (r *sealed) rotate(ctx context.Context, long time.Duration) ([]claim.Line, error) {
	before, leaver := r.carol.delivered(), r.leaver.delivered()
	written := r.written[genuine]
	carol := r.carol.session.Keys()
	if err := errors.Join(r.keys.SetSecret(1, r.next), carol.SetSecret(1, r.next), r.keys.Use(1)); err != nil {
		return nil, err
	}
	if err := r.publish(ctx, long, false); err != nil {
		return nil, err
	}
	carol.Forget(0)
	if err := r.settle(ctx); err != nil {
		return nil, err
	}
	written = r.written[genuine] - written
	return []claim.Line{
		share("frames delivered after the rotation", r.carol.delivered()-before, written),
		claim.Stated("frames that the leaver decrypted before the rotation", float64(leaver), ""),
		claim.Exactly("frames that the leaver decrypted after the rotation", r.leaver.delivered()-leaver, "", 0),
		claim.Exactly("errors that name an unknown epoch", r.leaver.knows(e2ee.ErrUnknownEpoch), "", 1),
	}, nil
}

// scanned is the result of scans of memory.
type scanned struct {
	// server has the places of each text in the server's memory, control those in the memory of bob's process.
	server, control map[string]int64
	bytes           int64
	err             error
}

// Groups of texts.
const (
	keyText, plainText, cipherText = "keys", "plaintext", "ciphertext"
)

// lines returns the lines of the claim.
func (s scanned) lines() []claim.Line {
	return []claim.Line{
		claim.Exactly("secrets, base keys and frame keys in the server's memory", s.server[keyText], "places", 0),
		claim.Exactly("plaintext of frames and sound in the server's memory", s.server[plainText], "places", 0),
		claim.AtLeast("control: ciphertext in the server's memory", float64(s.server[cipherText]), "places", 1),
		claim.AtLeast("control: secrets in a publisher's memory", float64(s.control[keyText]), "places", 1),
		claim.AtLeast("control: plaintext of sound in a publisher's memory", float64(s.control[plainText]), "places",
			1),
		claim.Information("searched memory of the server", float64(s.bytes)/1e6, "MB"),
	}
}

// scan searches the memory of the server several times while alice publishes, and that of bob's process once. The
// server keeps the packets of a frame for about a second, so each scan searches for the ciphertext of recent frames.
func (t *searched) scan(ctx context.Context, server, bob int, long time.Duration, recent <-chan []byte) (s scanned) {
	s.server, s.control = make(map[string]int64), make(map[string]int64)
	for range memoryScans {
		if s.err = lab.Pause(ctx, long/(2*memoryScans)); s.err != nil {
			return s
		}
		for i := range len(recent) {
			t.add(cipherText, fmt.Sprint("recent frame ", i), <-recent)
		}
		n, err := t.search(server, s.server)
		if err != nil {
			return scanned{err: err}
		}
		s.bytes += n
	}
	_, s.err = t.search(bob, s.control)
	return s
}

// searched are the texts to search for, and their groups.
type searched struct {
	texts  map[string][]byte
	groups map[string]string
}

func (t *searched) add(group, name string, text []byte) {
	if t.texts == nil {
		t.texts, t.groups = make(map[string][]byte), make(map[string]string)
	}
	t.texts[name], t.groups[name] = text, group
}

// search adds the places of each group in the memory of a process.
func (t *searched) search(pid int, places map[string]int64) (read int64, err error) {
	found, read, err := scanMemory(pid, t.texts)
	for name, count := range found {
		places[t.groups[name]] += count
	}
	return read, err
}

// texts returns the keys that are derived as docs/encryption.md describes, and plaintext of frames and of the sound
// that bob publishes.
func (r *sealed) texts() (*searched, error) {
	s := &searched{}
	s.add(keyText, "secret", r.secret)
	s.add(keyText, "secret in the key file", []byte(hex.EncodeToString(r.secret)))
	for _, name := range []string{"alice", "bob"} {
		base, err := hkdf.Key(sha512.New, r.secret, nil, "volsfu sframe 1 base key\x00\x00\x00"+name, 32)
		if err != nil {
			return nil, err
		}
		s.add(keyText, "base key of "+name, base)
		if name != "alice" {
			continue
		}
		var header sframe.Header
		if _, err := header.Parse(r.last); err != nil {
			return nil, err
		}
		frame, err := frameKey(base, header.KID)
		if err != nil {
			return nil, err
		}
		s.add(keyText, "frame key of "+name, frame)
	}
	s.add(plainText, "frame", r.marker)
	var longest []byte
	for _, packet := range opus.Tone().Packets {
		if len(packet.Data) > len(longest) {
			longest = packet.Data
		}
	}
	s.add(plainText, "sound", longest)
	return s, nil
}

// frameKey derives the key of a key identifier (RFC 9605, section 4.4.2).
func frameKey(base []byte, kid uint64) ([]byte, error) {
	secret, err := hkdf.Extract(sha512.New, base, nil)
	if err != nil {
		return nil, err
	}
	label := binary.BigEndian.AppendUint64([]byte("SFrame 1.0 Secret key "), kid)
	return hkdf.Expand(sha512.New, secret, string(binary.BigEndian.AppendUint16(label, 5)), 32)
}
