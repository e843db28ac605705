package export

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/peer"
	"github.com/volsfu/volsfu/internal/peer/opus"
	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/e2ee"
	"github.com/volsfu/volsfu/pkg/payload"
	"github.com/volsfu/volsfu/pkg/pointcloud"
	"github.com/volsfu/volsfu/pkg/recording"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// passphrase is that of the encrypted recording.
const passphrase = "correct horse battery staple"

// spoken writes a recording of two seconds: a body, and a voice from 0.5 s on, without the packets 10 to 19, and with a
// jump of its timestamps at packet 30. With a sealer, both are encrypted.
func spoken(t *testing.T, sealer *e2ee.Sealer) string {
	t.Helper()
	start := time.Now().UTC()
	at := func(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }
	seal := func(about e2ee.Subject, data []byte) []byte {
		if sealer == nil {
			return data
		}
		sealed, err := sealer.Seal(nil, about, data)
		if err != nil {
			t.Fatal(err)
		}
		return sealed
	}
	box := volumetric.BoundingBox{Min: [3]float32{-1, 0, -1}, Max: [3]float32{1, 2, 1}}
	body := volumetric.Publication{
		Name: "body", Kind: volumetric.KindVideo, Mode: volumetric.ModeAlternatives,
		Codec: volumetric.Codec{MIMEType: volumetric.MIMEVolumetric, ClockRate: 90000},
		Tiles: []volumetric.Tile{{Box: box}}, Qualities: make([]volumetric.QualityLevel, 1),
	}
	voice := opus.Publication("voice")
	if sealer != nil {
		body.Encryption, voice.Encryption = e2ee.Scheme, e2ee.Scheme
	}
	data := recording.Append(nil, &recording.Head{Room: "lab", Segment: 1, Begun: start})
	for n, d := range []volumetric.Publication{body, voice} {
		data = recording.Append(data, &recording.Publication{At: start, ID: uint32(n + 1), Participant: "ada",
			Qualities: recording.All, Description: d})
	}
	var cloud pointcloud.Cloud
	cloud.Append([3]float32{1, 1, 1}, [3]uint8{200, 10, 10})
	frame, err := codec.Raw.NewEncoder().Encode(nil, &cloud, codec.Params{Box: box, PositionBits: 10})
	if err != nil {
		t.Fatal(err)
	}
	for number := range uint32(20) {
		stamp := uint64(1)<<63 + uint64(number)
		about := e2ee.Subject{Publication: "body", Number: number,
			Prefix: payload.Prefix{FourCC: codec.Raw.FourCC(), Stamp: stamp}.AppendTo(nil)}
		data = recording.AppendFrame(data, &recording.Frame{At: at(100 * int(number)), Publication: 1, Number: number,
			Prefixed: true, Codec: codec.Raw.FourCC(), Capture: stamp, Data: seal(about, frame)})
	}
	for n, p := range opus.Tone().Packets[:50] {
		if n >= 10 && n < 20 {
			continue
		}
		timestamp := uint32(1<<32 - 4800 + 960*n)
		if n >= 30 {
			timestamp += 1 << 30
		}
		data = recording.AppendUnit(data, &recording.Unit{At: at(500 + 20*n), Publication: 2, Timestamp: timestamp,
			Payloads: [][]byte{seal(e2ee.Subject{Publication: "voice"}, p.Data)}})
	}
	path := filepath.Join(t.TempDir(), recording.SegmentName(1))
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// sealed returns a sealer with the secret of the passphrase.
func sealed(t *testing.T) *e2ee.Sealer {
	t.Helper()
	secret, err := e2ee.PassphraseSecret(passphrase, "lab")
	if err != nil {
		t.Fatal(err)
	}
	keys := new(e2ee.Keys)
	if err := keys.SetSecret(0, secret); err != nil {
		t.Fatal(err)
	}
	return e2ee.NewSealer(keys, "ada")
}

// checkOgg expects the 40 recorded packets, and silence in place of the missing ten.
func checkOgg(t *testing.T, dir string) {
	t.Helper()
	heard, err := opus.Open(filepath.Join(dir, "ada.voice.2.ogg"))
	if err != nil {
		t.Fatal(err)
	}
	silent, total := 0, time.Duration(0)
	for _, p := range heard.Packets {
		total += p.Duration
		if len(p.Data) == 1 {
			silent++
		}
	}
	if silent != 10 || total != time.Second {
		t.Errorf("%d silent packets of %d, %v, expected 10 and one second", silent, len(heard.Packets), total)
	}
}

func TestOgg(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "sound")
	c, err := run(t, spoken(t, nil), "--ogg", dir)
	if err != nil || c.Sounds != 40 {
		t.Fatalf("%+v, %v", c, err)
	}
	checkOgg(t, dir)
}

