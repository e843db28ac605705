package realsense

import (
	"fmt"
	"slices"
	"strings"

	"github.com/volsfu/volsfu/pkg/capture/depth"
	"github.com/volsfu/volsfu/pkg/capture/realsense/rs2"
)

// colorFormats are the readable pixel formats, the preferred one first. Cameras have all formats,
// recordings only the recorded format.
var colorFormats = []rs2.Format{rs2.RGB8, rs2.BGR8, rs2.RGBA8, rs2.BGRA8}

// wanted is the required size and rate of streams; zeros allow any.
type wanted struct{ width, height, fps int }

func (w wanted) matches(p rs2.Profile) bool {
	return (w.width == 0 || p.Width == w.width && p.Height == w.height) && (w.fps == 0 || p.FPS == w.fps)
}

// choose selects a depth profile and a colour profile among all profiles of a device.
func choose(profiles []rs2.Profile, w wanted) (depthProfile, color rs2.Profile, err error) {
	var ok bool
	depthProfile, ok = pick(profiles, w, rs2.Depth, []rs2.Format{rs2.Z16})
	if !ok {
		return rs2.Profile{}, rs2.Profile{}, profileError("depth", rs2.Depth, profiles, w)
	}
	// Images of different rates would rarely form pairs.
	w.fps = depthProfile.FPS
	color, ok = pick(profiles, w, rs2.Color, colorFormats)
	if !ok {
		return rs2.Profile{}, rs2.Profile{}, profileError("colour", rs2.Color, profiles, w)
	}
	return depthProfile, color, nil
}

func pick(profiles []rs2.Profile, w wanted, stream rs2.Stream, formats []rs2.Format) (rs2.Profile, bool) {
	for _, format := range formats {
		for _, p := range profiles {
			if p.Stream == stream && p.Format == format && w.matches(p) {
				return p, true
			}
		}
	}
	return rs2.Profile{}, false
}

// profileError returns an error that lists the available profiles instead of the wanted ones.
func profileError(name string, stream rs2.Stream, profiles []rs2.Profile, w wanted) error {
	var there []string
	for _, p := range profiles {
		if p.Stream == stream {
			there = append(there, fmt.Sprintf("%dx%d at %d", p.Width, p.Height, p.FPS))
		}
	}
	slices.Sort(there)
	there = slices.Compact(there)
	if len(there) == 0 {
		return fmt.Errorf("%w: no %s", ErrStreams, name)
	}
	if w.width == 0 {
		return fmt.Errorf(
			"%w: no %s in a readable format at %d fps; available: %s",
			ErrStreams,
			name,
			w.fps,
			strings.Join(there, ", "),
		)
	}
	return fmt.Errorf("%w: no %s of %dx%d at %d fps; available: %s (fewer with USB 2)",
		ErrStreams, name, w.width, w.height, w.fps, strings.Join(there, ", "))
}

// models maps the library's lens models to the models of package depth.
var models = map[rs2.Distortion]depth.Model{
	rs2.NoDistortion:         depth.None,
	rs2.ModifiedBrownConrady: depth.ModifiedBrownConrady,
	rs2.InverseBrownConrady:  depth.InverseBrownConrady,
	rs2.BrownConrady:         depth.BrownConrady,
	rs2.KannalaBrandt4:       depth.KannalaBrandt4,
}

// cameraOf describes a colour camera for depth aligned to the colour image.
func cameraOf(name string, lens rs2.Intrinsics, unit float64) (depth.Camera, error) {
	model, ok := models[lens.Model]
	if !ok {
		return depth.Camera{}, fmt.Errorf("%w: lens of model %d", ErrStreams, lens.Model)
	}
	camera := depth.Camera{
		Name: name, Width: int(lens.Width), Height: int(lens.Height),
		FX: float64(lens.FX), FY: float64(lens.FY), CX: float64(lens.PPX), CY: float64(lens.PPY),
		Distortion: depth.Distortion{Model: model}, Unit: unit,
	}
	bent := false
	for i, k := range lens.Coeffs {
		camera.Distortion.Coefficients[i] = float64(k)
		bent = bent || k != 0
	}
	if !bent && model != depth.KannalaBrandt4 {
		camera.Distortion.Model = depth.None // equivalent and faster
	}
	return camera, camera.Validate()
}
