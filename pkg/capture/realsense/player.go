package realsense

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"

	"github.com/volsfu/volsfu/pkg/capture/depth"
	"github.com/volsfu/volsfu/pkg/capture/realsense/rs2"
)

// A separate process reads each recording: librealsense crashes or hangs on files with certain
// damage, and this process could not catch that. The child is the same program with a job in the
// environment. The child writes the pictures to standard output in the format of this file, which
// is private to the two processes.

// jobVariable is the environment variable with the child's job.
const jobVariable = "VOLSFU_REALSENSE_PLAYER"

// job is the task of a child process.
type job struct {
	Library string
	File    string
	Filters Filters
}

// init turns this process into a player if the parent started a player. The check is in an init
// function because it must precede everything else in the program, whichever program that is.
func init() {
	if text := os.Getenv(jobVariable); text != "" {
		var j job
		if err := json.Unmarshal([]byte(text), &j); err != nil {
			os.Exit(2)
		}
		// Ctrl-C reaches both processes. The parent ends in order and ends this process, too.
		signal.Ignore(os.Interrupt)
		if err := j.play(bufio.NewWriterSize(os.Stdout, 1<<20)); err != nil {
			os.Exit(1) // the parent process has ended
		}
		os.Exit(0)
	}
}

// These are the first bytes of the messages.
const (
	headMessage    = 'H' // the head as JSON, after its length
	pictureMessage = 'P' // stamp, domain, number, depths, colours
	endMessage     = 'E' // the recording has ended and starts again
	errorMessage   = 'X' // the error, after its length; the last message
)

// maxText is the maximum length of heads and errors.
const maxText = 64 << 10

// head describes a recording.
type head struct {
	Camera depth.Camera
	FPS    int
}

// pictureHead precedes the pixels of a picture.
type pictureHead struct {
	Stamp  float64
	Domain int32
	Number uint64
}

// play writes the recording repeatedly, until the reader has closed the pipe or the recording
// cannot be read.
func (j job) play(to *bufio.Writer) error {
	err := j.playLoop(to)
	var failed *writeError
	if errors.As(err, &failed) {
		return err
	}
	return errors.Join(writeText(to, errorMessage, []byte(err.Error())), to.Flush())
}

// writeError reports that the reader has closed the pipe.
type writeError struct{ error }

func (j job) playLoop(to *bufio.Writer) error {
	library, err := rs2.Load(j.Library)
	if err != nil {
		return err
	}
	var p picture
	for round := 0; ; round++ {
		f, err := openFilm(library, j.File, j.Filters)
		if err != nil {
			return err
		}
		if round == 0 {
			description, err := json.Marshal(head{f.stream.camera, f.stream.fps})
			if err != nil {
				return err
			}
			if err := writeText(to, headMessage, description); err != nil {
				return &writeError{err}
			}
		}
		if err := f.play(to, &p); err != nil {
			return err
		}
		f.close()
		if err := to.WriteByte(endMessage); err != nil {
			return &writeError{err}
		}
	}
}

// play writes the recording once.
func (f *film) play(to *bufio.Writer, p *picture) error {
	for {
		got, err := f.next(p)
		if err != nil || !got {
			return err
		}
		if err := p.write(to); err != nil {
			return &writeError{err}
		}
	}
}

func (p *picture) write(to *bufio.Writer) error {
	var errs [4]error
	errs[0] = to.WriteByte(pictureMessage)
	errs[1] = binary.Write(to, binary.LittleEndian, pictureHead{p.stamp, int32(p.domain), p.number})
	_, errs[2] = to.Write(bytesOf(p.image.Depth))
	_, errs[3] = to.Write(bytesOf(p.image.Colors))
	return errors.Join(append(errs[:], to.Flush())...)
}

// read reads the output of write, except for its first byte.
func (p *picture) read(from io.Reader, c *depth.Camera) error {
	var h [20]byte
	if _, err := io.ReadFull(from, h[:]); err != nil {
		return err
	}
	var parsed pictureHead
	if _, err := binary.Decode(h[:], binary.LittleEndian, &parsed); err != nil {
		return err
	}
	p.stamp, p.domain, p.number = parsed.Stamp, rs2.Domain(parsed.Domain), parsed.Number
	pixels := c.Width * c.Height
	p.image.Depth, p.image.Colors = resize(p.image.Depth, pixels), resize(p.image.Colors, pixels)
	if _, err := io.ReadFull(from, bytesOf(p.image.Depth)); err != nil {
		return err
	}
	_, err := io.ReadFull(from, bytesOf(p.image.Colors))
	return err
}

func writeText(to *bufio.Writer, message byte, text []byte) error {
	text = text[:min(len(text), maxText)]
	errs := [3]error{to.WriteByte(message), binary.Write(to, binary.LittleEndian, uint32(len(text)))}
	_, errs[2] = to.Write(text)
	return errors.Join(append(errs[:], to.Flush())...)
}

func readText(from io.Reader) ([]byte, error) {
	var length uint32
	if err := binary.Read(from, binary.LittleEndian, &length); err != nil {
		return nil, err
	}
	if length > maxText {
		return nil, fmt.Errorf("%w: a text of %d bytes, expected at most %d", ErrRecording, length, maxText)
	}
	text := make([]byte, length)
	_, err := io.ReadFull(from, text)
	return text, err
}
