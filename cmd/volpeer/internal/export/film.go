package export

import (
	"errors"
	"fmt"
	"image"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/volsfu/volsfu/internal/peer/render"
)

// errFFmpeg reports that there is no program to write films.
var errFFmpeg = errors.New("--mp4 needs the program ffmpeg with an encoder of H.264; install it, or use --ply")

// film writes pictures to an MP4 file by the program ffmpeg.
type film struct {
	// path is the file to create. folder has the parts of the film until close: the pictures, and the sound.
	path, folder string
	program      *exec.Cmd
	pictures     io.WriteCloser
	said         strings.Builder
	rasteriser   *render.Rasteriser
	image        *image.RGBA
}

// openFilm starts the program. The file must not exist.
func openFilm(path string, rate float64) (f *film, err error) {
	if _, err := os.Lstat(path); err == nil {
		return nil, fmt.Errorf("--mp4: %w: %s", os.ErrExist, path)
	}
	folder, err := os.MkdirTemp(filepath.Dir(path), ".film")
	if err != nil {
		return nil, fmt.Errorf("--mp4: %w", err)
	}
	defer func() {
		if err != nil {
			_ = os.RemoveAll(folder)
		}
	}()
	f = &film{path: path, folder: folder}
	if f.program, err = f.ffmpeg("-f", "rawvideo", "-pix_fmt", "rgba",
		"-s", fmt.Sprintf("%dx%d", render.Width, render.Height), "-r", fmt.Sprint(rate), "-i", "pipe:0",
		"-c:v", "libx264", "-pix_fmt", "yuv420p", "-f", "mp4", f.silent()); err != nil {
		return nil, err
	}
	if f.pictures, err = f.program.StdinPipe(); err != nil {
		return nil, err
	}
	if err := f.program.Start(); err != nil {
		return nil, fmt.Errorf("%w: %w", errFFmpeg, err)
	}
	f.rasteriser = render.NewRasteriser(render.Width, render.Height, 0)
	return f, nil
}

// silent returns the path of the pictures without sound.
func (f *film) silent() string { return filepath.Join(f.folder, "silent.mp4") }

// ffmpeg returns a run of the program.
func (f *film) ffmpeg(arguments ...string) (*exec.Cmd, error) {
	path, err := exec.LookPath("ffmpeg")
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errFFmpeg, err)
	}
	f.said.Reset()
	program := exec.Command(path, append([]string{"-n", "-loglevel", "error"}, arguments...)...)
	program.Stderr = &f.said
	return program, nil
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

// close ends the film, with the sound of closed files. The error has the words of the program.
func (f *film) close(sound []*voice) (err error) {
	defer func() { err = errors.Join(err, os.RemoveAll(f.folder)) }()
	f.rasteriser.Close()
	_ = f.pictures.Close()
	if err := f.program.Wait(); err != nil {
		return f.failed(err)
	}
	arguments := []string{"-i", f.silent()}
	var delays, inputs strings.Builder
	for i, v := range sound {
		arguments = append(arguments, "-i", v.path)
		_, _ = fmt.Fprintf(&delays, "[%d:a]adelay=%d:all=1[a%d];", i+1, v.begins.Milliseconds(), i)
		_, _ = fmt.Fprintf(&inputs, "[a%d]", i)
	}
	arguments = append(arguments, "-map", "0:v")
	if len(sound) > 0 {
		mix := fmt.Sprintf("%s%samix=inputs=%d:duration=longest:normalize=0[mix]", delays.String(), inputs.String(),
			len(sound))
		arguments = append(arguments, "-filter_complex", mix, "-map", "[mix]", "-c:a", "aac")
	}
	program, err := f.ffmpeg(append(arguments, "-c:v", "copy", "-movflags", "+faststart", "-f", "mp4", f.path)...)
	if err != nil {
		return err
	}
	if err := program.Run(); err != nil {
		return f.failed(err)
	}
	return nil
}

func (f *film) failed(err error) error {
	return fmt.Errorf("--mp4: ffmpeg: %w: %s", err, strings.TrimSpace(f.said.String()))
}
