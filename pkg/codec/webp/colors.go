package webp

// The conversions are those of libwebp (dsp/yuv.h): BT.601 with luma of 16 to 235 and chroma of 16 to 240, in fixed
// point.

// fromPixels converts RGB pixels. The chroma of a square is that of the mean of its pixels, of 1, 2 or 4.
func (p *planes) fromPixels(pixels []byte) {
	chroma := p.chroma()
	for y := 0; y < p.height; y += 2 {
		lower := min(y+1, p.height-1)
		upperRow, lowerRow := pixels[channels*y*p.width:], pixels[channels*lower*p.width:]
		upperLuma, lowerLuma := p.luma[y*p.width:][:p.width], p.luma[lower*p.width:][:p.width]
		blue, red := p.blue[y/2*chroma:][:chroma], p.red[y/2*chroma:][:chroma]
		for i := range blue {
			left := 2 * i
			right := min(left+1, p.width-1)
			a, b := (*[channels]byte)(upperRow[channels*left:]), (*[channels]byte)(upperRow[channels*right:])
			c, d := (*[channels]byte)(lowerRow[channels*left:]), (*[channels]byte)(lowerRow[channels*right:])
			upperLuma[left], upperLuma[right] = lumaOf(a), lumaOf(b)
			lowerLuma[left], lowerLuma[right] = lumaOf(c), lumaOf(d)
			r := int32(a[0]) + int32(b[0]) + int32(c[0]) + int32(d[0])
			g := int32(a[1]) + int32(b[1]) + int32(c[1]) + int32(d[1])
			l := int32(a[2]) + int32(b[2]) + int32(c[2]) + int32(d[2])
			// The sums of four and the 16 bits of the factors take 18 bits; 128 is the value without colour.
			const offset = 128<<18 + 1<<17
			blue[i] = uint8((-9719*r - 19081*g + 28800*l + offset) >> 18)
			red[i] = uint8((28800*r - 24116*g - 4684*l + offset) >> 18)
		}
	}
}

// lumaOf returns the luma of a pixel.
func lumaOf(c *[channels]byte) uint8 {
	return uint8((16839*int32(c[0]) + 33059*int32(c[1]) + 6420*int32(c[2]) + 16<<16 + 1<<15) >> 16)
}

// toPixels converts planes with the given distances of rows to RGB pixels.
func toPixels(pixels, luma []byte, lumaStride int, blue, red []byte, chromaStride, width int) {
	height := len(pixels) / channels / width
	for y := range height {
		line := pixels[channels*y*width:][:channels*width]
		values := luma[y*lumaStride:][:width]
		blues, reds := blue[y/2*chromaStride:], red[y/2*chromaStride:]
		for x, v := range values {
			l, u, w := int32(v)*19077>>8, int32(blues[x/2]), int32(reds[x/2])
			c := (*[channels]byte)(line[channels*x:])
			c[0] = clipped(l + w*26149>>8 - 14234)
			c[1] = clipped(l - u*6419>>8 - w*13320>>8 + 8708)
			c[2] = clipped(l + u*33050>>8 - 17685)
		}
	}
}

// clipped returns a value of 14 bits as 8 bits.
func clipped(v int32) uint8 { return uint8(min(max(v>>6, 0), 255)) }