// TestEncrypted exports an encrypted recording with the passphrase, with a key file, and without keys.
func TestEncrypted(t *testing.T) {
	path := spoken(t, sealed(t))
	clouds, sound := t.TempDir(), t.TempDir()
	arguments := []string{path, "--ply", clouds, "--ogg", sound}
	if c, err := run(t, arguments...); err != nil || c.Captures != 0 || c.Sounds != 0 {
		t.Errorf("without keys: %+v, %v", c, err)
	}
	t.Setenv(peer.PassphraseVariable, "wrong")
	if c, err := run(t, arguments...); err != nil || c.Captures != 0 || c.Sounds != 0 || c.Undecodable != 60 {
		t.Errorf("with a wrong passphrase: %+v, %v", c, err)
	}
	t.Setenv(peer.PassphraseVariable, passphrase)
	if c, err := run(t, arguments...); err != nil || c.Captures != 20 || c.Sounds != 40 || c.Undecodable != 0 {
		t.Errorf("with the passphrase: %+v, %v", c, err)
	}
	checkOgg(t, sound)
	if c, err := run(t, spoken(t, nil), "--ply", clouds); err != nil || c.Captures != 0 {
		t.Errorf("a recording without encryption, with keys: %+v, %v", c, err)
	}

	t.Setenv(peer.PassphraseVariable, "")
	file := filepath.Join(t.TempDir(), "room.keys")
	if err := os.WriteFile(file, []byte("3:"+strings.Repeat("ab", 32)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	keys, err := (&peer.Room{KeyFile: file}).RecordedKeys("lab")
	if err != nil {
		t.Fatal(err)
	}
	path = spoken(t, e2ee.NewSealer(keys, "ada"))
	if c, err := run(t, path, "--ply", clouds, "--e2ee-key-file", file); err != nil || c.Captures != 20 {
		t.Errorf("with the key file: %+v, %v", c, err)
	}
}

// TestFilmHasSound reads the sound of a film: silence for half a second, then the tone.
func TestFilmHasSound(t *testing.T) {
	ffmpeg, err := exec.LookPath("ffmpeg")
	if err != nil {
		t.Skip("skipped: there is no ffmpeg (make deps)")
	}
	film := filepath.Join(t.TempDir(), "lab.mp4")
	if c, err := run(t, spoken(t, nil), "--mp4", film, "--fps", "10"); err != nil || c.Pictures == 0 || c.Sounds != 40 {
		t.Fatalf("%+v, %v", c, err)
	}
	entries, err := os.ReadDir(filepath.Dir(film))
	if err != nil || len(entries) != 1 {
		t.Errorf("the folder has %v, %v, expected the film only", entries, err)
	}
	sound, err := exec.Command(ffmpeg, "-loglevel", "error", "-i", film, "-f", "u8", "-ac", "1", "-ar", "8000",
		"-").Output()
	if err != nil {
		t.Fatal(err)
	}
	loud := func(from, to float64) (n int) {
		for _, sample := range sound[int(from*8000):min(int(to*8000), len(sound))] {
			if sample < 118 || sample > 138 {
				n++
			}
		}
		return n
	}
	if len(sound) < 10_000 || loud(0, 0.4) > 0 || loud(0.55, 0.65) == 0 || loud(1, 1.4) == 0 {
		t.Errorf("%d samples, loud %d, %d, %d", len(sound), loud(0, 0.4), loud(0.55, 0.65), loud(1, 1.4))
	}
}
