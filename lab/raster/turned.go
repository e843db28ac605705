package raster

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"time"

	"github.com/volsfu/volsfu/lab/suite"
	"github.com/volsfu/volsfu/lab/visual"
	"github.com/volsfu/volsfu/pkg/capture"
	"github.com/volsfu/volsfu/pkg/capture/depth"
	"github.com/volsfu/volsfu/pkg/capture/glb"
	"github.com/volsfu/volsfu/pkg/capture/virtual"
	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/codec/rgbd"
	"github.com/volsfu/volsfu/pkg/pointcloud"
	"github.com/volsfu/volsfu/test/claim"
)

// The claims for views turned from the camera's, over points at equal bytes.
const (
	turnedPSNR = 2    // dB
	turnedSSIM = 0.15 // more
)

const (
	// turnedNoise is the white noise of the camera in millimetres.
	turnedNoise = 1.0
	// turnedStep is the distance of two frames that are shown, and turnedFrames their number: poses of a walk.
	turnedStep, turnedFrames = 10, 3
	// turnedScale is the size of the pictures in relation to the camera's image, and supersampled that of the reference
	// in relation to the pictures.
	turnedScale, supersampled = 2, 2
	// turnedSurface is the distance in metres within which a place is the one that the camera's pixel sees.
	turnedSurface = 0.01
	// drawingTime bounds the time of building programs and drawing the pictures.
	drawingTime = 10 * time.Minute
)

// turnedAngles are the turns around the person in degrees.
var turnedAngles = []float64{-30, -15, 15, 30}

// The place of the camera of noisyLens, and the point at which the camera looks.
var (
	lensPlace  = [3]float64{0, 1.15, 0.95}
	lensTarget = [3]float64{0, 1.1, 0}
)

// scene is a file for TestDrawTurned of test/browser, in the coordinates of the capture.
type scene struct {
	Width  int         `json:"width"`
	Height int         `json:"height"`
	FOV    float64     `json:"fov"`
	Views  []sceneView `json:"views"`
	Shots  []sceneShot `json:"shots"`
}

type sceneView struct {
	Name     string     `json:"name"`
	Position [3]float64 `json:"position"`
	Target   [3]float64 `json:"target"`
}

// sceneShot is one frame in one coding. Light requests the picture for slow computers.
type sceneShot struct {
	Name  string      `json:"name"`
	Light bool        `json:"light"`
	Tiles []sceneTile `json:"tiles"`
}

// sceneTile is a raster or points. Numbers are little-endian in Base64.
type sceneTile struct {
	Raster    *sceneRaster `json:"raster,omitempty"`
	Positions string       `json:"positions,omitempty"`
	Colors    string       `json:"colors,omitempty"`
}

// sceneRaster is a raster as the pages have it (clients/web/src/decode/rgbd/raster.ts).
type sceneRaster struct {
	Camera    sceneCamera `json:"camera"`
	Reduction int         `json:"reduction"`
	Left      int         `json:"left"`
	Top       int         `json:"top"`
	Columns   int         `json:"columns"`
	Rows      int         `json:"rows"`
	Depths    string      `json:"depths"`
	Colors    string      `json:"colors"`
}

type sceneCamera struct {
	Width  int       `json:"width"`
	Height int       `json:"height"`
	FX     float64   `json:"fx"`
	FY     float64   `json:"fy"`
	CX     float64   `json:"cx"`
	CY     float64   `json:"cy"`
	Pose   scenePose `json:"pose"`
}

type scenePose struct {
	Rotation    []float64  `json:"rotation"`
	Translation [3]float64 `json:"translation"`
}

// turnedWay is a way of coding and drawing.
type turnedWay struct {
	name  string
	light bool
	tiles func(*turnedFrame) []sceneTile
}

var turnedWays = []turnedWay{
	{"surfels", false, func(f *turnedFrame) []sceneTile { return f.rasters }},
	{"points", false, func(f *turnedFrame) []sceneTile { return f.points }},
	{"surfels-light", true, func(f *turnedFrame) []sceneTile { return f.rasters }},
	{"points-light", true, func(f *turnedFrame) []sceneTile { return f.points }},
	{"points-all", false, func(f *turnedFrame) []sceneTile { return f.all }},
}

// turnedFrame is a frame in the codings that are compared: rasters of rgbd, as many points of draco+jpeg as have the
// same bytes, and all points of draco+jpeg.
type turnedFrame struct {
	index                int
	rasters, points, all []sceneTile
	bytes, pointBytes    int
	share                float64
}

