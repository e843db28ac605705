package export

import (
	"errors"
	"fmt"
	"image"
	"io"
	"os/exec"
	"strings"

	"github.com/volsfu/volsfu/internal/peer/render"
)

// errFFmpeg reports that there is no program to write films.
var errFFmpeg = errors.New("--mp4 needs the program ffmpeg with an encoder of H.264; install it, or use --ply")

// film writes pictures to an MP4 file by the program ffmpeg.
type film struct {
	program    *exec.Cmd
	pictures   io.WriteCloser
	said       strings.Builder
	rasteriser *render.Rasteriser
	image      *image.RGBA
}

// openFilm starts the program. The file must not exist.
func openFilm(path string, rate float64) (*film, error) {
	program, err := exec.LookPath("ffmpeg")
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errFFmpeg, err)
	}
	f := &film{program: exec.Command(program, "-n", "-loglevel", "error", "-f", "rawvideo", "-pix_fmt", "rgba",
		"-s", fmt.Sprintf("%dx%d", render.Width, render.Height), "-r", fmt.Sprint(rate), "-i", "pipe:0",
		"-c:v", "libx264", "-pix_fmt", "yuv420p", "-movflags", "+faststart", "-f", "mp4", path)}
	f.program.Stderr = &f.said
	if f.pictures, err = f.program.StdinPipe(); err != nil {
		return nil, err
	}
	if err := f.program.Start(); err != nil {
		return nil, fmt.Errorf("%w: %w", errFFmpeg, err)
	}
	f.rasteriser = render.NewRasteriser(render.Width, render.Height, 0)
	return f, nil
}

// draw adds a picture.
func (f *film) draw(view render.View, layers []render.Layer) error {
	f.rasteriser.Draw(view, layers)
	f.image = f.rasteriser.Image(f.image)
	if _, err := f.pictures.Write(f.image.Pix); err != nil {
		return fmt.Errorf("ffmpeg has ended: %w", err)
	}
	return nil
}

// close ends the film. The error has the words of the program.
func (f *film) close() error {
	f.rasteriser.Close()
	_ = f.pictures.Close()
	if err := f.program.Wait(); err != nil {
		return fmt.Errorf("--mp4: ffmpeg: %w: %s", err, strings.TrimSpace(f.said.String()))
	}
	return nil
}
