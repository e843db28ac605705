package imagediff

import (
	"errors"
	"fmt"
	"image"
	"os"
	"path/filepath"

	"github.com/volsfu/volsfu/lab/visual"
)

// films has both sequences of pictures.
type films struct {
	files [2]*os.File
	films [2]*visual.Y4M
}

func openFilms(dir string, width, height int, fps float64) (*films, error) {
	f := &films{}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, fmt.Errorf("--films: %w", err)
	}
	for i, name := range []string{"captured.y4m", "shown.y4m"} {
		var err error
		if f.files[i], err = os.Create(filepath.Join(dir, name)); err == nil {
			f.films[i], err = visual.NewY4M(f.files[i], width, height, fps)
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("--films: %w", err), f.close())
		}
	}
	return f, nil
}

// Write implements Film.
func (f *films) Write(captured, shown *image.RGBA) error {
	return errors.Join(f.films[0].Write(captured), f.films[1].Write(shown))
}

func (f *films) close() (err error) {
	for i, film := range f.films {
		if film != nil {
			err = errors.Join(err, film.Flush())
		}
		if f.files[i] != nil {
			err = errors.Join(err, f.files[i].Close())
		}
	}
	return err
}