// turned draws a mesh that a virtual camera with noise captured from sides where the camera was not, as the viewer
// draws in Chromium. The pictures are compared with the true surface, in the places that the camera saw.
func turned(ctx context.Context, b *bench) ([]claim.Line, error) {
	spec, err := b.source("glb", "cesium-man/CesiumMan.glb")
	if err != nil {
		return nil, err
	}
	o := capture.DefaultOptions()
	o.Background = depth.Background{Box: upperBody}
	count := min((turnedFrames-1)*turnedStep+1, b.options.Frames)
	film, err := shootVirtual(ctx, b, fmt.Sprintf(noisyLens, turnedNoise), o, count)
	if err != nil {
		return nil, err
	}
	truth, err := shootVirtual(ctx, b, fmt.Sprintf(noisyLens, 0.0), o, count)
	if err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp("", "turned")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	s := newScene(&film.camera)
	var frames []turnedFrame
	for i := 0; i < count; i += turnedStep {
		f, err := film.codeTurned(i)
		if err != nil {
			return nil, err
		}
		frames = append(frames, f)
		for _, way := range turnedWays {
			s.Shots = append(s.Shots, sceneShot{fmt.Sprintf("%s-%d", way.name, i), way.light, way.tiles(&f)})
		}
	}
	if err := s.write(folder); err != nil {
		return nil, err
	}
	drawing := &suite.Tests{Progress: b.progress, Title: "views turned from the camera's", Parts: []suite.Part{{
		Package: "test/browser", Pattern: "^TestDrawTurned$", Arguments: []string{"-turned", folder},
		Limit: drawingTime,
	}}}
	if lines, err := drawing.Run(ctx); err != nil || len(lines) > 0 {
		// Without figures, a line is that of a skipped test.
		return lines, err
	}
	return judgeTurned(folder, spec, film, truth, frames)
}

// newScene returns a scene with the views.
func newScene(camera *depth.Camera) *scene {
	s := &scene{Width: turnedScale * camera.Width, Height: turnedScale * camera.Height,
		FOV: 360 / math.Pi * math.Atan(float64(camera.Height)/2/camera.FY)}
	for _, angle := range turnedAngles {
		sin, cos := math.Sincos(angle * math.Pi / 180)
		s.Views = append(s.Views, sceneView{Name: fmt.Sprint(angle), Target: lensTarget,
			Position: [3]float64{lensPlace[2] * sin, lensPlace[1], lensPlace[2] * cos}})
	}
	return s
}

func (s *scene) write(folder string) error {
	data, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, "scene.json"), data, 0o600)
}

// codeTurned codes a frame in all ways.
func (f *film) codeTurned(index int) (turnedFrame, error) {
	t := turnedFrame{index: index}
	frame := &f.frames[index]
	encoder, decoder := rgbd.Codec.NewEncoder().(codec.RasterEncoder), rgbd.Codec.NewDecoder().(codec.RasterDecoder)
	rects, err := rgbd.Rectangles(&f.camera, &frame.Rasters[0], 4)
	if err != nil {
		return t, err
	}
	for _, rect := range rects {
		if rect.Empty() {
			continue
		}
		data, points, err := encoder.EncodeRaster(nil, &f.camera, &frame.Rasters[0], codec.RasterParams{Rect: rect,
			Step: 0.00065, ColorQuality: 80})
		if err != nil {
			return t, err
		}
		if points == 0 {
			continue
		}
		t.bytes += len(data)
		var r codec.Raster
		if err := decoder.DecodeRaster(&r, data); err != nil {
			return t, err
		}
		t.rasters = append(t.rasters, sceneTile{Raster: rasterOf(&r)})
	}
	return t, t.codePoints(&frame.Cloud)
}

// codePoints codes all points, and as many, chosen at random, as have the bytes of the rasters.
func (t *turnedFrame) codePoints(cloud *pointcloud.Cloud) error {
	c, err := codec.ByName("draco+jpeg")
	if err != nil {
		return err
	}
	encoder := c.NewEncoder()
	params := codec.Params{PositionBits: 11, Speed: 10, ColorQuality: 85, Box: cloud.Bounds()}
	order := rand.New(rand.NewPCG(1, uint64(t.index))).Perm(cloud.Len())
	encode := func(n int) (data []byte, err error) {
		chosen := slices.Clone(order[:n])
		slices.Sort(chosen)
		var part pointcloud.Cloud
		for _, i := range chosen {
			part.Append(cloud.Positions[i], cloud.Colors[i])
		}
		return encoder.Encode(nil, &part, params)
	}
	// The first number of points that has more bytes than the rasters.
	more := sort.Search(cloud.Len(), func(n int) bool {
		if n == 0 || err != nil {
			return err != nil
		}
		var data []byte
		data, err = encode(n)
		return len(data) > t.bytes
	})
	if err != nil {
		return err
	}
	for _, into := range []struct {
		tiles *[]sceneTile
		n     int
	}{{&t.points, more - 1}, {&t.all, cloud.Len()}} {
		data, err := encode(into.n)
		if err != nil {
			return err
		}
		var decoded pointcloud.Cloud
		if err := c.NewDecoder().Decode(&decoded, data); err != nil {
			return err
		}
		*into.tiles = []sceneTile{pointsOf(&decoded)}
		if into.tiles == &t.points {
			t.pointBytes, t.share = len(data), float64(into.n)/float64(cloud.Len())
		}
	}
	return nil
}

