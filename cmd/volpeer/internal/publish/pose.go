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

// errPose says how poses are written.
var errPose = errors.New("expected X,Y,Z or X,Y,Z,YAW, in metres and degrees")

// parsePose reads where an object stands in the room, and how far it is turned to the left, seen from above.
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

// placed is a pose, nil for none.
func placed(text string) (*client.Pose, error) {
	if text == "" {
		return nil, nil
	}
	pose, err := parsePose(text)
	return &pose, err
}
