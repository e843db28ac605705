package visual

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/color"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// flat returns a plane of one brightness.
func flat(width, height int, value uint8) *Plane {
	return &Plane{width, height, bytes.Repeat([]byte{value}, width*height)}
}

// noise returns a plane of random values.
func noise(width, height int, seed uint64) *Plane {
	random := rand.New(rand.NewPCG(seed, 0))
	p := flat(width, height, 0)
	for i := range p.Pixels {
		p.Pixels[i] = uint8(random.UintN(256))
	}
	return p
}

func near(t *testing.T, what string, got, want, within float64) {
	t.Helper()
	if !(math.Abs(got-want) <= within) {
		t.Errorf("%s: got %.6f, want %.6f", what, got, want)
	}
}

// TestPSNR: the values follow from the definition, computed by hand.
func TestPSNR(t *testing.T) {
	half := flat(16, 16, 100)
	for i := range half.Pixels[:128] {
		half.Pixels[i] = 110
	}
	tests := []struct {
		name             string
		reference, shown *Plane
		want             float64
	}{
		{"the same", flat(16, 16, 100), flat(16, 16, 100), BestPSNR},
		{"one step", flat(16, 16, 100), flat(16, 16, 101), 48.130804},                 // 20·lg 255
		{"ten steps", flat(16, 16, 100), flat(16, 16, 110), 28.130804},                // 20·lg 25.5
		{"ten steps in one half", flat(16, 16, 100), half, 31.141104},                 // 10·lg(255²/50)
		{"black and white", flat(16, 16, 0), flat(16, 16, 255), 0},                    // 20·lg 1
		{"darker instead of brighter", flat(16, 16, 110), flat(16, 16, 100), 28.1308}, //
	}
	for _, test := range tests {
		got, err := PSNR(test.reference, test.shown)
		if err != nil {
			t.Fatal(err)
		}
		near(t, test.name, got, test.want, 1e-4)
	}
}

// TestSSIM: flat pictures have no structure, so that only the term of brightness counts. For noise, the expected value
// is computed by another implementation of the definition.
func TestSSIM(t *testing.T) {
	tests := []struct {
		name             string
		reference, shown *Plane
		want             float64
	}{
		{"the same noise", noise(32, 24, 1), noise(32, 24, 1), 1},
		{"brighter", flat(16, 16, 100), flat(16, 16, 120), (2*100*120 + 6.5025) / (100*100 + 120*120 + 6.5025)},
		{"black and white", flat(16, 16, 0), flat(16, 16, 255), 6.5025 / (255*255 + 6.5025)},
		{"other noise", noise(33, 26, 1), noise(33, 26, 2), slowSSIM(noise(33, 26, 1), noise(33, 26, 2))},
	}
	for _, test := range tests {
		got, err := SSIM(test.reference, test.shown)
		if err != nil {
			t.Fatal(err)
		}
		near(t, test.name, got, test.want, 1e-9)
	}
	if got, _ := SSIM(noise(64, 64, 1), noise(64, 64, 2)); math.Abs(got) > 0.1 {
		t.Errorf("two different noises have an SSIM of %g", got)
	}
}

// TestWithin compares a part of a picture: pixels outside neither count nor help.
func TestWithin(t *testing.T) {
	reference, shown := noise(64, 48, 1), noise(64, 48, 1)
	inside := make([]bool, len(reference.Pixels))
	for y := 8; y < 24; y++ {
		for x := 16; x < 40; x++ {
			inside[y*64+x] = true
		}
	}
	psnr, ssim, err := Within(reference, shown, inside)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "PSNR of equal pictures", psnr, BestPSNR, 0)
	near(t, "SSIM of equal pictures", ssim, 1, 1e-9)
	for i, is := range inside {
		if is {
			shown.Pixels[i] ^= 16
		}
	}
	if psnr, ssim, err = Within(reference, shown, inside); err != nil {
		t.Fatal(err)
	}
	near(t, "PSNR of a difference of 16", psnr, 20*math.Log10(255.0/16), 1e-6)
	whole, err := SSIM(reference, shown)
	if err != nil {
		t.Fatal(err)
	}
	if ssim >= whole {
		t.Errorf("SSIM of the part is %g, expected less than %g of the picture, most of which is equal", ssim, whole)
	}
	if _, _, err = Within(reference, shown, make([]bool, len(inside))); !errors.Is(err, ErrSize) {
		t.Errorf("without a pixel inside: %v, expected %v", err, ErrSize)
	}
}