func rasterOf(r *codec.Raster) *sceneRaster {
	c := &r.Camera
	var rotation []float64
	for _, row := range c.Pose.Rotation {
		rotation = append(rotation, row[:]...)
	}
	var depths, colors []byte
	for i, d := range r.Depths {
		depths = binary.LittleEndian.AppendUint32(depths, math.Float32bits(d))
		colors = append(colors, r.Colors[i][0], r.Colors[i][1], r.Colors[i][2], 255)
	}
	return &sceneRaster{
		Camera: sceneCamera{c.Width, c.Height, c.FX, c.FY, c.CX, c.CY, scenePose{rotation, c.Pose.Translation}},
		Left:   r.Rect.Min.X, Top: r.Rect.Min.Y, Columns: r.Rect.Dx(), Rows: r.Rect.Dy(), Reduction: r.Reduction,
		Depths: base64.StdEncoding.EncodeToString(depths), Colors: base64.StdEncoding.EncodeToString(colors),
	}
}

func pointsOf(cloud *pointcloud.Cloud) sceneTile {
	var positions, colors []byte
	for i, p := range cloud.Positions {
		for _, v := range p {
			positions = binary.LittleEndian.AppendUint32(positions, math.Float32bits(v))
		}
		colors = append(colors, cloud.Colors[i][:]...)
	}
	return sceneTile{Positions: base64.StdEncoding.EncodeToString(positions),
		Colors: base64.StdEncoding.EncodeToString(colors)}
}

// judgeTurned compares the pictures with the true surface. Figures are means over frames and both directions.
func judgeTurned(folder, spec string, film, truth *film, frames []turnedFrame) (lines []claim.Line, err error) {
	figure, err := glb.Open(spec[len("glb:"):], glb.Config{Points: 1, FrameRate: frameRate})
	if err != nil {
		return nil, err
	}
	type score struct{ psnr, ssim float64 }
	scores := make(map[string]score) // by way and the size of the angle
	share, bytes := 0.0, 0.0
	pairs := float64(2 * len(frames))
	for i := range frames {
		f := &frames[i]
		share += f.share / float64(len(frames))
		bytes += float64(f.pointBytes) / float64(f.bytes) / float64(len(frames))
		for _, view := range newScene(&film.camera).Views {
			reference, seen, err := trueView(figure, f.index, view, &film.camera, &truth.frames[f.index].Rasters[0])
			if err != nil {
				return nil, err
			}
			for _, way := range turnedWays {
				path := filepath.Join(folder, fmt.Sprintf("%s-%d-%s.png", way.name, f.index, view.Name))
				psnr, ssim, err := compareSeen(path, reference, seen)
				if err != nil {
					return nil, err
				}
				key := way.name + turnOf(view.Name)
				scores[key] = score{scores[key].psnr + psnr/pairs, scores[key].ssim + ssim/pairs}
			}
		}
	}
	lines = []claim.Line{
		claim.Information("points of draco+jpeg with the bytes of rgbd", 100*share, "% of all"),
		claim.Information("bytes of these points beside rgbd", 100*bytes, "%"),
	}
	for _, turn := range []string{"15", "30"} {
		surfels, points := scores["surfels"+turn], scores["points"+turn]
		name := func(text string) string { return fmt.Sprintf("turned %s°: %s", turn, text) }
		lines = append(lines,
			claim.AtLeast(name("PSNR over points of equal bytes"), surfels.psnr-points.psnr, "dB", turnedPSNR),
			claim.AtLeast(name("SSIM over points of equal bytes"), surfels.ssim-points.ssim, "", turnedSSIM))
		for _, way := range turnedWays {
			s := scores[way.name+turn]
			lines = append(lines, claim.Information(name(way.name+", PSNR"), s.psnr, "dB"),
				claim.Information(name(way.name+", SSIM"), s.ssim, ""))
		}
	}
	return lines, nil
}

