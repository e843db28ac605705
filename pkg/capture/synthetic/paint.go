package synthetic

import "math"

// shade is a colour in sRGB, 0 to 1 per channel.
type shade [3]float64

func (s shade) mix(other shade, w float64) shade {
	return shade{mix(s[0], other[0], w), mix(s[1], other[1], w), mix(s[2], other[2], w)}
}

func (s shade) times(f float64) shade { return shade{s[0] * f, s[1] * f, s[2] * f} }

// appearance contains the looks of a person.
type appearance struct {
	seed                                     uint64
	style                                    hairStyle
	skin, hair, iris, shirt, trousers, shoes shade
	weave                                    weave
}

// weave is the pattern of the shirt.
type weave int

const (
	plain weave = iota
	striped
	checked
	weaves
)

// The looks from which a seed selects; seed 0 selects the first of each.
var (
	skins = []shade{
		{0.88, 0.69, 0.58},
		{0.93, 0.77, 0.67},
		{0.76, 0.56, 0.43},
		{0.55, 0.37, 0.27},
		{0.38, 0.25, 0.18},
	}
	hairs = []shade{
		{0.22, 0.14, 0.09},
		{0.09, 0.07, 0.06},
		{0.45, 0.31, 0.17},
		{0.55, 0.53, 0.51},
		{0.36, 0.17, 0.08},
	}
	irises = []shade{{0.27, 0.42, 0.55}, {0.28, 0.17, 0.09}, {0.31, 0.40, 0.26}}
	shirts = []shade{
		{0.24, 0.42, 0.66},
		{0.86, 0.87, 0.88},
		{0.58, 0.20, 0.22},
		{0.26, 0.45, 0.36},
		{0.47, 0.45, 0.60},
		{0.80, 0.66, 0.38},
		{0.80, 0.45, 0.22},
		{0.16, 0.50, 0.52},
		{0.80, 0.52, 0.58},
		{0.25, 0.26, 0.28},
		{0.42, 0.44, 0.25},
		{0.40, 0.12, 0.20},
		{0.58, 0.74, 0.86},
		{0.62, 0.78, 0.66},
	}
	slacks = []shade{{0.20, 0.21, 0.26}, {0.19, 0.25, 0.40}, {0.52, 0.46, 0.36}, {0.33, 0.33, 0.34}, {0.62, 0.60, 0.56},
		{0.24, 0.29, 0.22}, {0.34, 0.24, 0.18}}
	leathers = []shade{{0.30, 0.19, 0.12}, {0.10, 0.10, 0.11}, {0.78, 0.78, 0.77}}
)

// Hash channels of the looks.
const (
	lookSkin uint64 = iota + 1
	lookHair
	lookIris
	lookShirt
	lookTrousers
	lookShoes
	lookWeave
	lookStyle
	texturePoint
	textureSkin
	textureHair
	textureCloth
	textureFold
)

func newAppearance(seed uint64) appearance {
	pick := func(channel uint64, count int) int {
		if seed == 0 {
			return 0
		}
		return int(hash(seed, channel, 0) * float64(count))
	}
	return appearance{
		seed:     seed,
		style:    hairStyle(pick(lookStyle, int(hairStyles))),
		skin:     skins[pick(lookSkin, len(skins))],
		hair:     hairs[pick(lookHair, len(hairs))],
		iris:     irises[pick(lookIris, len(irises))],
		shirt:    shirts[pick(lookShirt, len(shirts))],
		trousers: slacks[pick(lookTrousers, len(slacks))],
		shoes:    leathers[pick(lookShoes, len(leathers))],
		weave:    weave(pick(lookWeave, int(weaves))),
	}
}

// light is the direction of the main light: from above and in front, slightly from the person's
// right. Ambient light comes from all directions.
var light = vector{-0.30, 0.68, 0.67}

