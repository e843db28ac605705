// Package export implements volpeer export: it decodes the recording of a room into PLY files, and draws it into a
// film.
package export

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/volsfu/volsfu/cmd/volpeer/internal/timeline"
	"github.com/volsfu/volsfu/internal/peer"
	"github.com/volsfu/volsfu/internal/peer/render"
	"github.com/volsfu/volsfu/internal/peer/save"
	"github.com/volsfu/volsfu/pkg/pointcloud"
	"github.com/volsfu/volsfu/pkg/recording"
)

// options has the flags of volpeer export.
type options struct {
	ply, ogg, mp4 string
	view          string
	path          string
	rate          float64
	json          bool
	// secrets has the flag of end-to-end encryption.
	secrets peer.Room
}

// Errors of the flags.
var (
	errOutput = errors.New("expected --ply FOLDER, --ogg FOLDER or --mp4 FILE")
	errRate   = errors.New("--fps: expected 1 to 120")
	errViews  = errors.New("expected --view or --camera-path, not both")
)

// Command returns the command volpeer export.
func Command() *cobra.Command {
	o := &options{}
	cmd := timeline.Command("export",
		"Write the recording of a room as PLY and Ogg files, or as a film drawn from a camera path", o.run)
	f := cmd.Flags()
	f.StringVar(&o.ply, "ply", "", "folder for PLY files, one for each capture of each publication")
	f.StringVar(&o.ogg, "ogg", "", "folder for sound, one Ogg file for each publication of Opus")
	f.StringVar(&o.mp4, "mp4", "", fmt.Sprintf("film to create, %dx%d with the sound of all participants; needs the "+
		"program ffmpeg", render.Width, render.Height))
	f.StringVar(&o.view, "view", "", "fixed view of the film: X,Y,Z in metres, and optionally YAW to the left and "+
		"PITCH upwards in degrees; the default is the front of all objects")
	f.StringVar(&o.path, "camera-path", "", "file with the views of the film: lines SECONDS X,Y,Z,YAW,PITCH")
	f.Float64Var(&o.rate, "fps", 30, "pictures of the film per second")
	f.BoolVar(&o.json, "json", false, "print one JSON object at the end")
	o.secrets.KeyFlags(f)
	return cmd
}

// look returns the function of the views, nil for the front of all objects.
func (o *options) look() (func(time.Duration) render.View, error) {
	switch {
	case o.view != "" && o.path != "":
		return nil, errViews
	case o.view != "":
		view, err := render.ParseView(o.view)
		if err != nil {
			return nil, fmt.Errorf("--view: %w", err)
		}
		return func(time.Duration) render.View { return view }, nil
	case o.path != "":
		file, err := os.Open(o.path)
		if err != nil {
			return nil, fmt.Errorf("--camera-path: %w", err)
		}
		defer func() { _ = file.Close() }()
		path, err := render.ReadPath(file)
		if err != nil {
			return nil, fmt.Errorf("--camera-path: %s: %w", o.path, err)
		}
		return path.At, nil
	default:
		return nil, nil
	}
}

// run exports a recording.
func (o *options) run(ctx context.Context, path string, out io.Writer, log *slog.Logger) (err error) {
	switch {
	case o.ply == "" && o.ogg == "" && o.mp4 == "":
		return errOutput
	case !(o.rate >= 1 && o.rate <= 120):
		return fmt.Errorf("%w, got %g", errRate, o.rate)
	}
	look, err := o.look()
	if err != nil {
		return err
	}
	reader, err := recording.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = reader.Close() }()
	e := &exporter{look: look, interval: interval(o.rate), folder: o.ply}
	e.scene = newScene(log, e.save, o.secrets.RecordedKeys)
	for flag, folder := range map[string]string{"--ply": o.ply, "--ogg": o.ogg} {
		if folder == "" {
			continue
		}
		if err := os.MkdirAll(folder, 0o777); err != nil {
			return fmt.Errorf("%s: %w", flag, err)
		}
	}
	e.sounds = o.ogg
	if o.mp4 != "" {
		if e.film, err = openFilm(o.mp4, o.rate); err != nil {
			return err
		}
		if o.ogg == "" {
			e.sounds = e.film.folder
		}
	}
	err = errors.Join(e.export(ctx, reader), e.closeVoices())
	if e.film != nil {
		err = errors.Join(err, e.film.close(e.audible()))
	}
	e.counts.Damage = reader.Damage()
	c := &e.counts
	log.Info("the export has ended", "seconds", c.Seconds, "captures", c.Captures, "files", c.Files, "pictures",
		c.Pictures, "packets of sound", c.Sounds, "undecodable", c.Undecodable,
		"frames lost by the recording", c.Lost.Total())
	if o.json {
		err = errors.Join(err, json.NewEncoder(out).Encode(c))
	}
	return err
}