// TestAsFFmpeg: the filters ssim and psnr of FFmpeg 9.0 report Y:0.899305 and psnr_y:19.765030 for these two pictures.
func TestAsFFmpeg(t *testing.T) {
	pattern := func(shift int) *Plane {
		picture := image.NewRGBA(image.Rect(0, 0, 64, 48))
		for i := range 64 * 48 {
			x, y := i%64, i/64
			v := uint8((x*x + y*7 + shift*(x%5)) / 3)
			picture.SetRGBA(x, y, color.RGBA{v, v, v, 255})
		}
		p := new(Plane)
		p.Luma(picture)
		return p
	}
	a, b := pattern(0), pattern(9)
	ssim, err := SSIM(a, b)
	if err != nil {
		t.Fatal(err)
	}
	psnr, err := PSNR(a, b)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "SSIM", ssim, 0.899305, 1e-6)
	near(t, "PSNR", psnr, 19.765030, 1e-6)
}

// slowSSIM computes the definition with deviations from means, in two passes.
func slowSSIM(a, b *Plane) float64 {
	sum, count := 0.0, 0.0
	for y := 0; y+8 <= a.Height; y += 4 {
		for x := 0; x+8 <= a.Width; x += 4 {
			var meanA, meanB, varA, varB, cov float64
			each := func(visit func(u, v float64)) {
				for i := range 64 {
					at := (y+i/8)*a.Width + x + i%8
					visit(float64(a.Pixels[at]), float64(b.Pixels[at]))
				}
			}
			each(func(u, v float64) { meanA, meanB = meanA+u/64, meanB+v/64 })
			each(func(u, v float64) {
				varA, varB, cov = varA+(u-meanA)*(u-meanA)/63, varB+(v-meanB)*(v-meanB)/63, cov+(u-meanA)*(v-meanB)/63
			})
			sum += (2*meanA*meanB + 6.5025) * (2*cov +
				58.5225) / ((meanA*meanA + meanB*meanB + 6.5025) * (varA + varB + 58.5225))
			count++
		}
	}
	return sum / count
}

func TestSizes(t *testing.T) {
	for _, pair := range [][2]*Plane{{flat(16, 16, 0), flat(16, 17, 0)}, {flat(7, 16, 0), flat(7, 16, 0)}, {{}, {}}} {
		if _, err := PSNR(pair[0], pair[1]); !errors.Is(err, ErrSize) {
			t.Errorf("PSNR: got %v", err)
		}
		if _, err := SSIM(pair[0], pair[1]); !errors.Is(err, ErrSize) {
			t.Errorf("SSIM: got %v", err)
		}
	}
}

// swatch returns a picture of one colour.
func swatch(c color.RGBA) *image.RGBA {
	picture := image.NewRGBA(image.Rect(0, 0, 16, 16))
	for i := range 256 {
		picture.SetRGBA(i%16, i/16, c)
	}
	return picture
}

// TestFilm: colours have the values of BT.709.
func TestFilm(t *testing.T) {
	var film bytes.Buffer
	y, err := NewY4M(&film, 16, 16, 29.97)
	if err != nil {
		t.Fatal(err)
	}
	colors := []struct {
		rgb  color.RGBA
		want [3]uint8
	}{
		{color.RGBA{255, 255, 255, 255}, [3]uint8{235, 128, 128}},
		{color.RGBA{0, 0, 0, 255}, [3]uint8{16, 128, 128}},
		{color.RGBA{255, 0, 0, 255}, [3]uint8{63, 102, 240}},
		{color.RGBA{0, 255, 0, 255}, [3]uint8{173, 42, 26}},
		{color.RGBA{0, 0, 255, 255}, [3]uint8{32, 240, 118}},
	}
	for _, c := range colors {
		if err := y.Write(swatch(c.rgb)); err != nil {
			t.Fatal(err)
		}
	}
	if err := y.Flush(); err != nil {
		t.Fatal(err)
	}
	head, rest, _ := bytes.Cut(film.Bytes(), []byte("\n"))
	if want := "YUV4MPEG2 W16 H16 F29970:1000 Ip A1:1 C420jpeg XCOLORRANGE=LIMITED"; string(head) != want {
		t.Errorf("the film begins with %q", head)
	}
	const frame = len("FRAME\n") + 256 + 2*64
	if len(rest) != len(colors)*frame {
		t.Fatalf("%d bytes of pictures, want %d of %d", len(rest), len(colors), frame)
	}
	for i, c := range colors {
		pixels := rest[i*frame+len("FRAME\n"):]
		if got := [3]uint8{pixels[0], pixels[256], pixels[256+64]}; got != c.want {
			t.Errorf("%v is %v, want %v", c.rgb, got, c.want)
		}
	}
	if err := y.Write(image.NewRGBA(image.Rect(0, 0, 16, 18))); !errors.Is(err, ErrSize) {
		t.Errorf("a larger picture: %v", err)
	}
	if _, err := NewY4M(&film, 15, 16, 30); !errors.Is(err, ErrSize) {
		t.Errorf("an odd width: %v", err)
	}
}

