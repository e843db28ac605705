package main_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/volsfu/volsfu/pkg/codec/codectest"
)

// TestDecode has a program in C decode the test vectors of all codecs: valid ones to the same points as in Go, hostile
// ones to errors. Hostile parts may name codecs that the library does not have.
func TestDecode(t *testing.T) {
	program := compile(t, filepath.Join("testdata", "decode.c"))
	const malformed, unknown = -13, -12
	// Meshes are decoded by Draco's library only.
	const meshes = "drcm"
	var input bytes.Buffer
	var want []string
	add := func(frame codectest.Frame, expected string) {
		input.WriteString(frame.Codec)
		_ = binary.Write(&input, binary.LittleEndian, uint32(len(frame.Data)))
		input.Write(frame.Data)
		want = append(want, expected)
	}
	for _, frame := range codectest.Valid() {
		if frame.Codec == meshes {
			add(frame, fmt.Sprintf("%d 0 ", unknown))
			continue
		}
		add(frame, fmt.Sprintf("0 %d %d", frame.Points, frame.Sum))
	}
	for _, frame := range codectest.Hostile() {
		if frame.Codec != meshes && frame.Codec != "part" && frame.Codec != "labl" {
			add(frame, fmt.Sprintf("%d 0 ", malformed))
		}
	}
	add(codectest.Frame{Codec: "abcd", Data: []byte("no codec")}, fmt.Sprintf("%d 0 ", unknown))
	add(codectest.Frame{Codec: "abcd"}, "0 0 ")
	run := exec.Command(program)
	run.Stdin = &input
	out, err := run.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(lines) != len(want) {
		t.Fatalf("%d frames, want %d: %s", len(lines), len(want), out)
	}
	for i, line := range lines {
		if !strings.HasPrefix(line, want[i]) {
			t.Errorf("frame %d: %q, want %q", i, line, want[i])
		}
	}
}
