package volumetric

import "fmt"

// Picture declares that a publication is a flat picture, such as a webcam or a screen, instead of an object with depth.
// The picture has one tile and is drawn on a panel: the front (+z) of the tile's box. The back shows nothing.
type Picture struct {
	Source PictureSource `json:"source"`
}

// PictureSource is the source of a picture.
type PictureSource string

// The sources of pictures.
const (
	// SourceCamera is a picture of a scene, which remains useful at a low resolution.
	SourceCamera PictureSource = "camera"
	// SourceScreen is a picture of a screen. Its text is legible only at about its own resolution.
	SourceScreen PictureSource = "screen"
)

// MaxPictureSide is the maximum width and height of a picture, in pixels: those of VP8 (RFC 6386 section 9.1).
const MaxPictureSide = 16383

// DefaultPanel returns the panel of a picture whose tile has a box without size, in metres, 16:9: the bottom of a
// camera's panel is at the height of a chest and that of a screen's at the height of a table.
func DefaultPanel(source PictureSource) BoundingBox {
	if source == SourceScreen {
		return BoundingBox{Min: [3]float32{-0.8, 0.8, 0}, Max: [3]float32{0.8, 1.7, 0}}
	}
	return BoundingBox{Min: [3]float32{-0.4, 1, 0}, Max: [3]float32{0.4, 1.45, 0}}
}

// Pixels returns the number of pixels of the encoded picture, 0 if unknown.
func (l *QualityLevel) Pixels() int { return l.Width * l.Height }

// validatePicture returns an error if the description of the picture is invalid, or if the sizes of the qualities are.
func (p *Publication) validatePicture() error {
	for i := range p.Qualities {
		if err := p.validateSize(i); err != nil {
			return err
		}
	}
	switch {
	case p.Picture == nil:
		return nil
	case p.Picture.Source != SourceCamera && p.Picture.Source != SourceScreen:
		return fmt.Errorf("%w %q: source of the picture is %.64q, expected %q or %q", ErrPublication, p.Name,
			p.Picture.Source, SourceCamera, SourceScreen)
	case p.Kind != KindVideo, p.Mode != ModeAlternatives, len(p.Tiles) != 1, p.VR2Gather:
		return fmt.Errorf("%w %q: a picture has kind %q, mode %q and %d tiles, expected kind %q, mode %q, 1 tile and "+
			"no VR2Gather frames", ErrPublication, p.Name, p.Kind, p.Mode, len(p.Tiles), KindVideo, ModeAlternatives)
	case p.Codec.Is(MIMEVolumetric):
		return fmt.Errorf("%w %q: a picture has media type %s, expected another type of video", ErrPublication, p.Name,
			p.Codec.MIMEType)
	}
	return nil
}

// validateSize returns an error if the size or the frame rate of a quality is invalid.
func (p *Publication) validateSize(quality int) error {
	l := &p.Qualities[quality]
	switch {
	case l.Width == 0 && l.Height == 0 && l.FrameRate == 0:
		return nil
	case p.Picture == nil:
		return fmt.Errorf("%w %q: quality %d has a size of %d × %d pixels and %g frames per second, expected none "+
			"without a picture", ErrPublication, p.Name, quality, l.Width, l.Height, l.FrameRate)
	case (l.Width != 0 || l.Height != 0) &&
		(l.Width < 1 || l.Width > MaxPictureSide || l.Height < 1 || l.Height > MaxPictureSide):
		return fmt.Errorf("%w %q: quality %d has %d × %d pixels, expected 1 to %d each, or none", ErrPublication,
			p.Name, quality, l.Width, l.Height, MaxPictureSide)
	case !(l.FrameRate >= 0 && l.FrameRate <= 1000):
		return fmt.Errorf("%w %q: frame rate of quality %d is %g, expected 0 to 1000", ErrPublication, p.Name, quality,
			l.FrameRate)
	}
	return nil
}
