package publish

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/signal"
)

// errPose has the syntax of poses.
var errPose = errors.New("expected X,Y,Z or X,Y,Z,YAW, in metres and degrees")

// parsePose parses the position of an object in the room and the rotation in degrees to the left, seen from above.
func parsePose(text string) (client.Pose, error) {
	words := strings.Split(text, ",")
	if len(words) != 3 && len(words) != 4 {
		return client.Pose{}, fmt.Errorf("%w, got %.32q", errPose, text)
	}
	var numbers [4]float64
	for i, word := range words {
		var err error
		if numbers[i], err = strconv.ParseFloat(strings.TrimSpace(word), 64); err != nil ||
			!(math.Abs(numbers[i]) <= signal.MaxCoordinate) {
			return client.Pose{}, fmt.Errorf("%w, got %.32q", errPose, text)
		}
	}
	sin, cos := math.Sincos(numbers[3] * math.Pi / 360)
	return client.Pose{Position: [3]float64(numbers[:3]), Orientation: [4]float64{0, sin, 0, cos}}, nil
}

// placed parses a pose; placed returns nil for an empty text.
func placed(text string) (*client.Pose, error) {
	if text == "" {
		return nil, nil
	}
	pose, err := parsePose(text)
	return &pose, err
}
