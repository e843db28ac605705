package realsense

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"testing"

	"github.com/volsfu/volsfu/pkg/capture/realsense/rs2"
	"github.com/volsfu/volsfu/pkg/capture/realsense/rstest"
)

// playerOutput is the output of a player for a small camera with one picture, without the first bytes of
// the messages.
func playerOutput(t testing.TB, p *picture) []byte {
	t.Helper()
	scene := rstest.Wall(1)
	scene.Camera.Width, scene.Camera.Height = 2, 1
	text, err := json.Marshal(head{scene.Camera, 30})
	if err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	to := bufio.NewWriter(&said)
	if err := errors.Join(writeText(to, headMessage, text), p.write(to)); err != nil {
		t.Fatal(err)
	}
	// The first byte of the second message is after the text: both are removed.
	out := said.Bytes()[1:]
	return append(out[:4+len(text):4+len(text)], out[4+len(text)+1:]...)
}

// parseOutput parses the output of playerOutput.
func parseOutput(data []byte) (*picture, error) {
	from := bytes.NewReader(data)
	text, err := readText(from)
	if err != nil {
		return nil, err
	}
	var h head
	if err := json.Unmarshal(text, &h); err != nil {
		return nil, err
	}
	if err := h.Camera.Validate(); err != nil {
		return nil, err
	}
	if h.Camera.Width*h.Camera.Height > 1<<16 {
		return nil, errors.New("more than a test wants to hold")
	}
	p := new(picture)
	return p, p.read(from, &h.Camera)
}

func TestPlayerAndReelUnderstandEachOther(t *testing.T) {
	said := &picture{stamp: 1.5, domain: rs2.GlobalTime, number: 7}
	said.image.Depth, said.image.Colors = []uint16{1, 0xfffe}, [][3]uint8{{1, 2, 3}, {4, 5, 6}}
	data := playerOutput(t, said)
	heard, err := parseOutput(data)
	if err != nil || !reflect.DeepEqual(heard, said) {
		t.Errorf("said %+v, heard %+v, %v", said, heard, err)
	}
	for n := range data {
		if _, err := parseOutput(data[:n]); err == nil {
			t.Errorf("%d bytes of %d: no error", n, len(data))
		}
	}
}

func FuzzPlayer(f *testing.F) {
	p := &picture{number: 1}
	p.image.Depth, p.image.Colors = make([]uint16, 2), make([][3]uint8, 2)
	f.Add(playerOutput(f, p))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := parseOutput(data)
		if err == nil && len(p.image.Depth) != len(p.image.Colors) {
			t.Errorf("%d depths and %d colours", len(p.image.Depth), len(p.image.Colors))
		}
	})
}
