package interop

import (
	"bufio"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

// TestBridgeEndsWithItsInput closes the standard inputs of two bridges. The one with the flag for this leaves the room
// and prints its summary, the other continues.
func TestBridgeEndsWithItsInput(t *testing.T) {
	tools := buildBridgeTools(t)
	conference := openConference(t, "127.0.0.1:0")
	defer conference.Close()
	var bridges [2]*bridgeProcess
	for i, more := range [][]string{{"--until-stdin-closes"}, nil} {
		port := portPair(t)
		bridges[i] = startBridge(t, tools, conference.Server.URL(), port, i+1, 1, 1, more...)
		startConnector(t, tools, port, i+1).say("listen")
	}
	eventually(t, "both are in the room", func() bool { return participants(t, conference) == 2 })
	for _, b := range bridges {
		if err := b.stdin.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if s := bridges[0].end(); s.Sessions != 1 {
		t.Errorf("summary is %+v, expected one session", s)
	}
	eventually(t, "one has left the room", func() bool { return participants(t, conference) == 1 })
	bridges[1].stop()
}

// TestUnityBridgeIsNoOrphan kills a program of the Unity package's core. Its bridge ends as well, so that the next one
// finds the ports free.
func TestUnityBridgeIsNoOrphan(t *testing.T) {
	core, bridge := unityCore(t), unityBridge(t)
	conference := openConference(t, "127.0.0.1:0")
	defer conference.Close()
	port := portPair(t)
	program := exec.Command("mono", core, "bridge", bridge, conference.Server.URL(), unityRoom, "unity-1",
		strconv.Itoa(port), "1", "1", "1")
	stdin, err := program.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stdin.Close() }()
	stdout, err := program.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	ready := false
	for lines := bufio.NewScanner(stdout); !ready && lines.Scan(); {
		ready = strings.HasPrefix(lines.Text(), "event Ready")
	}
	bridgePort := &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port}
	taken := func() bool {
		conn, err := net.ListenUDP("udp4", bridgePort)
		if err == nil {
			_ = conn.Close()
		}
		return err != nil
	}
	if !ready || !taken() {
		t.Errorf("the bridge is not running: ready is %v", ready)
	}
	if err := program.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = program.Wait() // it was killed
	eventually(t, "the bridge has ended", func() bool { return !taken() })
}
