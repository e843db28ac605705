package relay

import (
	"encoding/binary"
	"math"
	"testing"
	"time"

	"github.com/volsfu/volsfu/cmd/volbridge/internal/bridge"
	"github.com/volsfu/volsfu/pkg/client"
)

// TestBridgeSendsPoses uses a connector that sends the pose of its object before the object exists, and a new pose
// later. Another participant receives both.
func TestBridgeSendsPoses(t *testing.T) {
	url := openConference(t)
	n := openNeighbour(t)
	stop := bridgeTo(t, &Options{sfu: url, port: n.bridge.String(), client: 1,
		layout: bridge.Layout{Tiles: 1, Qualities: 1}, input: true})
	session, err := client.Join(t.Context(), client.Config{URL: url, Room: defaultRoom, Identity: "ada", Receive: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = session.Close() }()
	words := func(values ...any) []byte {
		var datagram []byte
		for _, v := range values {
			switch v := v.(type) {
			case int:
				datagram = binary.LittleEndian.AppendUint32(datagram, uint32(v))
			case float64:
				datagram = binary.LittleEndian.AppendUint32(datagram, math.Float32bits(float32(v)))
			}
		}
		return datagram
	}
	say := func(datagram []byte) {
		t.Helper()
		if _, err := n.conn.WriteToUDPAddrPort(datagram, n.bridge); err != nil {
			t.Fatal(err)
		}
	}
	pose := func(x float64) []byte {
		return words(17, x, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 0, 1, -1.0, -2.0, -3.0, 1.0, 2.0, 3.0)
	}
	say(words(16, 0.0, 1.5, 3.0, 0.0, 0.0, 0.0, 1.0, 60.0, 1.5))
	say(pose(5))
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	var number uint32
	for x, end := 5.0, time.After(patience); x < 7; {
		select {
		case <-ticker.C:
			number++
			n.send(t, number, somePoints(2000))
		case e := <-session.Events():
			told, ok := e.(client.PoseChanged)
			if !ok || told.Pose.Position[0] != x {
				continue
			}
			if boxes := told.Pose.Boxes; told.Publication.Participant != "1" || len(boxes) != 1 ||
				boxes[0].Max != [3]float32{1, 2, 3} {
				t.Errorf("%v is told to have boxes %v", told.Publication, boxes)
			}
			x++
			say(pose(x))
		case <-session.Frames():
		case <-end:
			t.Fatalf("nothing is told of the object at %g", x)
		}
	}
	if s := stop(); s.Dropped["malformed_packets"]+s.Dropped["malformed_datagrams"] > 0 {
		t.Errorf("summary is %+v", s)
	}
}