// turnOf returns the size of a view's angle.
func turnOf(view string) string {
	if view[0] == '-' {
		return view[1:]
	}
	return view
}

// trueView renders the surface of a frame from a view, and returns which pixels show a place that the camera saw. A
// pixel is the mean of four samples, all of them seen.
func trueView(figure *glb.Figure, index int, view sceneView, lens *depth.Camera, captured *depth.Image) (
	reference *image.RGBA, seen []bool, err error) {
	const scale = turnedScale * supersampled
	rig, err := virtual.ParseRig(fmt.Appendf(nil, `{"cameras": [{"width": %d, "height": %d, "fx": %g, "fy": %g,
		"position": [%g, %g, %g], "look_at": [%g, %g, %g]}]}`, scale*lens.Width, scale*lens.Height, scale*lens.FX,
		scale*lens.FY, view.Position[0], view.Position[1], view.Position[2], view.Target[0], view.Target[1],
		view.Target[2]))
	if err != nil {
		return nil, nil, err
	}
	var mesh virtual.Mesh
	if err := figure.Mesh(index, &mesh); err != nil {
		return nil, nil, err
	}
	var rendered depth.Image
	virtual.NewRenderer(rig, 0).RenderMesh(&mesh, 0, &rendered)
	camera, into := &rig.Cameras[0].Camera, lens.Pose.Inverse()
	width, height := turnedScale*lens.Width, turnedScale*lens.Height
	reference, seen = image.NewRGBA(image.Rect(0, 0, width, height)), make([]bool, width*height)
	for y := range height {
		for x := range width {
			var sum [3]int
			samples := 0
			for i := range supersampled * supersampled {
				pixel := (supersampled*y+i/supersampled)*camera.Width + supersampled*x + i%supersampled
				if !sees(camera, &rendered, pixel, lens, into, captured) {
					break
				}
				samples++
				for channel, v := range rendered.Colors[pixel] {
					sum[channel] += int(v)
				}
			}
			if samples == supersampled*supersampled {
				seen[y*width+x] = true
				reference.SetRGBA(x, y, color.RGBA{uint8(sum[0] / samples), uint8(sum[1] / samples),
					uint8(sum[2] / samples), 255})
			}
		}
	}
	return reference, seen, nil
}

// sees reports whether a lens has captured the place that a pixel of a camera's image shows.
func sees(camera *depth.Camera, rendered *depth.Image, pixel int, lens *depth.Camera, into depth.Pose,
	captured *depth.Image) bool {
	z := float64(rendered.Depth[pixel]) * camera.Unit
	if z == 0 {
		return false
	}
	x, y, _ := camera.Deproject(float64(pixel%camera.Width), float64(pixel/camera.Width))
	at := into.Apply(camera.Pose.Apply([3]float64{x * z, -y * z, -z}))
	far := -at[2]
	u, v, ok := lens.Project(at[0]/far, -at[1]/far)
	column, row := int(math.Round(u)), int(math.Round(v))
	if !ok || far <= 0 || column < 0 || row < 0 || column >= lens.Width || row >= lens.Height {
		return false
	}
	d := float64(captured.Depth[row*lens.Width+column]) * lens.Unit
	return d != 0 && math.Abs(d-far) < turnedSurface
}

// compareSeen compares a picture with the reference where places were seen. Elsewhere both are made equal, and squares
// of the SSIM without a seen pixel do not count.
func compareSeen(path string, reference *image.RGBA, seen []bool) (psnr, ssim float64, err error) {
	file, err := os.Open(path)
	if err != nil {
		return 0, 0, err
	}
	defer func() { _ = file.Close() }()
	decoded, err := png.Decode(file)
	if err != nil {
		return 0, 0, fmt.Errorf("%s: %w", path, err)
	}
	if decoded.Bounds() != reference.Bounds() {
		return 0, 0, fmt.Errorf("%s: %v, expected %v", path, decoded.Bounds(), reference.Bounds())
	}
	shown := image.NewRGBA(reference.Bounds())
	width := reference.Bounds().Dx()
	for i, is := range seen {
		if is {
			shown.Set(i%width, i/width, decoded.At(i%width, i/width))
		} else {
			shown.SetRGBA(i%width, i/width, reference.RGBAAt(i%width, i/width))
		}
	}
	var want, got visual.Plane
	want.Luma(reference)
	got.Luma(shown)
	return visual.Within(&want, &got, seen)
}
