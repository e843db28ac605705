package payload

import (
	"bytes"
	"encoding/hex"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/vr2gather"
)

// examples returns the packets in docs/payload.md: the blocks that begin with ```hex NAME, one
// packet per paragraph. A # begins a comment; … at the end of a packet marks a packet that is not
// shown in full.
func examples(t *testing.T) map[string][]example {
	t.Helper()
	text, err := os.ReadFile("../../docs/payload.md")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string][]example{}
	blocks := regexp.MustCompile("(?ms)^```hex (\\w+)\n(.*?)^```$")
	for _, block := range blocks.FindAllStringSubmatch(string(text), -1) {
		for _, paragraph := range strings.Split(block[2], "\n\n") {
			digits := regexp.MustCompile(`#.*`).ReplaceAllString(paragraph, "")
			digits, part := strings.CutSuffix(strings.TrimSpace(digits), "…")
			packet, err := hex.DecodeString(strings.Join(strings.Fields(digits), ""))
			if err != nil {
				t.Fatalf("example %s: %v", block[1], err)
			}
			found[block[1]] = append(found[block[1]], example{packet: packet, part: part})
		}
	}
	return found
}

// example is a packet, or the beginning of a packet.
type example struct {
	packet []byte
	part   bool
}

// TestDocument compares the examples of docs/payload.md with the code.
func TestDocument(t *testing.T) {
	prefix := Prefix{
		FourCC:  [4]byte{'d', 'r', 'c', 'o'},
		Capture: time.Date(2026, 11, 20, 15, 30, 0, 250_000_000, time.UTC),
	}
	counting := make([]byte, 2500)
	for i := range counting {
		counting[i] = byte(i % 251)
	}
	want := map[string][][]byte{
		"small": packetsOf(
			t,
			Descriptor{Prefixed: true, Quality: 1, Frame: 1000},
			append(prefix.AppendTo(nil), "tile!"...),
		),
		"parity": packetsOf(t, Descriptor{Quality: 2, Frame: 1001, Parity: 1}, counting),
	}
	points := codec.StampCWI0(nil, nil, prefix.Capture)
	header := vr2gather.NewFrameHeader(vr2gather.CodecRawPoints, len(points), prefix.Capture)
	want["vr2gather"] = packetsOf(t, Descriptor{Frame: 1002}, append(header.Append(nil), points...))
	got := examples(t)
	for name, packets := range want {
		if len(got[name]) != len(packets) {
			t.Fatalf("example %s has %d packets, expected %d", name, len(got[name]), len(packets))
		}
		for i, packet := range packets {
			shown := got[name][i]
			if expected := packet[:min(len(packet), len(shown.packet))]; !bytes.Equal(shown.packet, expected) ||
				!shown.part && len(shown.packet) != len(packet) {
				t.Errorf(
					"example %s, packet %d: the document says\n% x, expected\n% x",
					name,
					i,
					shown.packet,
					expected,
				)
			}
			if len(shown.packet) <= DescriptorSize {
				t.Errorf("example %s, packet %d shows no data", name, i)
			}
		}
	}
	if frame := reassembleExample(t, got["small"][0].packet); string(frame.Data) != "tile!" || frame.Prefix != prefix {
		t.Errorf("the document's packet holds %q with %+v", frame.Data, frame.Prefix)
	}
}

func reassembleExample(t *testing.T, packet []byte) *Frame {
	t.Helper()
	frame := push(t, NewReassembler(DefaultConfig()), packet, start)
	if frame == nil {
		t.Fatal("the document's packet is no whole frame")
	}
	return frame
}
