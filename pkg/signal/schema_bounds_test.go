package signal

import (
	"strconv"
	"strings"
	"testing"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// TestSchemaBounds compares the numbers of the schema with the constants that Validate uses.
func TestSchemaBounds(t *testing.T) {
	defs := parseSchema(t)["$defs"].(node)
	for path, want := range map[string]int64{
		"Join/properties/version/const":                    Version,
		"Join/properties/publications/maxItems":            MaxPublications,
		"Join/properties/deadline_ms/anyOf/1/minimum":      MinDeadline.Milliseconds(),
		"Join/properties/deadline_ms/anyOf/1/maximum":      MaxDeadline.Milliseconds(),
		"ResumeRequest/properties/session/maxLength":       MaxSessionLength,
		"Join/properties/region/maxLength":                 MaxRegionLength,
		"Join/properties/ticket/maxLength":                 MaxSecretLength,
		"Moved/properties/deadline_ms/minimum":             0,
		"Error/properties/retry_after_ms/minimum":          0,
		"ResumeRequest/properties/secret/maxLength":        MaxSecretLength,
		"Candidate/properties/candidate/maxLength":         MaxCandidateLength,
		"Candidate/properties/mid/maxLength":               MaxMIDLength,
		"Candidate/properties/line_index/maximum":          MaxSlots - 1,
		"SetQuality/properties/choices/maxItems":           MaxChoices,
		"Acknowledge/properties/slots/maxItems":            MaxSlots,
		"SlotGeneration/properties/mid/maxLength":          MaxMIDLength,
		"Choice/properties/tile/maximum":                   volumetric.MaxTiles - 1,
		"Selection/oneOf/1/minimum":                        int64(volumetric.QualityOff),
		"Selection/oneOf/1/maximum":                        volumetric.MaxQualities - 1,
		"Selection/oneOf/2/maxItems":                       volumetric.MaxQualities,
		"Selection/oneOf/2/items/maximum":                  volumetric.MaxQualities - 1,
		"Publication/properties/tiles/maxItems":            volumetric.MaxTiles,
		"Publication/properties/qualities/maxItems":        volumetric.MaxQualities,
		"Codec/properties/fmtp/maxLength":                  MaxFormatLength,
		"Name/maxLength":                                   volumetric.MaxNameLength,
		"ID/maxLength":                                     MaxIDLength,
		"Tile/properties/label/maxLength":                  volumetric.MaxNameLength,
		"QualityLevel/properties/name/maxLength":           volumetric.MaxNameLength,
		"QualityLevel/properties/width/maximum":            volumetric.MaxPictureSide,
		"QualityLevel/properties/height/maximum":           volumetric.MaxPictureSide,
		"QualityLevel/properties/frame_rate/maximum":       1000,
		"Closing/properties/grace_ms/minimum":              0,
		"SlotQuality/properties/quality/minimum":           int64(volumetric.QualityOff),
		"BoundingBox/properties/min/maxItems":              3,
		"Publication/properties/tiles/minItems":            1,
		"Publication/properties/qualities/minItems":        1,
		"Selection/oneOf/2/items/minimum":                  0,
		"Publication/properties/frame_rate/maximum":        1000,
		"Codec/properties/clock_rate/maximum":              1_000_000,
		"Bitrate/minimum":                                  0,
		"Bitrate/maximum":                                  int64(MaxBitrate),
		"Viewpoint/properties/fov/minimum":                 MinFOV,
		"Viewpoint/properties/fov/maximum":                 MaxFOV,
		"Viewpoint/properties/aspect/maximum":              MaxAspect,
		"Pose/properties/scale/anyOf/1/maximum":            MaxScale,
		"Pose/properties/priority/anyOf/1/maximum":         MaxPriority,
		"Pose/properties/boxes/maxItems":                   volumetric.MaxTiles,
		"Vector/items/minimum":                             -MaxCoordinate,
		"Vector/items/maximum":                             MaxCoordinate,
		"Uplink/properties/gave_up/maxItems":               MaxGaveUp,
		"OwnTrack/properties/tile/maximum":                 volumetric.MaxTiles - 1,
		"FrameTimes/properties/tracks/maxItems":            MaxFrameTimes,
		"TrackTimes/properties/frames/maxItems":            MaxFrameTimes,
		"TrackTimes/properties/frames/items/minItems":      FrameTimesHead + RelayStamps,
		"TrackTimes/properties/frames/items/maxItems":      FrameTimesHead + SenderStamps,
		"TrackTimes/properties/frames/items/items/minimum": UnknownStamp,
		"TrackTimes/properties/tile/maximum":               volumetric.MaxTiles - 1,
		"TrackTimes/properties/quality/maximum":            volumetric.MaxQualities - 1,
		"OwnTrack/properties/quality/maximum":              volumetric.MaxQualities - 1,
		"Join/properties/deadline_ms/anyOf/0/const":        0,
		"Choice/properties/tile/minimum":                   0,
		"Answer/properties/offer/minimum":                  0,
		"Candidate/properties/line_index/minimum":          0,
		"SlotGeneration/properties/generation/minimum":     0,
		"Limits/properties/tracks_per_publication/minimum": 0,
	} {
		if got := at(defs, path); got != float64(want) {
			t.Errorf("$defs/%s is %v, expected %d", path, got, want)
		}
	}
	for path, want := range map[string]float64{
		"Viewpoint/properties/aspect/minimum":         MinAspect,
		"Pose/properties/scale/anyOf/1/minimum":       MinScale,
		"Pose/properties/priority/anyOf/1/minimum":    MinPriority,
		"WantedPublication/properties/parity/maximum": MaxParity,
	} {
		if got := at(defs, path); got != want {
			t.Errorf("$defs/%s is %v, expected %g", path, got, want)
		}
	}
}

// at returns the value at a path of keys and indices, or nil if the value does not exist.
func at(value any, path string) any {
	for key := range strings.SplitSeq(path, "/") {
		switch v := value.(type) {
		case node:
			value = v[key]
		case []any:
			i, err := strconv.Atoi(key)
			if err != nil || i >= len(v) {
				return nil
			}
			value = v[i]
		default:
			return nil
		}
	}
	return value
}
