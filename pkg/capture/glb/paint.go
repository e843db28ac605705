package glb

import (
	"bytes"
	"fmt"
	"image"
	"image/draw"
	_ "image/jpeg" // formats of textures
	_ "image/png"
	"math"

	"github.com/qmuntal/gltf"
	"github.com/qmuntal/gltf/modeler"
)

// maxTexture is the maximum number of pixels of all textures together: 16.8 million, an image of
// 4096 × 4096, which takes 67 MB.
const maxTexture = 1 << 24

// paint determines the colours of a part.
type paint struct {
	factor      [4]float64 // linear, and opacity
	texture     *texture   // nil for none
	coordinates [][2]float32
	colors      [][4]uint16 // of vertices, linear; nil for none
	cutoff      float64     // opacity below which the surface is omitted; 0 for none
}

// texture is an image with its wrapping mode.
type texture struct {
	image *image.NRGBA
	wrap  [2]gltf.WrappingMode
}

// painter reads materials, and each image once.
type painter struct {
	doc    *gltf.Document
	images map[int]*image.NRGBA
	pixels int
}

func newPainter(doc *gltf.Document) *painter {
	return &painter{doc: doc, images: make(map[int]*image.NRGBA)}
}

// of returns the paint of a primitive with the given number of vertices.
func (r *painter) of(primitive *gltf.Primitive, vertices int) (*paint, error) {
	p := &paint{factor: [4]float64{1, 1, 1, 1}}
	only, a, err := named(r.doc, primitive.Attributes, gltf.COLOR_0, vertices)
	if err != nil {
		return nil, err
	}
	if a != nil {
		if p.colors, err = modeler.ReadColor64(only, a, nil); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrFile, err)
		}
	}
	if primitive.Material == nil {
		return p, nil
	}
	material, err := at(r.doc.Materials, *primitive.Material, "material")
	if err != nil {
		return nil, err
	}
	if material.AlphaMode == gltf.AlphaMask {
		p.cutoff = material.AlphaCutoffOrDefault()
	}
	look := material.PBRMetallicRoughness
	if look == nil {
		return p, nil
	}
	p.factor = look.BaseColorFactorOrDefault()
	if look.BaseColorTexture == nil {
		return p, nil
	}
	only, a, err = named(
		r.doc,
		primitive.Attributes,
		fmt.Sprintf("TEXCOORD_%d", look.BaseColorTexture.TexCoord),
		vertices,
	)
	if err != nil {
		return nil, err
	}
	if a == nil {
		return nil, fmt.Errorf("%w: a texture, but no coordinates of vertices in it", ErrFile)
	}
	if p.coordinates, err = modeler.ReadTextureCoord(only, a, nil); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFile, err)
	}
	p.texture, err = r.texture(look.BaseColorTexture.Index)
	return p, err
}

func (r *painter) texture(index int) (*texture, error) {
	found, err := at(r.doc.Textures, index, "texture")
	if err != nil {
		return nil, err
	}
	if found.Source == nil {
		return nil, fmt.Errorf("%w: texture %d has no image in PNG or JPEG", ErrUnsupported, index)
	}
	t := &texture{}
	if found.Sampler != nil {
		sampler, err := at(r.doc.Samplers, *found.Sampler, "sampler")
		if err != nil {
			return nil, err
		}
		t.wrap = [2]gltf.WrappingMode{sampler.WrapS, sampler.WrapT}
	}
	t.image, err = r.image(*found.Source)
	return t, err
}

