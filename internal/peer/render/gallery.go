package render

import (
	"fmt"
	"image"
	"image/png"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/volsfu/volsfu/internal/peer/save"
)

// Gallery writes pictures as PNG files. One goroutine writes one picture at a time. Pictures that arrive meanwhile are
// dropped and counted, so that drawing is never delayed.
type Gallery struct {
	dir      string
	log      *slog.Logger
	pictures chan picture
	// spare has the image of the last written picture, if no picture is being written.
	spare    chan *image.RGBA
	finished sync.WaitGroup

	written, dropped atomic.Int64
}

type picture struct {
	number int64
	image  *image.RGBA
}

// OpenGallery creates the folder if necessary.
func OpenGallery(dir string, log *slog.Logger) (*Gallery, error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	g := &Gallery{dir: dir, log: log, pictures: make(chan picture, 1), spare: make(chan *image.RGBA, 1)}
	g.spare <- nil
	g.finished.Go(g.run)
	return g, nil
}

// Counts returns the number of written pictures, and the number of pictures dropped because another one was being
// written or writing failed.
func (g *Gallery) Counts() (written, dropped int64) { return g.written.Load(), g.dropped.Load() }

// Hang writes the rasteriser's picture, unless another one is being written.
func (g *Gallery) Hang(number int64, r *Rasteriser) {
	select {
	case spare := <-g.spare:
		g.pictures <- picture{number, r.Image(spare)}
	default:
		g.dropped.Add(1)
	}
}

// Close waits until the pending picture is written.
func (g *Gallery) Close() {
	close(g.pictures)
	g.finished.Wait()
}

func (g *Gallery) run() {
	failed := false
	for p := range g.pictures {
		err := save.File(filepath.Join(g.dir, fmt.Sprintf("%08d.png", p.number)), func(to io.Writer) error {
			encoder := png.Encoder{CompressionLevel: png.BestSpeed}
			return encoder.Encode(to, p.image)
		})
		g.spare <- p.image
		if err == nil {
			g.written.Add(1)
			failed = false
			continue
		}
		g.dropped.Add(1)
		if !failed {
			g.log.Warn("picture not written", "error", err)
		}
		failed = true
	}
}
