package interop

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// TestUnitySceneThroughBridge has a program in C# send through a real bridge the pose of its object, which another
// participant receives, and its viewpoint, by which the server selects qualities. A bridge that replaces a killed one
// receives both as well.
func TestUnitySceneThroughBridge(t *testing.T) {
	core, bridge := unityCore(t), unityBridge(t)
	c := startUnityConference(t)
	near := volumetric.BoundingBox{Min: [3]float32{-0.5, -0.5, -0.5}, Max: [3]float32{0.5, 0.5, 0.5}}
	behind := volumetric.BoundingBox{Min: [3]float32{-0.5, -0.5, 5}, Max: [3]float32{0.5, 0.5, 6}}
	newUnityPublisher(t, c, near, behind)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	watcher, err := client.Join(ctx, client.Config{URL: c.Server.URL(), Room: unityRoom, Identity: "watcher"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = watcher.Close() })
	unity := startUnity(t, nil, core, "bridge", bridge, c.Server.URL(), unityRoom, "unity-1", strconv.Itoa(portPair(t)),
		"1", "2", "1")
	// Messages from before the bridge exists are sent once it does.
	unity.say("stand 1.5 0 -2")
	unity.await(t, "event Ready")
	unity.say("publish 1200")
	stands := func(x float64) {
		t.Helper()
		awaitUnityEvent(t, watcher, func(e client.PoseChanged) bool {
			boxes := e.Pose.Boxes
			return e.Publication.Participant == "unity-1" && e.Pose.Position == [3]float64{x, 0, -2} &&
				e.Pose.Scale == 2 &&
				len(boxes) == 2 && boxes[1].Min == [3]float32{1, 0, 0} && boxes[1].Max == [3]float32{2, 2, 0.5}
		})
	}
	stands(1.5)
	unity.say("stand 2.5 0 -2")
	stands(2.5)

	// The tile behind the eye is sent at its lowest quality.
	sees := func(quality int) {
		t.Helper()
		eventually(t, fmt.Sprintf("C# has frames of the tile behind at quality %d", quality), func() bool {
			frames := unity.said("frame 7 1 ")
			if len(frames) < unityEnough {
				return false
			}
			for _, frame := range frames[len(frames)-unityEnough:] {
				if !strings.HasPrefix(frame, strconv.Itoa(quality)+" ") {
					return false
				}
			}
			return true
		})
	}
	sees(1)
	unity.do("look 0 0 2.5")
	sees(0)
	unity.do("look 0 0 12")
	sees(1)
	unity.do("look 0 0 2.5")
	sees(0)
	unity.killBridge(t)
	stands(2.5)
	unity.do("counts")
	sees(0)
}