func (r *painter) image(index int) (*image.NRGBA, error) {
	if known, ok := r.images[index]; ok {
		return known, nil
	}
	found, err := at(r.doc.Images, index, "image")
	if err != nil {
		return nil, err
	}
	if found.BufferView == nil {
		return nil, fmt.Errorf("%w: image %d is outside of the file", ErrUnsupported, index)
	}
	view, err := at(r.doc.BufferViews, *found.BufferView, "buffer view")
	if err != nil {
		return nil, err
	}
	data, err := contents(r.doc, view)
	if err != nil {
		return nil, err
	}
	header, _, err := image.DecodeConfig(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("%w: image %d: %w", ErrFile, index, err)
	}
	if header.Width < 1 || header.Height < 1 || header.Width > (maxTexture-r.pixels)/header.Height {
		return nil, fmt.Errorf(
			"%w: image %d has %d × %d pixels, expected at most %d in all images",
			ErrUnsupported,
			index,
			header.Width,
			header.Height,
			maxTexture,
		)
	}
	r.pixels += header.Width * header.Height
	picture, _, err := image.Decode(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("%w: image %d: %w", ErrFile, index, err)
	}
	converted := image.NewNRGBA(image.Rect(0, 0, header.Width, header.Height))
	draw.Draw(converted, converted.Rect, picture, picture.Bounds().Min, draw.Src)
	r.images[index] = converted
	return converted, nil
}

// at returns the colour, in sRGB, and the opacity of a position in a triangle.
func (p *paint) at(triangle [3]uint32, share [3]float64) ([3]uint8, float64) {
	linear := p.factor
	if p.colors != nil {
		for channel := range 4 {
			mean := 0.0
			for k, vertex := range triangle {
				mean += share[k] * float64(p.colors[vertex][channel])
			}
			linear[channel] *= mean / math.MaxUint16
		}
	}
	if p.texture != nil {
		var place [2]float64
		for k, vertex := range triangle {
			for axis := range 2 {
				place[axis] += share[k] * float64(p.coordinates[vertex][axis])
			}
		}
		seen := p.texture.at(place)
		for channel := range 4 {
			linear[channel] *= seen[channel]
		}
	}
	return [3]uint8{encode(linear[0]), encode(linear[1]), encode(linear[2])}, linear[3]
}

// at returns the linear colour of a position in the texture: the mean of the four pixels around it.
func (t *texture) at(place [2]float64) [4]float64 {
	size := [2]int{t.image.Rect.Dx(), t.image.Rect.Dy()}
	var low [2]float64
	var part [2]float64
	for axis := range 2 {
		if !(math.Abs(place[axis]) < 1e6) {
			place[axis] = 0
		}
		x := place[axis]*float64(size[axis]) - 0.5
		low[axis] = math.Floor(x)
		part[axis] = x - low[axis]
	}
	var sum [4]float64
	for corner := range 4 {
		x := t.wrapped(0, int(low[0])+corner&1, size[0])
		y := t.wrapped(1, int(low[1])+corner>>1, size[1])
		weight := (1 - part[0] + float64(corner&1)*(2*part[0]-1)) * (1 - part[1] + float64(corner>>1)*(2*part[1]-1))
		pixel := t.image.Pix[y*t.image.Stride+4*x:][:4]
		for channel := range 3 {
			sum[channel] += weight * decoded[pixel[channel]]
		}
		sum[3] += weight * float64(pixel[3]) / 255
	}
	return sum
}

// wrapped returns the pixel that replaces a pixel beyond the edges.
func (t *texture) wrapped(axis, i, size int) int {
	switch t.wrap[axis] {
	case gltf.WrapClampToEdge:
		return min(max(i, 0), size-1)
	case gltf.WrapMirroredRepeat:
		i = ((i % (2 * size)) + 2*size) % (2 * size)
		return min(i, 2*size-1-i)
	}
	return ((i % size) + size) % size
}

// decoded contains the linear values of sRGB (IEC 61966-2-1).
var decoded = func() (table [256]float64) {
	for i := range table {
		v := float64(i) / 255
		if v <= 0.04045 {
			table[i] = v / 12.92
		} else {
			table[i] = math.Pow((v+0.055)/1.055, 2.4)
		}
	}
	return table
}()

// encode returns the sRGB value of a linear value.
func encode(v float64) uint8 {
	v = min(max(v, 0), 1)
	if v <= 0.0031308 {
		v *= 12.92
	} else {
		v = 1.055*math.Pow(v, 1/2.4) - 0.055
	}
	return uint8(v*255 + 0.5)
}
