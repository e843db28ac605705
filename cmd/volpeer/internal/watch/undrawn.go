package watch

import (
	"slices"

	"github.com/volsfu/volsfu/cmd/volpeer/internal/decode"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// undrawn is a decoded tile frame that was not drawn yet.
type undrawn struct {
	track  volumetric.TrackRef
	number int64
}

// maxUndrawn bounds the entries of one publication: two seconds of 15 tiles at 60 frames per second. A frame that is
// superseded before drawing stays in the list until then.
const maxUndrawn = 1800

// time records when a frame was decoded.
func (v *viewer) time(r *decode.Result) {
	if v.timed == nil {
		return
	}
	v.timed.FrameDecoded(&r.Frame, r.Began, r.Decoded)
	if v.screen == nil {
		return
	}
	ref := r.Frame.Track.PublicationRef
	if v.undrawn == nil {
		v.undrawn = make(map[volumetric.PublicationRef][]undrawn)
	}
	list := append(v.undrawn[ref], undrawn{r.Frame.Track, r.Frame.Number})
	if len(list) > maxUndrawn {
		list = slices.Delete(list, 0, len(list)-maxUndrawn)
	}
	v.undrawn[ref] = list
}

// takeDrawn records the frames that were drawn.
func (v *viewer) takeDrawn() {
	v.drawn = v.screen.TakeDrawn(v.drawn[:0])
	if v.timed == nil {
		return
	}
	for i := range v.drawn {
		d := &v.drawn[i]
		for ref, list := range v.undrawn {
			if ref.String() != d.Object {
				continue
			}
			v.undrawn[ref] = slices.DeleteFunc(list, func(u undrawn) bool {
				if u.number == d.Number {
					v.timed.FrameShown(u.track, u.number, d.Began, d.Done)
				}
				return u.number <= d.Number
			})
		}
	}
}
