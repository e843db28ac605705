package browser

import (
	"math/rand/v2"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	clientpeer "github.com/volsfu/volsfu/internal/peer"
	"github.com/volsfu/volsfu/internal/server"
	"github.com/volsfu/volsfu/test/claim"
	"github.com/volsfu/volsfu/test/long"
)

// counts are a page's counts of the frames of one participant.
type counts struct {
	Opened      int
	NoKey       int `json:"no_key"`
	WrongKey    int `json:"wrong_key"`
	Altered     int
	Replay      int
	Malformed   int
	UnknownKeys int `json:"unknown_epoch"`
}

// rejected is the number of frames that were not decrypted.
func (c counts) rejected() int {
	return c.NoKey + c.WrongKey + c.Altered + c.Replay + c.Malformed + c.UnknownKeys
}

// TestEncryptedRoom has pages with the same key see each other, over media lines and data channels. Pages with another
// key, the previous key or none receive nothing and show what to do.
func TestEncryptedRoom(t *testing.T) {
	long.Test(t)
	tools(t)
	s := start(t, nil)
	v := begin(t, "encrypted.mjs", pageURL(s))
	v.patience = 2 * patience
	var seen struct {
		Shown         float64
		Sign, Message string
		Counts        counts
		Decoded       int
		Failed        int
		Rejected      int
		Tiles         int
		Epochs        []int
	}
	v.expect("seen", &seen)
	if seen.Shown < 0.005 || seen.Sign != "Encrypted" || seen.Counts.Opened < 20 || seen.Counts.rejected() > 0 ||
		seen.Failed > 0 {
		t.Errorf("with the key: %+v", seen)
	}
	v.expect("seen over channels", &seen)
	if seen.Shown < 0.005 || seen.Counts.Opened < 20 || seen.Counts.rejected() > 0 {
		t.Errorf("over data channels: %+v", seen)
	}
	v.expect("attacked", &seen)
	if seen.Counts.Altered < 30 || seen.Counts.Replay < 10 || seen.Failed > 0 ||
		!strings.Contains(seen.Message, "rejected: ") || strings.Contains(seen.Message, "rejected: 0") {
		t.Errorf("with altered and repeated frames: %+v", seen)
	}
	v.expect("wrong key", &seen)
	if seen.Sign != "Wrong key" || seen.Decoded > 0 ||
		!strings.Contains(seen.Message, "this page has another key. Press the lock") {
		t.Errorf("with another key: %+v", seen)
	}
	v.expect("corrected", &seen)
	if seen.Sign != "Encrypted" || seen.Shown < 0.005 {
		t.Errorf("with the corrected key: %+v", seen)
	}
	v.expect("without a key", &seen)
	if seen.Sign != "Key needed" || seen.Decoded > 0 || seen.Failed > 0 ||
		!strings.Contains(seen.Message, "ada is encrypted. Press the lock") {
		t.Errorf("without a key: %+v", seen)
	}
	v.expect("unusable key", &seen)
	if !strings.Contains(seen.Message, "an even number of digits, 32 or more") {
		t.Errorf("of an unusable key the page says %q", seen.Message)
	}
	v.expect("key entered", &seen)
	if seen.Sign != "Encrypted" || seen.Shown < 0.005 {
		t.Errorf("after the key was entered: %+v", seen)
	}
	v.expect("not encrypted", &seen)
	if seen.Sign != "Not everybody" || seen.Tiles > 0 {
		t.Errorf("beside a page without a key: %+v", seen)
	}
	v.expect("rotated", &seen)
	if seen.Rejected > 0 || len(seen.Epochs) != 1 || seen.Epochs[0] != 1 || seen.Sign != "Encrypted" {
		t.Errorf("after the key was changed: %+v", seen)
	}
	v.expect("previous key", &seen)
	if seen.Decoded > 0 || seen.Sign != "Wrong key" {
		t.Errorf("with the previous key: %+v", seen)
	}
	v.expect("done", nil)
}

// TestEncryptedWithGo has a page and volpeer with the same passphrase see each other.
func TestEncryptedWithGo(t *testing.T) {
	long.Test(t)
	tools(t)
	t.Setenv(clientpeer.PassphraseVariable, "correct horse")
	// The page does not wait for the build.
	peer(t)
	s := start(t, nil)
	v := begin(t, "encrypted_go.mjs", pageURL(s))
	v.expect("live", nil)
	sum, clouds := volpeerWatches(t, s, "6", patiently...)
	checkFigure(t, sum, clouds)
	publish(t, s, "gopher", "--audio", "tone")
	v.goOn()
	var seen struct {
		Shown  float64
		Failed int
		Counts counts
		Kinds  []string
	}
	v.expect("seen", &seen)
	if seen.Shown < 0.005 || seen.Failed > 0 || seen.Counts.rejected() > 0 ||
		!slices.Equal(seen.Kinds, []string{"audio", "video"}) {
		t.Errorf("of a client in Go the page shows %+v", seen)
	}
	v.expect("done", nil)
}

