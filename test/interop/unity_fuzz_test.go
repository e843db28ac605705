package interop

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/pointcloud"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/pkg/vr2gather"
	"github.com/volsfu/volsfu/test/long"
)

// TestUnityFuzz mutates the inputs of the readers in C# for a moment.
func TestUnityFuzz(t *testing.T) { fuzzUnity(t, 300*time.Millisecond) }

// TestUnityFuzzLong mutates the inputs of the readers in C# for longer.
func TestUnityFuzzLong(t *testing.T) {
	long.Test(t)
	fuzzUnity(t, 10*time.Second)
}

var fuzzed = regexp.MustCompile(`(?m)^ok fuzz (\w+): \d+ inputs, (\d+) outcomes of valid ones, (\d+) in all$`)

// fuzzUnity gives the readers in C# the outputs of the encoders in Go and mutations of them, for the given time for
// each reader. Mutations must lead to outcomes that the valid inputs do not have.
func fuzzUnity(t *testing.T, each time.Duration) {
	core, dir := unityCore(t), t.TempDir()
	for kind, inputs := range map[string][][]byte{
		"datagram": unityDatagrams(t), "frame": {unityFrame(t)}, "message": unityMessages(t),
	} {
		for i, input := range inputs {
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%s.%d", kind, i)), input, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	out, err := exec.Command("mono", core, "fuzz", dir, strconv.FormatInt(each.Milliseconds(), 10)).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
	lines := fuzzed.FindAllStringSubmatch(string(out), -1)
	if len(lines) != 3 {
		t.Fatalf("%d readers were fuzzed, expected 3:\n%s", len(lines), out)
	}
	for _, line := range lines {
		valid, _ := strconv.Atoi(line[2])
		if all, _ := strconv.Atoi(line[3]); all <= valid {
			t.Errorf("%s: mutations have no outcomes beside the %d of valid inputs", line[1], valid)
		}
	}
}

// unityFrame returns a frame of raw points with VR2Gather's header.
func unityFrame(t *testing.T) []byte {
	t.Helper()
	cloud := &pointcloud.Cloud{}
	for i := range 200 {
		v := float32(i) / 199
		cloud.Append([3]float32{v, 2 * v, -v}, [3]uint8{uint8(i), 7, 9})
	}
	encoded, err := codec.CWI0.NewEncoder().Encode(nil, cloud, codec.Params{PositionBits: 16, Box: cloud.Bounds()})
	if err != nil {
		t.Fatal(err)
	}
	header := vr2gather.NewFrameHeader(vr2gather.CodecRawPoints, len(encoded), time.UnixMilli(1_795_188_600_123))
	return append(header.Append(nil), encoded...)
}

// unityDatagrams returns the datagrams of frames of a tile and of sound, and one of each other type.
func unityDatagrams(t *testing.T) [][]byte {
	t.Helper()
	var datagrams [][]byte
	add := func(kind vr2gather.DatagramType, body []byte) {
		datagram, err := vr2gather.Datagram{Type: kind, Body: body}.Append(nil)
		if err != nil {
			t.Fatal(err)
		}
		datagrams = append(datagrams, datagram)
	}
	frame := unityFrame(t)
	for kind, of := range map[vr2gather.DatagramType]volumetric.Kind{
		vr2gather.DatagramTile: volumetric.KindVideo, vr2gather.DatagramAudio: volumetric.KindAudio,
	} {
		for packet := range vr2gather.Cut(vr2gather.Packet{Kind: of, Client: 7, Frame: 1}, frame) {
			body, err := packet.Append(nil)
			if err != nil {
				t.Fatal(err)
			}
			add(kind, body)
		}
	}
	add(vr2gather.DatagramReady, nil)
	add(vr2gather.DatagramControl, []byte(" 7,1; "))
	return datagrams
}

var serverExample = regexp.MustCompile("(?ms)^```json server\n(.*?)^```$")

// unityMessages returns the messages of the server that docs/signalling.md has as examples, as the server encodes them.
func unityMessages(t *testing.T) [][]byte {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "signalling.md"))
	if err != nil {
		t.Fatal(err)
	}
	var messages [][]byte
	for _, example := range serverExample.FindAllSubmatch(page, -1) {
		m, err := signal.DecodeFromServer(example[1])
		if err != nil {
			t.Fatal(err)
		}
		text, err := signal.Encode(m)
		if err != nil {
			t.Fatal(err)
		}
		messages = append(messages, text)
	}
	if len(messages) < len(signal.TypesFromServer()) {
		t.Fatalf("%d examples, expected one of each type at least", len(messages))
	}
	return messages
}