func TestSequence(t *testing.T) {
	got := SequenceOf([]float64{70, 80, 90, 80})
	near(t, "mean", got.Mean, 80, 1e-9)
	near(t, "deviation", got.Deviation, math.Sqrt(50), 1e-9)
	if got.Min != 70 || got.Max != 90 || got.Frames != 4 {
		t.Errorf("got %+v", got)
	}
	if got := SequenceOf(nil); got != (Sequence{}) {
		t.Errorf("without scores: %+v", got)
	}
}

func TestParseScores(t *testing.T) {
	got, err := parseScores([]byte(`{"version":"3.0.0","frames":[
		{"frameNum":0,"metrics":{"integer_motion":0.0,"vmaf":93.5}},{"frameNum":1,"metrics":{"vmaf":0}}]}`))
	if err != nil || fmt.Sprint(got) != "[93.5 0]" {
		t.Errorf("got %v, %v", got, err)
	}
	for _, text := range []string{"", "{}", `{"frames":[]}`, `{"frames":[{"metrics":{}}]}`,
		`{"frames":[{"metrics":{"vmaf":"x"}}]}`} {
		if _, err := parseScores([]byte(text)); !errors.Is(err, ErrScores) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func FuzzParseScores(f *testing.F) {
	f.Add([]byte(`{"frames":[{"frameNum":0,"metrics":{"vmaf":93.5}}]}`))
	f.Add([]byte(`{"frames":[{}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		scores, err := parseScores(text)
		if (err == nil) == (len(scores) == 0) {
			t.Errorf("%d scores and %v", len(scores), err)
		}
	})
}

// TestVMAF runs a VMAF program if one is installed: a picture compared with itself has the best score, and noise does
// not.
func TestVMAF(t *testing.T) {
	v, err := FindVMAF(t.Context(), "../../.tools/bin")
	if errors.Is(err, ErrNoVMAF) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name string, c color.RGBA) string {
		var film bytes.Buffer
		y, _ := NewY4M(&film, 64, 64, 30)
		picture := image.NewRGBA(image.Rect(0, 0, 64, 64))
		for i := range picture.Pix {
			picture.Pix[i] = uint8(i*i>>3) & c.R
		}
		for range 3 {
			if err := y.Write(picture); err != nil {
				t.Fatal(err)
			}
		}
		if err := y.Flush(); err != nil {
			t.Fatal(err)
		}
		return writeFile(t, dir, name, film.Bytes())
	}
	whole, coarse := write("whole.y4m", color.RGBA{R: 255}), write("coarse.y4m", color.RGBA{R: 128})
	same, err := v.Scores(t.Context(), whole, whole)
	if err != nil {
		t.Fatal(err)
	}
	worse, err := v.Scores(t.Context(), whole, coarse)
	if err != nil {
		t.Fatal(err)
	}
	if len(same) != 3 || len(worse) != 3 || same[0] < 90 || worse[0] > same[0]-10 {
		t.Errorf("a film compared with itself: %v, compared with a coarse film: %v", same, worse)
	}
	if _, err := v.Scores(t.Context(), whole, whole+".missing"); err == nil || !strings.Contains(err.Error(), v.Path) {
		t.Errorf("a missing film: %v", err)
	}
}

func writeFile(t *testing.T, dir, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, data, 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}
