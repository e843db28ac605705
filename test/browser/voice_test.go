package browser

import (
	"bytes"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/server"
	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/test/wait"
)

// TestVoice has a page with a recorded microphone speak: a page and a client of the SDK hear it, it is silent while the
// microphone is off, and the microphone is released.
func TestVoice(t *testing.T) {
	tools(t)
	recordSpeech(t)
	s := start(t, nil)
	v := begin(t, "voice.mjs", pageURL(s))
	v.expect("live", nil)
	l := listen(t, s)
	var heard struct{ Loudness float64 }
	v.expect("heard", &heard)
	loud := l.mean(t)
	v.goOn()
	var muted struct{ Button string }
	v.expect("muted", &muted)
	if muted.Button != "Unmute" {
		t.Errorf("the button shows %q", muted.Button)
	}
	t.Logf("heard at %.4f of full scale, by packets of %.0f bytes", heard.Loudness, loud)
	// The server forwards nothing of a muted publication. With the microphone on, a packet comes every 20 ms.
	wait.Until(t, "no sound arrives while the microphone is off", func() bool {
		before := l.packets.Load()
		time.Sleep(200 * time.Millisecond)
		return l.packets.Load() == before
	})
	v.goOn()
	v.expect("heard again", nil)
	var stopped struct{ Microphone string }
	v.expect("stopped", &stopped)
	if stopped.Microphone != "ended" {
		t.Errorf("the microphone is %q, expected to be given back", stopped.Microphone)
	}
	var closed struct{ Form, Focus string }
	v.expect("closed", &closed)
	if closed.Form != "setup" || closed.Focus != "stage" {
		t.Errorf("after Stop the keyboard is in the form %q, and %q once the panel is closed, expected setup and stage",
			closed.Form, closed.Focus)
	}
	v.expect("done", nil)
	wait.Until(t, "no sound of the page remains", func() bool {
		for _, p := range l.session.Participants() {
			if len(p.Publications) > 0 {
				return false
			}
		}
		return true
	})
}

// recordSpeech lets browsers of the test have a microphone that repeats a recording.
func recordSpeech(t *testing.T) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "speech.wav")
	if err := os.WriteFile(file, syllables(), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("CHROMIUM_ARGUMENTS", strings.Join([]string{
		os.Getenv("CHROMIUM_ARGUMENTS"), "--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream",
		"--use-file-for-fake-audio-capture=" + file,
	}, " "))
}

// listener counts the packets of sound of the speaking page.
type listener struct {
	session        *client.Session
	packets, bytes atomic.Int64
}

// listen lets a client join room "demo" that counts packets of sound.
func listen(t *testing.T, s *server.Server) *listener {
	t.Helper()
	session, err := client.Join(t.Context(), client.Config{URL: s.URL(), Room: "demo", Identity: "listener",
		Receive: true})
	if err != nil {
		t.Fatal(err)
	}
	l := &listener{session: session}
	done := make(chan struct{})
	go func() {
		defer close(done)
		frames, packets := session.Frames(), session.Packets()
		for frames != nil || packets != nil {
			select {
			case _, open := <-frames:
				if !open {
					frames = nil
				}
			case p, open := <-packets:
				switch {
				case !open:
					packets = nil
				case p.Track.Participant == "page" && p.Codec.MIMEType == "audio/opus":
					l.bytes.Add(int64(len(p.Payload)))
					l.packets.Add(1)
				}
			}
		}
	}()
	t.Cleanup(func() {
		_ = session.Close()
		<-done
	})
	return l
}

// mean returns the mean size of the next fifty packets, which are a second of sound.
func (l *listener) mean(t *testing.T) float64 {
	t.Helper()
	packets, bytes := l.packets.Load(), l.bytes.Load()
	wait.Until(t, "a second of sound has arrived", func() bool { return l.packets.Load() >= packets+50 })
	return float64(l.bytes.Load()-bytes) / float64(l.packets.Load()-packets)
}

// syllables returns three seconds of a speech-like signal as a WAV file of one channel: harmonics whose volume rises
// and falls four times a second. Browsers suppress continuous sound as noise.
func syllables() []byte {
	const rate, seconds, perSecond = 48_000, 3, 4
	samples := make([]int16, rate*seconds)
	for i := range samples {
		syllable, phase := math.Modf(float64(i) * perSecond / rate)
		// It is audible for two thirds of its time.
		swell := math.Sin(math.Pi * min(1, phase*1.5))
		pitch, sum := 110+15*math.Mod(syllable, 5), 0.0
		for harmonic := 1.0; harmonic*pitch < 4000; harmonic++ {
			sum += math.Sin(2*math.Pi*harmonic*pitch*float64(i)/rate) / harmonic
		}
		samples[i] = int16(0.3 * math.MaxInt16 * swell * swell * sum / 2)
	}
	var b bytes.Buffer
	size := uint32(2 * len(samples))
	for _, field := range []any{
		[]byte("RIFF"), 36 + size, []byte("WAVEfmt "), uint32(16), uint16(1), uint16(1), uint32(rate), uint32(2 * rate),
		uint16(2), uint16(16), []byte("data"), size, samples,
	} {
		if err := binary.Write(&b, binary.LittleEndian, field); err != nil {
			panic("a field of fixed size cannot be written: " + err.Error())
		}
	}
	return b.Bytes()
}