// exporter exports one recording. It is owned by one goroutine.
type exporter struct {
	*scene
	look     func(time.Duration) render.View
	interval time.Duration
	// folder is the folder of PLY files, empty for none. film is nil without a film.
	folder string
	film   *film
	merged pointcloud.Cloud
	// first is the time of the first record, due that of the next picture.
	first, due time.Time
}

// addSound writes the packets of a frame of sound.
func (e *exporter) addSound(v *voice, u *recording.Unit) error {
	for _, packet := range u.Payloads {
		if v.Description.Encryption != "" {
			var err error
			if packet, err = e.open(v.Publication, u.Tile, 0, 0, nil, packet); err != nil {
				e.counts.Undecodable++
				e.warn(v.Ref().String(), "packets of sound cannot be decrypted and are left out", err)
				continue
			}
		}
		if err := v.add(u.At.Sub(e.first), u.Timestamp, packet); err != nil {
			return fmt.Errorf("%s: %w", v.path, err)
		}
		e.counts.Sounds++
	}
	return nil
}

// audible returns the files of sound that have packets, in the order of their publications.
func (e *exporter) audible() (list []*voice) {
	for _, id := range slices.Sorted(maps.Keys(e.voices)) {
		if e.voices[id].writer != nil {
			list = append(list, e.voices[id])
		}
	}
	return list
}

// closeVoices closes the files of sound.
func (e *exporter) closeVoices() (err error) {
	for _, v := range e.audible() {
		err = errors.Join(err, v.close())
	}
	return err
}

// export takes all records.
func (e *exporter) export(ctx context.Context, source timeline.Source) error {
	line := timeline.New(source)
	for ctx.Err() == nil {
		var err error
		filled := line.Fill(func(r recording.Record) {
			if head, ok := r.(*recording.Head); ok {
				err = errors.Join(err, e.begin(head))
			}
		})
		if err = errors.Join(err, filled); err != nil {
			return err
		}
		r, at, ok := line.Next()
		if !ok {
			return e.end()
		}
		if e.first.IsZero() {
			e.first, e.due = at, at
		}
		if err := e.drawUntil(at); err != nil {
			return err
		}
		e.counts.Seconds = max(e.counts.Seconds, at.Sub(e.first).Seconds())
		if u, ok := r.(*recording.Unit); ok && e.voices[u.Publication] != nil {
			err = e.addSound(e.voices[u.Publication], u)
		} else {
			err = e.take(r)
		}
		if err != nil {
			return err
		}
	}
	return ctx.Err()
}

// drawUntil draws the pictures that are due before a time.
func (e *exporter) drawUntil(at time.Time) error {
	for ; e.film != nil && e.due.Before(at); e.due = e.due.Add(e.interval) {
		view := render.Fit(e.box(), float64(render.Width)/render.Height)
		if e.look != nil {
			view = e.look(e.due.Sub(e.first))
		}
		if err := e.film.draw(view, e.layers()); err != nil {
			return err
		}
		e.counts.Pictures++
	}
	return nil
}

// save writes a capture as a PLY file.
func (e *exporter) save(c *capture) error {
	if e.folder == "" {
		return nil
	}
	e.merged.Reset()
	for _, cloud := range c.object.shown {
		e.merged.AppendCloud(cloud)
	}
	name := save.Frame{Participant: c.object.Participant, Publication: c.object.Description.Name,
		Number: int64(c.number)}
	err := save.File(filepath.Join(e.folder, name.Name()),
		func(to io.Writer) error { return pointcloud.WritePLY(to, &e.merged, pointcloud.BinaryLittleEndian) })
	if err != nil {
		return fmt.Errorf("--ply: %w", err)
	}
	e.counts.Files++
	return nil
}
