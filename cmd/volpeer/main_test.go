package main

import (
	"io"
	"strings"
	"testing"
)

// TestMovedCommands checks that the error for a command that has moved names the present program.
func TestMovedCommands(t *testing.T) {
	for line, want := range map[string]string{
		"bridge --port :8000 -sfu host:8094": "the command volpeer bridge is now volbridge",
		"direct produce --listen :8090":      "the command volpeer direct is now vollab direct",
		"direct --help":                      "the command volpeer direct is now vollab direct",
		"compare --log frames.jsonl":         "the command volpeer compare is now vollab compare",
		"codec":                              "the command volpeer codec is now vollab codec",
	} {
		root := newRoot()
		root.SetArgs(strings.Fields(line))
		root.SetOut(io.Discard)
		if err := root.ExecuteContext(t.Context()); err == nil || err.Error() != want {
			t.Errorf("volpeer %s: got %v, expected %q", line, err, want)
		}
	}
}

func TestStartedAsBridge(t *testing.T) {
	for program, bridge := range map[string]bool{
		"volpeer": false, "/usr/bin/volpeer": false, "WebRTCSFU-peer": true, "/opt/vr/WebRTCSFU-peer.exe": true,
		`C:\Program Files\VR\webrtcsfu-peer.EXE`: true,
	} {
		if err := startedAsBridge(program); (err != nil) != bridge || bridge &&
			!strings.Contains(err.Error(), "volbridge") {
			t.Errorf("%s: got %v, expected an error that names volbridge: %v", program, err, bridge)
		}
	}
}