// TestEncryptedVoice has a page speak in an encrypted room: only a page with the key hears the microphone.
func TestEncryptedVoice(t *testing.T) {
	tools(t)
	recordSpeech(t)
	v := begin(t, "encrypted_voice.mjs", pageURL(start(t, nil)))
	var heard struct {
		Loudness float64
		Counts   counts
	}
	v.expect("heard", &heard)
	if heard.Loudness < 1e-3 || heard.Counts.Opened == 0 || heard.Counts.rejected() > 0 {
		t.Errorf("with the key: %+v", heard)
	}
	for _, name := range []string{"wrong", "none"} {
		v.expect(name, &heard)
		if heard.Loudness > 1e-4 {
			t.Errorf("%s: %g of full scale", name, heard.Loudness)
		}
	}
	v.expect("done", nil)
}

// lossyConn is a UDP socket that loses packets in both directions.
type lossyConn struct {
	net.PacketConn
	share float64
}

func (c *lossyConn) WriteTo(b []byte, to net.Addr) (int, error) {
	if rand.Float64() < c.share {
		return len(b), nil
	}
	return c.PacketConn.WriteTo(b, to)
}

func (c *lossyConn) ReadFrom(b []byte) (int, net.Addr, error) {
	for {
		n, from, err := c.PacketConn.ReadFrom(b)
		if err != nil || rand.Float64() >= c.share {
			return n, from, err
		}
	}
}

// TestMeasureEncrypted counts encrypted frames between a page and volpeer, in both directions, when the server's socket
// loses 5 % of the packets that it sends and receives. The same without encryption shows the effect of the link alone.
// volpeer publishes points, and then what a depth camera saw.
func TestMeasureEncrypted(t *testing.T) {
	measuring(t)
	peer(t)
	up, down, refused := crossLossy(t, "correct horse")
	plainUp, plainDown, _ := crossLossy(t, "")
	told(t, claim.AtLeast("Chromium to Go: encrypted frames decrypted at 5 % loss", up, "%", 99.5))
	told(t, claim.AtLeast("Go to Chromium: encrypted frames decrypted at 5 % loss", down, "%", 99.5))
	told(t, claim.Exactly("encrypted frames refused", refused, "", 0))
	told(t, claim.Information("Chromium to Go: frames without encryption on the same link", plainUp, "%"))
	told(t, claim.Information("Go to Chromium: frames without encryption on the same link", plainDown, "%"))
	camera := []string{"--source", "synthetic", "--codec", "rgbd", "--tiles", "2", "--fps", "10",
		"--virtual-cameras", filepath.Join(root, "docs", "cameras", "front.yaml")}
	_, down, refused = crossLossy(t, "correct horse", camera...)
	_, plainDown, _ = crossLossy(t, "", camera...)
	told(t, claim.AtLeast("Go to Chromium: encrypted frames of rgbd decrypted at 5 % loss", down, "%", 99))
	told(t, claim.Exactly("encrypted frames of rgbd refused", refused, "", 0))
	told(t, claim.AtLeast("Go to Chromium: frames of rgbd without encryption on the same link", plainDown, "%", 99))
}

// crossLossy publishes from a page and from volpeer on lossy links, with a passphrase or without. It returns the shares
// of the frames that arrived in percent, up from the page and down to the page, and the number of refused frames.
// Without flags, volpeer publishes a small figure.
func crossLossy(t *testing.T, passphrase string, flags ...string) (up, down float64, refused int64) {
	t.Helper()
	t.Setenv(clientpeer.PassphraseVariable, passphrase)
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := start(t, func(o *server.Options) { o.Media = &lossyConn{conn, 0.05} })
	v := begin(t, "encrypted_loss.mjs", pageURL(s), "15", url.QueryEscape(passphrase))
	v.expect("live", nil)
	sum, _ := volpeerWatches(t, s, "15")
	if len(flags) > 0 {
		volpeerPublishes(t, s, "gopher", flags...)
	} else {
		publish(t, s, "gopher")
	}
	v.goOn()
	var page struct {
		Before, After struct {
			seen
			Counts counts
		}
	}
	v.expect("watched", &page)
	v.expect("done", nil)
	if failed := page.After.Failed; failed > 0 {
		t.Errorf("the page could not decode %d frames", failed)
	}
	return 100 * float64(sum.Decoded) / float64(max(1, sum.Expected)),
		delivered(page.Before.seen, page.After.seen), sum.Refused + int64(page.After.Counts.rejected())
}

// TestPicturesOfEncryption makes the documents' picture of an encrypted room, if requested.
func TestPicturesOfEncryption(t *testing.T) {
	if *pictures == "" {
		t.Skip("pictures are made on demand: go test ./test/browser -run TestPictures -args -pictures DIR")
	}
	tools(t)
	t.Setenv(clientpeer.PassphraseVariable, "correct horse battery staple")
	s := start(t, nil)
	publish(t, s, "Ada", "--points", "20000", "--tiles", "1")
	publish(t, s, "Grace", "--points", "20000", "--tiles", "1")
	v := begin(t, "screenshots_encrypted.mjs", pageURL(s))
	v.patience = 5 * patience
	v.expect("made", nil)
	v.expect("done", nil)
}