// paint returns the colour of a sample from its material, the light at rest, and camera grain.
func (a *appearance) paint(s *sample, index int) [3]uint8 {
	var base shade
	switch s.material {
	case skin:
		base = a.paintSkin(s)
	case eyeball:
		base = a.paintEye(s.position)
	case hair:
		strand := texture(a.seed, textureHair, vector{s.position[0] * 6, s.position[1], s.position[2] * 2}, 0.02)
		base = a.hair.times(1 + 0.25*strand)
	case cloth:
		base = a.paintShirt(s)
	case collar:
		base = a.shirt.mix(shade{1, 1, 1}, 0.10).times(1 + 0.03*texture(a.seed, textureCloth, s.position, 0.004))
	case trousers:
		base = a.paintTrousers(s)
	case shoe:
		base = a.paintShoe(s.position)
	}
	bright := 0.62 + 0.42*max(0, s.normal.dot(light)) + 0.06*s.normal[1]
	bright *= 0.55 + 0.45*s.openness
	var out [3]uint8
	for channel := range 3 {
		grain := 0.012 * (2*hash(a.seed, texturePoint, int64(3*index+channel)) - 1)
		out[channel] = uint8(255*min(max(base[channel]*bright+grain, 0), 1) + 0.5)
	}
	return out
}

func (a *appearance) lip() shade { return a.skin.mix(shade{0.66, 0.24, 0.24}, 0.42) }

// paintSkin draws the brows, the lids, and the redder and darker areas of face and hands.
func (a *appearance) paintSkin(s *sample) shade {
	p := s.position
	base := a.skin.times(1 + 0.03*texture(a.seed, textureSkin, p, 0.012))
	if s.owner != head && s.owner != jaw {
		return base
	}
	x := math.Abs(p[0])
	if p[2] > 0.04 {
		cheek := math.Hypot((x-0.042)/0.022, (p[1]-1.600)/0.016)
		base = base.mix(shade{0.80, 0.36, 0.32}, 0.16*(1-smoothStep(cheek/1.4)))
		nose := vector{p[0], p[1] - 1.604, p[2] - 0.112}.length()
		base = base.mix(shade{0.78, 0.38, 0.33}, 0.14*(1-smoothStep(nose/0.02)))
		if nostril := (vector{x - 0.0075, p[1] - 1.5955, 0}).length(); nostril < 0.0045 && s.normal[1] < -0.3 {
			base = base.times(0.35)
		}
		if colour, ok := a.paintMouth(x, p[1]-mouth[1]); ok {
			return colour
		}
		// The brow is an arch, thinner towards the outside.
		arch := 1.6515 + 0.006*(1-math.Pow((x-0.030)/0.020, 2))
		if x > 0.012 && x < 0.051 && math.Abs(p[1]-arch) < mix(0.0048, 0.0022, ramp(0.03, 0.051, x)) {
			return a.hair.mix(a.skin, 0.12)
		}
		// Lashes and the shadow of the lid surround the opening of the eye.
		opening := math.Hypot((x-eye[0])/0.0165, (p[1]-eye[1])/0.0085)
		if opening < 1.35 && p[2] > 0.055 {
			base = base.times(mix(0.45, 0.85, ramp(0.9, 1.35, opening)))
		}
	}
	if ear := x > 0.070 && p[2] < 0.02 && p[1] < 1.65; ear {
		base = base.mix(shade{0.80, 0.40, 0.36}, 0.10)
	}
	return base
}

// paintMouth draws the lips and the dark line between them, given the distances from the middle of
// the mouth.
func (a *appearance) paintMouth(x, height float64) (shade, bool) {
	const half = 0.0235
	if x > half {
		return shade{}, false
	}
	narrowing := 1 - x*x/(half*half)
	height += 0.003 * (1 - narrowing) // corners slightly raised for a friendly face
	upper := 0.0066*narrowing - 0.0012*max(0, 1-x/0.005)
	switch {
	case math.Abs(height) < 0.0018:
		return a.lip().times(0.55), true
	case height > 0 && height < upper:
		return a.lip().times(0.92), true
	case height < 0 && height > -0.0085*narrowing:
		return a.lip(), true
	}
	return shade{}, false
}

func (a *appearance) paintEye(p vector) shade {
	away := math.Hypot(math.Abs(p[0])-eye[0], p[1]-eye[1])
	switch {
	case away < 0.0026:
		return shade{0.05, 0.05, 0.06}
	case away < 0.0062:
		return a.iris.times(mix(1.1, 0.6, ramp(0.0035, 0.0062, away)))
	}
	return shade{0.93, 0.92, 0.91}
}

func (a *appearance) paintShirt(s *sample) shade {
	p := s.position
	base := a.shirt
	arm := s.owner >= leftUpperArm
	along, around := p[1], p[0]
	if arm {
		x := vector{math.Abs(p[0]), p[1], p[2]}.sub(leftShoulder)
		along, around = x.dot(armDirection), x.dot(armAxis)+p[2]
	}
	switch a.weave {
	case striped:
		if math.Mod(around+1, 0.036) < 0.008 {
			base = base.mix(shade{0.95, 0.95, 0.96}, 0.55)
		}
	case checked:
		for _, line := range [2]float64{along, around} {
			if math.Mod(line+1, 0.05) < 0.014 {
				base = base.times(0.72)
			}
		}
	}
	base = base.times(1 + 0.03*texture(a.seed, textureCloth, p, 0.004))
	if !arm && p[2] > 0 && math.Abs(p[0]) < 0.0165 {
		// The button band: its edge, and a button every 9 cm.
		if math.Abs(p[0]) > 0.0135 {
			base = base.times(0.78)
		}
		if button := math.Mod(p[1]+1, 0.09) - 0.045; math.Hypot(p[0], button) < 0.0062 {
			base = shade{0.93, 0.92, 0.88}
		}
	}
	if arm && leftElbow.toward(leftWristBase, 0.835).sub(vector{math.Abs(p[0]), p[1], p[2]}).dot(armDirection) < 0 {
		base = base.times(0.92) // the cuff
	}
	return base
}

func (a *appearance) paintTrousers(s *sample) shade {
	p := s.position
	base := a.trousers.times(1 + 0.05*texture(a.seed, textureCloth, p, 0.004))
	if s.position[1] > belt-0.035 {
		return paintBelt(p)
	}
	if seam := math.Abs(math.Abs(p[0]) - 0.10); p[1] < 0.85 && seam < 0.004 && p[2] > 0 {
		base = base.times(1.12) // the crease
	}
	return base
}

func paintBelt(p vector) shade {
	if x := math.Abs(p[0]); p[2] > 0 && x < 0.022 && (x > 0.016 || math.Abs(p[1]-belt+0.0175) > 0.010) {
		return shade{0.72, 0.70, 0.64} // the buckle
	}
	return shade{0.17, 0.12, 0.09}
}

func (a *appearance) paintShoe(p vector) shade {
	if p[1] < 0.020 {
		return a.shoes.times(0.45) // the sole
	}
	laced := p[2] > 0.010 && p[2] < 0.085 && p[1] > 0.055
	if laced && math.Mod(p[2], 0.016) < 0.006 && math.Abs(math.Abs(p[0])-0.117) < 0.020 {
		return a.shoes.mix(shade{0.9, 0.88, 0.82}, 0.5)
	}
	return a.shoes
}

// relief returns the displacement of a sample from the ideal surface: folds of cloth, locks of
// hair, and the noise of a good depth camera (0.3 mm).
func (a *appearance) relief(s *sample, index int) float64 {
	height := 0.0003 * (2*hash(a.seed, texturePoint, int64(-1-index)) - 1)
	p := s.position
	switch s.material {
	case cloth:
		// Folds run across: the texture is stretched sideways. They are deeper at the waist and at
		// the elbows.
		depth := 0.0022 + 0.0035*(1-ramp(0, 0.12, math.Abs(p[1]-1.0)))
		if s.owner >= leftUpperArm {
			depth = 0.002 + 0.0025*(1-ramp(0, 0.10, vector{math.Abs(p[0]), p[1], p[2]}.sub(leftElbow).length()))
		}
		height += depth * texture(a.seed, textureFold, vector{p[0] * 0.45, p[1], p[2] * 0.45}, 0.03)
	case trousers:
		depth := 0.0022 + 0.003*(1-ramp(0, 0.10, math.Abs(p[1]-0.52))) + 0.0035*(1-ramp(0, 0.12, p[1]-0.05))
		height += depth * texture(a.seed, textureFold, vector{p[0] * 0.5, p[1], p[2] * 0.5}, 0.035)
	case hair:
		height += 0.004 * texture(a.seed, textureHair, vector{p[0] * 2.5, p[1], p[2]}, 0.018)
	}
	return height
}
